package app

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hduolab/quell/controller/fieldowners"
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

// The API server keeps the entries of managedFields in the order of their times.
func TestWhoElseWritesIsSaidInAFixedOrder(t *testing.T) {
	g := NewWithT(t)
	a, b := metav1.ManagedFieldsEntry{Manager: "a", Operation: rival.Operation}, metav1.ManagedFieldsEntry{Manager: "b", Operation: rival.Operation}
	ofBoth := func(entries ...metav1.ManagedFieldsEntry) []string {
		live := running(shop())
		live.OwnerReferences, live.ManagedFields = nil, entries
		var list []fieldowners.Conflict
		for _, e := range entries {
			list = append(list, fieldowners.Conflict{Path: ".spec", Owner: fieldowners.OwnerOf(&e)})
		}
		return []string{whose(live), beside(live), conflicts(list)}
	}
	g.Expect(ofBoth(b, a)).To(Equal(ofBoth(a, b)))
	g.Expect(ofBoth(b, a)).To(HaveEach(ContainSubstring(`"a"`)))
}

func TestAChildInANamespaceThatIsBeingDeleted(t *testing.T) {
	g := NewWithT(t)
	_, moving := problem(applied{child: child{kind: kindService, name: "shop"}, leaving: true})
	g.Expect(*moving).To(Equal(finding{reasonLeaving, `Service "shop" cannot be made while its namespace is being deleted`}))
	_, moving = problem(applied{child: child{kind: kindService, name: "shop", live: running(shop())}, leaving: true})
	g.Expect(*moving).To(Equal(finding{reasonLeaving, `Service "shop" is still being deleted`}))
}
