package app

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestProhibitionHoldsNothingThatMoves(t *testing.T) {
	forbidden := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "shop", errors.New(why))
	}
	for want, err := range map[string]error{
		"exceeded quota: team-a": forbidden("exceeded quota: team-a, requested: count/deployments.apps=1, used: count/deployments.apps=5, limited: count/deployments.apps=5"),
		`the operator cannot patch resource "deployments" in API group "apps"`: forbidden(
			`User "system:serviceaccount:quell-system:quell-manager" cannot patch resource "deployments" in API group "apps" in the namespace "team-a"`),
		"forbidden by an admission policy or by missing permission of the operator; its log has the API server's words": forbidden("denied, trace 4711"),
	} {
		NewWithT(t).Expect(prohibition(err)).To(Equal(want))
	}
}

func TestRejectedNamesWhoElseWroteToTheObject(t *testing.T) {
	g := NewWithT(t)
	live := running(shop())
	g.Expect(beside(nil)).To(BeEmpty())
	g.Expect(beside(live)).To(BeEmpty())
	live.ManagedFields = append(live.ManagedFields, metav1.ManagedFieldsEntry{Manager: rival.Manager, Operation: rival.Operation})
	g.Expect(beside(live)).To(ContainSubstring(`fields of "kubectl-edit" (Update)`))
}
