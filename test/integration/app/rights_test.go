package app_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hduolab/quell/test/localcluster"
)

var _ = Describe("The operator's ServiceAccount", func() {
	DescribeTable("may not", func(ctx SpecContext, verb, group, resource, subresource string) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "default", Verb: verb, Group: group, Resource: resource, Subresource: subresource},
		}}
		Expect(clientAs(manager.config, "rights").Create(ctx, review)).To(Succeed())
		Expect(review.Status.Allowed).To(BeFalse(), review.Status.Reason)
	},
		Entry("read Secrets", "get", "", "secrets", ""),
		Entry("list Secrets", "list", "", "secrets", ""),
		Entry("read ConfigMaps", "get", "", "configmaps", ""),
		Entry("change an App", "update", "quell.dev", "apps", ""),
		Entry("patch an App", "patch", "quell.dev", "apps", ""),
		Entry("delete an App", "delete", "quell.dev", "apps", ""),
		Entry("replace an App's status", "update", "quell.dev", "apps", "status"),
		Entry("make Pods", "create", "", "pods", ""),
		Entry("run commands in Pods", "create", "", "pods", "exec"),
		Entry("replace Deployments", "update", "apps", "deployments", ""),
		Entry("bind roles", "create", "rbac.authorization.k8s.io", "clusterrolebindings", ""),
		Entry("change its CRD", "patch", "apiextensions.k8s.io", "customresourcedefinitions", ""),
		Entry("use Leases of other namespaces", "create", "coordination.k8s.io", "leases", ""),
	)
})

// expectLeaderElection wants each right of config/rbac/leader_election.yaml to be used by a manager that led and left, and nothing
// beyond to be needed. An event is patched only when the same manager leads again within minutes.
func expectLeaderElection(ctx context.Context, on *localcluster.Cluster) {
	GinkgoHelper()
	var role rbacv1.Role
	Expect(clientAs(on.Config(), "test").Get(ctx, client.ObjectKey{Namespace: "quell-system", Name: "quell-manager-leader-election"}, &role)).To(Succeed())
	requests, err := on.Requests(0, func(r localcluster.Request) bool {
		return r.User == "system:serviceaccount:quell-system:quell-manager" && r.Namespace == "quell-system"
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(role.Rules).NotTo(BeEmpty())
	Expect([]string{"patch events"}).To(ContainElements(unused(role.Rules, requests)), localcluster.Summary(requests))
	Expect(requests).NotTo(ContainElement(HaveField("Code", 403)))
}
