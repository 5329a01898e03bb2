package upgrade_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/app"
	"github.com/hduolab/quell/test/localcluster"
	"github.com/hduolab/quell/test/quiescence"
)

// wholeApp is the first revision whose App has all kinds of children. Every later change of the API is one that an upgrade from it
// meets.
const wholeApp = "764adb082e9f8e37b4d70ad04f4317a0fb5c9a3a"

// ours are the lists of everything that the operator writes.
var ours = map[string]func() client.ObjectList{
	"App":                     func() client.ObjectList { return &quellv1alpha1.AppList{} },
	"Deployment":              func() client.ObjectList { return &appsv1.DeploymentList{} },
	"Service":                 func() client.ObjectList { return &corev1.ServiceList{} },
	"ServiceAccount":          func() client.ObjectList { return &corev1.ServiceAccountList{} },
	"HorizontalPodAutoscaler": func() client.ObjectList { return &autoscalingv2.HorizontalPodAutoscalerList{} },
	"PodDisruptionBudget":     func() client.ObjectList { return &policyv1.PodDisruptionBudgetList{} },
	"Ingress":                 func() client.ObjectList { return &networkingv1.IngressList{} },
	"NetworkPolicy":           func() client.ObjectList { return &networkingv1.NetworkPolicyList{} },
}

var _ = Describe("An upgrade", Ordered, func() {
	var (
		present  string // the manager of this tree
		before   map[string][]string
		versions map[string]string
		apps     int
	)

	BeforeAll(func(ctx SpecContext) {
		earlier := checkout(ctx)
		old := buildManager(ctx, earlier, "v0.1.0")
		present = buildManager(ctx, root, "v0.2.0")
		kubectl(ctx, "apply", "--server-side", "-k", filepath.Join(earlier, "config/default"))
		Expect(localcluster.WaitEstablished(ctx, cluster.Config(), "apps.quell.dev")).To(Succeed())
		m := startManager(ctx, old)
		kubectl(ctx, "apply", "--server-side", "-k", filepath.Join(earlier, "config/samples"))
		apps = awaitVersion(ctx, "v0.1.0")
		Expect(apps).To(BeNumerically(">=", 15))
		Expect(settled(ctx)).To(Succeed())
		m.stop(ctx)
		before, versions = owners(ctx), resourceVersions(ctx)
		Expect(kindsOf(before)).To(ConsistOf(slices.Collect(maps.Keys(ours))), "a kind of child that no App has")
	})

	It("is accepted as a whole, and touches no App", func(ctx SpecContext) {
		kubectl(ctx, "apply", "--server-side", "-k", "config/default")
		Expect(localcluster.WaitEstablished(ctx, cluster.Config(), "apps.quell.dev", "stormwatches.quell.dev")).To(Succeed())
		Expect(resourceVersions(ctx)).To(Equal(versions))
	})

	// A release that adds something to every status names it here: it is one write per App, and none to any child.
	It("writes nothing, to no App and to no child", func(ctx SpecContext) {
		mark, err := cluster.Mark()
		Expect(err).NotTo(HaveOccurred())
		m := startManager(ctx, present)
		m.awaitReconciled(ctx, apps)
		Expect(settled(ctx)).To(Succeed())
		Expect(writes(mark)).To(BeEmpty())
		m.stop(ctx)
	})

	It("keeps every field manager, and leaves none behind", func(ctx SpecContext) {
		Expect(owners(ctx)).To(Equal(before))
	})

	It("can be uninstalled", func(ctx SpecContext) {
		kubectl(ctx, "delete", "-k", "config/default")
		expectNothingLeft(ctx)
	})
})

// checkout writes the tree of the earlier release into a temporary folder. The repository itself is only read.
func checkout(ctx context.Context) string {
	GinkgoHelper()
	revision := os.Getenv("QUELL_UPGRADE_FROM")
	if revision == "" {
		revision = wholeApp
		if tag, err := try(ctx, root, "git", "describe", "--tags", "--abbrev=0", "HEAD^"); err == nil {
			revision = strings.TrimSpace(tag)
		}
	}
	dir := GinkgoT().TempDir()
	archive := filepath.Join(dir, "tree.tar")
	if whole, err := try(ctx, root, "git", "rev-parse", "--is-shallow-repository"); err != nil || strings.TrimSpace(whole) != "false" {
		Skip("no upgrade is tested: this is no clone with its history (git fetch --unshallow --tags gets it)")
	}
	run(ctx, root, "git", "archive", "-o", archive, revision)
	run(ctx, dir, "tar", "-xf", archive)
	By("upgrading from " + revision)
	return dir
}

