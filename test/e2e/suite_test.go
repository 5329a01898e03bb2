// Package e2e_test uses Quell on a whole cluster as people do: with kubectl, its plugin, and objects.
//
// QUELL_E2E_KUBECONFIG names the kubeconfig of a cluster in which the operator runs already. The specs make namespaces, a ClusterRole, a
// CustomResourceDefinition and a StormWatch of their own and remove them; those that speak of the operator's Pods end one of them.
// Without it the suite starts a local cluster with the operator as a process beside it.
//
// QUELL_E2E_IMAGES are two images of test/e2e/server, separated by a comma, which the nodes have or can pull; test/e2e/kind sets it.
// Without it Apps run the pause image that nodes have, which answers nothing.
//
// QUELL_WATCH sets how long a converged cluster is watched for writes (default 6s).
package e2e_test

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/hduolab/quell/controller/app"
)

const (
	// root is the repository, seen from this package's folder.
	root = "../.."
	// system is the namespace of the operator, managerName the name of its Deployment, ServiceAccount and Lease.
	system      = "quell-system"
	managerName = "quell-manager"
	// patience bounds a wait for what has to happen; it is no measure.
	patience = 3 * time.Minute
	pollEach = 250 * time.Millisecond
)

var (
	config *rest.Config
	admin  client.WithWatch
	// kubeconfig of the cluster, and the folder with kubectl and kubectl-quell in it.
	kubeconfig, bin string
	// image and nextImage are those that Apps run. When serving, they are of test/e2e/server.
	image, nextImage string
	serving          bool
)

func TestE2E(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(pollEach)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "Quell on a whole cluster")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	bin = GinkgoT().TempDir()
	build(ctx, "kubectl-quell")
	if kubeconfig = os.Getenv("QUELL_E2E_KUBECONFIG"); kubeconfig == "" {
		startLocal(ctx)
	} else {
		useGiven()
	}
	scheme := runtime.NewScheme()
	Expect(app.AddToScheme(scheme)).To(Succeed())
	var err error
	admin, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	chooseImages(ctx)
	awaitLeader(ctx)
}, NodeTimeout(20*time.Minute)) // the first start of a local cluster builds Kubernetes

// build puts a program of cmd/ into bin.
func build(ctx context.Context, name string) {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(bin, name), "./cmd/"+name)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
}

func useGiven() {
	GinkgoHelper()
	var err error
	kubeconfig, err = filepath.Abs(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	config.QPS = -1 // waiting for it would be mistaken for the operator's time
	kubectl, err := exec.LookPath(cmp.Or(os.Getenv("KUBECTL"), "kubectl"))
	Expect(err).NotTo(HaveOccurred(), "kubectl has to be in PATH, or named by KUBECTL")
	kubectl, err = filepath.Abs(kubectl)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.Symlink(kubectl, filepath.Join(bin, "kubectl"))).To(Succeed())
}

// chooseImages takes the two of QUELL_E2E_IMAGES, or names under which a node has its pause image.
func chooseImages(ctx context.Context) {
	GinkgoHelper()
	if given := os.Getenv("QUELL_E2E_IMAGES"); given != "" {
		image, nextImage, serving = strings.Cut(given, ",")
		Expect(serving).To(BeTrue(), "QUELL_E2E_IMAGES has to be two images with a comma between them")
		return
	}
	image, nextImage = "registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10.1"
	var nodes corev1.NodeList
	Expect(admin.List(ctx, &nodes)).To(Succeed())
	for _, node := range nodes.Items {
		for _, i := range node.Status.Images {
			if strings.Contains(i.Names[0], "/pause") {
				image, nextImage = i.Names[0], i.Names[len(i.Names)-1]
				return
			}
		}
	}
}

// awaitLeader tells a cluster without an operator from one whose operator does nothing.
func awaitLeader(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		g.Expect(leader(ctx, g)).NotTo(BeEmpty(), "no operator leads: install it into this cluster first, with make install")
	}).WithTimeout(time.Minute).Should(Succeed())
}

// leader is who holds the operator's Lease: the name of a Pod, or of a host, an underscore, and a unique part.
func leader(ctx context.Context, g Gomega) string {
	var lease coordinationv1.Lease
	g.Expect(client.IgnoreNotFound(admin.Get(ctx, client.ObjectKey{Namespace: system, Name: managerName}, &lease))).To(Succeed())
	return ptr.Deref(lease.Spec.HolderIdentity, "")
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
