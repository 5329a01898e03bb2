package monitoring_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// objects are what the metrics come from: an App whose Deployment somebody else wants to be different, and a watch.
const objects = `
apiVersion: quell.dev/v1alpha1
kind: App
metadata: {name: shop, namespace: default}
spec: {image: registry.example.com/team/shop:v1}
---
apiVersion: quell.dev/v1alpha1
kind: StormWatch
metadata: {name: all}
spec: {customResources: All}
`

var _ = Describe("config/prometheus", Ordered, func() {
	var dir, checker, manifests string
	save := func(name, text string) string {
		GinkgoHelper()
		path := filepath.Join(dir, name)
		Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
		return path
	}

	BeforeAll(func(ctx SpecContext) {
		dir = GinkgoT().TempDir()
		checker = filepath.Join(dir, "monitoring")
		out, err := exec.CommandContext(ctx, "go", "build", "-C", "../../tools/monitoring", "-o", checker, ".").CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		manifests = save("manifests.yaml", kubectl(ctx, "kustomize", filepath.Join(configDir, "prometheus")))
		kubectlWith(ctx, strings.NewReader(objects), "apply", "--server-side", "-f", "-")
	}, NodeTimeout(10*time.Minute)) // the first build compiles Prometheus's parser

	It("answers who may get /metrics, and nobody else", func(ctx SpecContext) {
		kubectl(ctx, "create", "serviceaccount", "prometheus")
		token := func() string { return strings.TrimSpace(kubectl(ctx, "create", "token", "prometheus")) }
		statusFor := func(token string) func() int { return func() int { s, _ := scrape(ctx, token); return s } }
		Eventually(ctx, statusFor("")).Should(Equal(http.StatusUnauthorized))
		Eventually(ctx, statusFor(token())).Should(Equal(http.StatusForbidden))
		kubectl(ctx, "create", "clusterrolebinding", "prometheus", "--clusterrole=quell-metrics-reader", "--serviceaccount=default:prometheus")
		Eventually(ctx, func() int { s, _ := scrape(ctx, token()); return s }).Should(Equal(http.StatusOK))
	})

	It("has every metric and label of the rules and of the dashboard", func(ctx SpecContext) {
		token := strings.TrimSpace(kubectl(ctx, "create", "token", "prometheus"))
		stop := goOn(ctx, stamp, takeImage)
		defer stop()
		Eventually(ctx, func() error {
			status, text := scrape(ctx, token)
			if status != http.StatusOK {
				return fmt.Errorf("the metrics answer %d: %s", status, text)
			}
			// What has a value hides the description of the same name, and has a type.
			files := []string{save("registered", registered()), save("apiserver", ofAPIServer(ctx)), save("manager", text)}
			out, err := exec.CommandContext(ctx, checker, append([]string{manifests}, files...)...).CombinedOutput()
			if err != nil {
				return errors.New(string(out))
			}
			return nil
		}).Should(Succeed())
	})
})

// goOn repeats writes for as long as the metrics need to appear.
func goOn(ctx context.Context, writes ...func(ctx context.Context, n int) error) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer GinkgoRecover()
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			for _, write := range writes {
				if err := write(ctx, n); ctx.Err() == nil {
					Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
				}
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// stamp writes the time into an annotation of the App, as many operators do.
func stamp(ctx context.Context, _ int) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/seen":%q}}}`, time.Now().Format(time.RFC3339Nano))
	return admin.Patch(ctx, object("quell.dev/v1alpha1", "App"), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("storm"))
}

// takeImage takes the image of the App's Deployment.
func takeImage(ctx context.Context, n int) error {
	d := object("apps/v1", "Deployment")
	container := map[string]any{"name": "app", "image": fmt.Sprintf("registry.example.com/team/shop:rival-%d", n)}
	if err := unstructured.SetNestedSlice(d.Object, []any{container}, "spec", "template", "spec", "containers"); err != nil {
		return err
	}
	return admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(d), client.FieldOwner("rival"), client.ForceOwnership)
}

func object(apiVersion, kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace("default")
	u.SetName("shop")
	return u
}
