package faults_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hduolab/quell/test/quiescence"
)

// quietKinds are all that an App brings about.
var quietKinds = []schema.GroupKind{
	{Group: "quell.dev", Kind: "App"}, {Group: "apps", Kind: "Deployment"}, {Kind: "Service"}, {Kind: "ServiceAccount"},
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}, {Group: "networking.k8s.io", Kind: "Ingress"},
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, {Group: "policy", Kind: "PodDisruptionBudget"},
	{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"},
}

// expectQuiet wants nothing to be written in a namespace for watchTime, once it has settled.
func expectQuiet(ctx context.Context, namespace string) {
	GinkgoHelper()
	Expect(quiescence.Check(ctx, cluster.Config(), quiescence.Options{
		Kinds: quietKinds, Namespaces: []string{namespace}, Settle: 2500 * time.Millisecond, Hold: watchTime,
	})).To(Succeed())
}
