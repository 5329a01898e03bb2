package app_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/app"
)

var _ = Describe("Status written by somebody else", func() {
	DescribeTable("is repaired although the generation stands still", func(ctx SpecContext, spoil func(context.Context, *quellv1alpha1.App)) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop", replicas(2)))
		good, generation, start := a.Status, a.Generation, mark()

		spoil(ctx, a)
		Eventually(ctx, func(g Gomega) { g.Expect(withoutTimes(status(ctx, g, a))).To(Equal(withoutTimes(good))) }).Should(Succeed())
		Expect(a.Generation).To(Equal(generation))
		Consistently(ctx, func() int { return count(manager.writes(start, ns), to("apps/status")) }, 3*time.Second, pollEach).Should(Equal(1))
	},
		Entry("an update of phase and counts", func(ctx context.Context, a *quellv1alpha1.App) {
			overwriteStatus(ctx, a, func(s *quellv1alpha1.AppStatus) {
				nine := int32(9)
				s.Phase, s.ReadyReplicas, s.Ready = quellv1alpha1.PhaseFailed, &nine, "9/9"
			})
		}),
		Entry("an update that removes a field", func(ctx context.Context, a *quellv1alpha1.App) {
			overwriteStatus(ctx, a, func(s *quellv1alpha1.AppStatus) { s.Endpoint = "" })
		}),
		Entry("an update that removes everything", func(ctx context.Context, a *quellv1alpha1.App) {
			overwriteStatus(ctx, a, func(s *quellv1alpha1.AppStatus) { *s = quellv1alpha1.AppStatus{} })
		}),
		Entry("a merge patch of a condition", func(ctx context.Context, a *quellv1alpha1.App) {
			patchStatus(ctx, a, types.MergePatchType, `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Me","message":"","lastTransitionTime":"2020-01-01T00:00:00Z"}]}}`)
		}),
		Entry("a JSON patch that removes the conditions", func(ctx context.Context, a *quellv1alpha1.App) {
			patchStatus(ctx, a, types.JSONPatchType, `[{"op":"remove","path":"/status/conditions"}]`)
		}),
	)

	It("is left alone where it is not the operator's", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop"))
		start := mark()
		overwriteStatus(ctx, a, func(s *quellv1alpha1.AppStatus) {
			meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: "example.com/Audited", Status: metav1.ConditionTrue, Reason: "Yes"})
		})
		Consistently(ctx, func() int { return len(manager.writes(start, ns)) }, 3*time.Second, pollEach).Should(BeZero())

		change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.Image += "2" })
		converge(ctx, a)
		Expect(meta.IsStatusConditionTrue(a.Status.Conditions, "example.com/Audited")).To(BeTrue())
	})
})