// awaitVersion waits until every App's status names the operator's version, and returns the number of Apps.
func awaitVersion(ctx context.Context, version string) int {
	GinkgoHelper()
	var apps quellv1alpha1.AppList
	Eventually(ctx, func(g Gomega) {
		g.Expect(admin.List(ctx, &apps)).To(Succeed())
		g.Expect(apps.Items).NotTo(BeEmpty())
		for _, a := range apps.Items {
			g.Expect(a.Status.OperatorVersion).To(Equal(version), a.Name)
			g.Expect(a.Status.ObservedGeneration).To(Equal(a.Generation), a.Name)
		}
	}).Should(Succeed())
	return len(apps.Items)
}

// settled returns nil once nothing is written any more to what the operator writes.
func settled(ctx context.Context) error {
	return quiescence.Check(ctx, cluster.Config(), quiescence.Options{
		Kinds: []schema.GroupKind{
			{Group: "quell.dev", Kind: "App"}, {Group: "apps", Kind: "Deployment"}, {Kind: "Service"}, {Kind: "ServiceAccount"},
			{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, {Group: "networking.k8s.io", Kind: quiescence.Any}, {Group: "policy", Kind: quiescence.Any},
		},
		Namespaces: []string{"default"},
		Hold:       watchTime(),
		Ignore:     func(w quiescence.Write) bool { return !strings.HasPrefix(w.Writer.Manager, "quell-") },
	})
}

// watchTime is how long a converged cluster is watched.
func watchTime() time.Duration {
	GinkgoHelper()
	value := os.Getenv("QUELL_WATCH")
	if value == "" {
		return 6 * time.Second
	}
	d, err := time.ParseDuration(value)
	Expect(err).NotTo(HaveOccurred(), "QUELL_WATCH")
	return d
}

func byOperator(r localcluster.Request) bool {
	return r.User == fmt.Sprintf("system:serviceaccount:%s:%s", system, managerName)
}

// writes are the operator's, in words. Events tell what happened and are not counted.
func writes(since localcluster.Mark) []string {
	GinkgoHelper()
	requests, err := cluster.Requests(since, byOperator, localcluster.Writes, localcluster.NotLeases)
	Expect(err).NotTo(HaveOccurred())
	var told []string
	for _, r := range requests {
		if r.Resource == "events" {
			continue
		}
		resource := strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/")
		told = append(told, fmt.Sprintf("%s %s %s/%s as %s", r.Verb, resource, r.Namespace, r.Name, r.FieldManager))
	}
	return told
}

// each calls visit for every App and child.
func each(ctx context.Context, visit func(name string, object metav1.Object)) {
	GinkgoHelper()
	for kind, list := range ours {
		found := list()
		options := []client.ListOption{client.InNamespace("default")}
		if kind != "App" {
			options = append(options, client.MatchingLabels{app.LabelManagedBy: app.ManagedBy})
		}
		Expect(admin.List(ctx, found, options...)).To(Succeed())
		Expect(meta.EachListItem(found, func(item runtime.Object) error {
			object, err := meta.Accessor(item)
			if err == nil {
				visit(kind+" "+object.GetName(), object)
			}
			return err
		})).To(Succeed())
	}
}

// resourceVersions are those of all Apps. Children have controllers of their own that may write.
func resourceVersions(ctx context.Context) map[string]string {
	GinkgoHelper()
	versions := map[string]string{}
	each(ctx, func(name string, object metav1.Object) {
		if strings.HasPrefix(name, "App ") {
			versions[name] = object.GetResourceVersion()
		}
	})
	return versions
}

// owners are the entries of managedFields of all Apps and children. Those of the operator's are there with their fields: none more
// and none less may be owned later. Controllers of Kubernetes come and go by themselves.
func owners(ctx context.Context) map[string][]string {
	GinkgoHelper()
	entries := map[string][]string{}
	each(ctx, func(name string, object metav1.Object) {
		entries[name] = []string{}
		for _, e := range object.GetManagedFields() {
			entry := fmt.Sprintf("%s %s %s %s", e.Manager, e.Operation, e.APIVersion, e.Subresource)
			if strings.HasPrefix(e.Manager, "quell") {
				entries[name] = append(entries[name], entry+" "+canonical(e.FieldsV1))
			} else if e.Manager != "kube-controller-manager" {
				entries[name] = append(entries[name], entry)
			}
		}
		slices.Sort(entries[name])
	})
	return entries
}

func canonical(fields *metav1.FieldsV1) string {
	GinkgoHelper()
	raw, err := json.Marshal(fields)
	Expect(err).NotTo(HaveOccurred())
	var parsed any
	Expect(json.Unmarshal(raw, &parsed)).To(Succeed())
	sorted, err := json.Marshal(parsed)
	Expect(err).NotTo(HaveOccurred())
	return string(sorted)
}

func kindsOf(entries map[string][]string) []string {
	kinds := map[string]bool{}
	for name := range entries {
		kind, _, _ := strings.Cut(name, " ")
		kinds[kind] = true
	}
	return slices.Collect(maps.Keys(kinds))
}
