package app_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
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