var _ = Describe("A child changed by somebody else", func() {
	DescribeTable("is repaired", func(ctx SpecContext, resource string, spoil func(context.Context, *quellv1alpha1.App), repaired func(Gomega, *appsv1.Deployment)) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop", labelled("team", "a")))
		start := mark()
		spoil(ctx, a)
		Eventually(ctx, func(g Gomega) { repaired(g, deployment(ctx, g, a)); service(ctx, g, a) }).Should(Succeed())
		converge(ctx, a)
		Expect(count(accepted(manager.writes(start, ns)), to(resource))).To(Equal(1))
	},
		Entry("after an edit of the spec", "deployments", edit(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "other" }), func(g Gomega, d *appsv1.Deployment) {
			g.Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal(image))
		}),
		Entry("after a scale", "deployments", edit(func(d *appsv1.Deployment) { *d.Spec.Replicas = 0 }), func(g Gomega, d *appsv1.Deployment) {
			g.Expect(*d.Spec.Replicas).To(BeEquivalentTo(1))
		}),
		Entry("after a common label was removed", "deployments", edit(func(d *appsv1.Deployment) { delete(d.Labels, "team") }), func(g Gomega, d *appsv1.Deployment) {
			g.Expect(d.Labels).To(HaveKeyWithValue("team", "a"))
		}),
		Entry("after the label by which the cache selects was removed", "deployments", edit(func(d *appsv1.Deployment) { delete(d.Labels, app.LabelManagedBy) }), func(g Gomega, d *appsv1.Deployment) {
			g.Expect(d.Labels).To(HaveKeyWithValue(app.LabelManagedBy, app.ManagedBy))
		}),
		Entry("after the owner reference was removed", "deployments", edit(func(d *appsv1.Deployment) { d.OwnerReferences = nil }), func(g Gomega, d *appsv1.Deployment) {
			g.Expect(d.OwnerReferences).To(HaveLen(1))
		}),
		Entry("after the Deployment was deleted", "deployments", func(ctx context.Context, a *quellv1alpha1.App) {
			d := deployment(ctx, Default, a)
			Expect(admin.Delete(ctx, d)).To(Succeed())
		}, func(g Gomega, d *appsv1.Deployment) { g.Expect(d.DeletionTimestamp).To(BeNil()) }),
		Entry("after the Service was deleted", "services", func(ctx context.Context, a *quellv1alpha1.App) {
			Expect(admin.Delete(ctx, service(ctx, Default, a))).To(Succeed())
		}, func(Gomega, *appsv1.Deployment) {}),
		Entry("after the Service's selector was edited", "services", func(ctx context.Context, a *quellv1alpha1.App) {
			s := service(ctx, Default, a)
			s.Spec.Selector["app.kubernetes.io/name"] = "other"
			Expect(admin.Update(ctx, s)).To(Succeed())
			Eventually(ctx, func(g Gomega) {
				g.Expect(service(ctx, g, a).Spec.Selector).To(HaveKeyWithValue("app.kubernetes.io/name", "shop"))
			}).Should(Succeed())
		}, func(Gomega, *appsv1.Deployment) {}),
	)

	It("is named in an event, with its path, and only then", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop"))
		Expect(eventsOf(ctx, Default, a, "FieldTakenBack")).To(BeEmpty())
		edit(func(d *appsv1.Deployment) { *d.Spec.Replicas = 5 })(ctx, a)
		Eventually(ctx, func(g Gomega) {
			events := eventsOf(ctx, g, a, "FieldTakenBack")
			g.Expect(events).To(HaveLen(1))
			g.Expect(events[0].Note).To(And(ContainSubstring(".spec.replicas"), ContainSubstring(`"kubectl-edit"`), ContainSubstring(`Deployment "shop"`)))
		}).Should(Succeed())
		converge(ctx, a)
		awaitIdle(ctx)

		before := len(eventsOf(ctx, Default, a, ""))
		touch(ctx, a)
		awaitIdle(ctx)
		Expect(eventsOf(ctx, Default, a, "")).To(HaveLen(before))
	})

	It("keeps fields that are not the App's", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop"))
		start := mark()
		edit(func(d *appsv1.Deployment) {
			d.Labels["example.com/cost-centre"] = "7"
			seconds := int64(7)
			d.Spec.Template.Spec.TerminationGracePeriodSeconds = &seconds
		})(ctx, a)
		converge(ctx, a)
		awaitIdle(ctx)
		Expect(count(manager.writes(start, ns), to("deployments"))).To(BeZero())
		d := deployment(ctx, Default, a)
		Expect(d.Labels).To(HaveKey("example.com/cost-centre"))
		Expect(*d.Spec.Template.Spec.TerminationGracePeriodSeconds).To(BeEquivalentTo(7))
	})
})

func edit(f func(*appsv1.Deployment)) func(context.Context, *quellv1alpha1.App) {
	return func(ctx context.Context, a *quellv1alpha1.App) {
		GinkgoHelper()
		change(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name}}, f)
	}
}

func patchStatus(ctx context.Context, a *quellv1alpha1.App, kind types.PatchType, patch string) {
	GinkgoHelper()
	Expect(admin.Status().Patch(ctx, a, client.RawPatch(kind, []byte(patch)), client.FieldOwner("kubectl-patch"))).To(Succeed())
}

// withoutTimes drops the transition times, which a repair may have to set anew.
func withoutTimes(s quellv1alpha1.AppStatus) quellv1alpha1.AppStatus {
	s = *s.DeepCopy()
	byType := map[string]metav1.Condition{}
	for _, c := range s.Conditions {
		c.LastTransitionTime = metav1.Time{}
		byType[c.Type] = c
	}
	s.Conditions = nil
	for _, kind := range []string{"Available", "Progressing", "Ready", "Reconciling", "Stalled"} {
		if c, ok := byType[kind]; ok {
			s.Conditions = append(s.Conditions, c)
		}
	}
	return s
}
