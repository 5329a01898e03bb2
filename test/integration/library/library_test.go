package library_test

import (
	"context"
	"slices"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/applyconfig"
	quellv1alpha1ac "github.com/hduolab/quell/applyconfig/quell/v1alpha1"
	"github.com/hduolab/quell/controller/eventfilter"
	"github.com/hduolab/quell/controller/ssa"
	"github.com/hduolab/quell/test/quiescence"
)

const rival = "kubectl-edit"

var names = 0

func newName() string {
	names++
	return "web-" + strconv.Itoa(names)
}

func newApp(ctx context.Context) *quellv1alpha1.App {
	GinkgoHelper()
	app := &quellv1alpha1.App{ObjectMeta: metav1.ObjectMeta{Name: newName(), Namespace: namespace}, Spec: quellv1alpha1.AppSpec{Image: "web"}}
	Expect(admin.Create(ctx, app)).To(Succeed())
	return app
}

// newDeployment is a child of an App.
func newDeployment(ctx context.Context, app *quellv1alpha1.App) *appsv1.Deployment {
	GinkgoHelper()
	labels := map[string]string{"app": app.Name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: app.Name, Namespace: namespace}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web"}}
	Expect(controllerutil.SetControllerReference(app, d, scheme)).To(Succeed())
	Expect(admin.Create(ctx, d)).To(Succeed())
	return d
}

// setReady stands for the deployment controller.
func setReady(ctx context.Context, d *appsv1.Deployment, replicas, ready int32) {
	GinkgoHelper()
	d.Status.Replicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = replicas, ready, ready
	Expect(admin.Status().Update(ctx, d)).To(Succeed())
}

func fetched[T client.Object](ctx context.Context, o T) T {
	GinkgoHelper()
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
	return o
}

func expectQuiet(ctx context.Context, kinds ...schema.GroupKind) {
	GinkgoHelper()
	Expect(quiescence.Check(ctx, cluster.Config(), quiescence.Options{
		Kinds: append(kinds, schema.GroupKind{Group: quellv1alpha1.SchemeGroupVersion.Group, Kind: "App"}), Settle: time.Second, Hold: 2 * time.Second,
	})).To(Succeed())
}

// written is the full status that the README's operator reports.
func written(ctx context.Context, w *ssa.StatusWriter, app *quellv1alpha1.App, status *quellv1alpha1ac.AppStatusApplyConfiguration) (ssa.Result, error) {
	return w.Write(ctx, ssa.Intent{Desired: quellv1alpha1ac.App(app.Name, app.Namespace).WithStatus(status), Live: app})
}

var _ = Describe("the operator in twenty lines", func() {
	It("reports what its child has, once for each change, and is not woken by it", func(ctx SpecContext) {
		start := mark()
		inBackground(func(ctx context.Context) error { return Run(ctx, operatorConfig(), options()) })
		app := newApp(ctx)
		child := newDeployment(ctx, app)
		for _, ready := range []int32{2, 1} {
			setReady(ctx, child, 2, ready)
			Eventually(func(g Gomega) {
				status := fetched(ctx, app).Status
				g.Expect(status.ReadyReplicas).To(HaveValue(Equal(ready)))
				g.Expect(status.ObservedGeneration).To(Equal(app.Generation))
			}).WithContext(ctx).Should(Succeed())
		}
		expectQuiet(ctx, schema.GroupKind{Group: "apps", Kind: "Deployment"})
		said := writes(start, app)
		Expect(said).To(HaveEach("patch apps/status as " + statusManager + ": 200"))
		Expect(len(said)).To(BeNumerically("<=", 3), "none ready, two, one")

		before := mark()
		for round := range 3 { // it is woken, and has nothing to say
			child.Annotations = map[string]string{"round": strconv.Itoa(round)}
			Expect(admin.Update(ctx, child)).To(Succeed())
		}
		expectQuiet(ctx, schema.GroupKind{Group: "apps", Kind: "Deployment"})
		Expect(writes(before, app)).To(BeEmpty())
	})
})

var _ = Describe("the pieces", func() {
	newWriter := func() *ssa.StatusWriter {
		GinkgoHelper()
		w, err := newStatusWriter(newManager())
		Expect(err).NotTo(HaveOccurred())
		return w
	}

	It("take over what Status().Update wrote, so that a field can be given up", func(ctx SpecContext) {
		app := newApp(ctx)
		child := newDeployment(ctx, app)
		setReady(ctx, child, 2, 2)
		r := &Reconciler{Client: client.WithFieldOwner(admin, "my-operator")}
		_, err := r.updated(ctx, app, child)
		Expect(err).NotTo(HaveOccurred())

		w := newWriter()
		result, err := written(ctx, w, fetched(ctx, app), quellv1alpha1ac.AppStatus().WithObservedGeneration(app.Generation))
		Expect(result.Outcome, err).To(Equal(ssa.Applied))
		Expect(fetched(ctx, app).Status.ReadyReplicas).To(BeNil())
		Expect(app.ManagedFields).NotTo(ContainElement(And(HaveField("Manager", "my-operator"), HaveField("Subresource", "status"))))
		for _, w := range []*ssa.StatusWriter{w, newWriter()} {
			result, err = written(ctx, w, app, quellv1alpha1ac.AppStatus().WithObservedGeneration(app.Generation))
			Expect(result.Outcome, err).To(Equal(ssa.Unchanged))
		}
	})

	It("keep a condition's time until its status changes", func(ctx SpecContext) {
		app := newApp(ctx)
		child := newDeployment(ctx, app)
		w := newWriter()
		transition := func(replicas, ready_ int32, outcome ssa.Outcome) metav1.Condition {
			GinkgoHelper()
			setReady(ctx, child, replicas, ready_)
			result, err := written(ctx, w, fetched(ctx, app), quellv1alpha1ac.AppStatus().WithConditions(ready(app, child)))
			Expect(result.Outcome, err).To(Equal(outcome))
			return *meta.FindStatusCondition(fetched(ctx, app).Status.Conditions, "Ready")
		}
		first := transition(2, 2, ssa.Applied)
		Expect(first.Status).To(Equal(metav1.ConditionTrue))
		Expect(first.LastTransitionTime.IsZero()).To(BeFalse())
		Expect(transition(3, 3, ssa.Unchanged)).To(Equal(first))
		second := transition(3, 2, ssa.Applied)
		Expect(second.Status).To(Equal(metav1.ConditionFalse))
		Expect(second.LastTransitionTime.Before(&first.LastTransitionTime)).To(BeFalse())
	})

	It("answer with an event when a fight begins, with a pause while it lasts, and not at all to what is refused", func(ctx SpecContext) {
		app, recorder, w := newApp(ctx), events.NewFakeRecorder(10), newWriter()
		var result ctrl.Result
		for range 2 * ssa.DefaultContentionPace.Free {
			fetched(ctx, app).Status.ReadyReplicas = new(int32(9))
			Expect(admin.Status().Update(ctx, app, client.FieldOwner(rival))).To(Succeed())
			outcome, err := written(ctx, w, app, quellv1alpha1ac.AppStatus().WithReadyReplicas(1))
			result, err = answer(ctx, recorder, app, outcome, err)
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(result.RequeueAfter).To(BeNumerically(">", 0))
		Expect(recorder.Events).To(HaveLen(1))
		Expect(<-recorder.Events).To(And(ContainSubstring("Contended"), ContainSubstring(rival), ContainSubstring(".status.readyReplicas")))

		twice := ready(app, &appsv1.Deployment{})
		refused, err := written(ctx, w, fetched(ctx, newApp(ctx)), quellv1alpha1ac.AppStatus().WithConditions(twice, twice))
		_, err = answer(ctx, recorder, app, refused, err)
		Expect(err).To(MatchError(reconcile.TerminalError(nil)))
		failed := apierrors.NewServiceUnavailable("etcd")
		_, err = answer(ctx, recorder, app, ssa.Result{}, failed)
		Expect(err).To(BeIdenticalTo(error(failed)))
	})

	It("apply a child, repair what is theirs and leave what is not", func(ctx SpecContext) {
		mgr := newManager()
		applier, err := newApplier(mgr)
		Expect(err).NotTo(HaveOccurred())
		own := eventfilter.OwnWrites{Manager: statusManager, Subresource: "status", Types: applyconfig.NewTypeConverter(scheme), Scheme: scheme}
		Expect(watches(mgr, own, reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			app := &quellv1alpha1.App{}
			if err := mgr.GetClient().Get(ctx, req.NamespacedName, app); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			result, err := applyService(ctx, mgr.GetClient(), applier, app)
			return answer(ctx, mgr.GetEventRecorder(operator), app, result, err)
		}))).To(Succeed())
		inBackground(mgr.Start)

		app := newApp(ctx)
		service := &corev1.Service{ObjectMeta: app.ObjectMeta}
		Eventually(func() error { return admin.Get(ctx, client.ObjectKeyFromObject(app), service) }).WithContext(ctx).Should(Succeed())
		expectQuiet(ctx, schema.GroupKind{Kind: "Service"})
		start := mark()
		service.Spec.Type, service.Spec.Selector = corev1.ServiceTypeNodePort, map[string]string{"app": "other"}
		Expect(admin.Update(ctx, service, client.FieldOwner(rival))).To(Succeed())
		Eventually(func() map[string]string { return fetched(ctx, service).Spec.Selector }).WithContext(ctx).Should(Equal(map[string]string{"app": app.Name}))
		expectQuiet(ctx, schema.GroupKind{Kind: "Service"})
		Expect(fetched(ctx, service).Spec.Type).To(Equal(corev1.ServiceTypeNodePort))
		repair := "patch services/ as " + childManager
		Expect(writes(start, app)).To(HaveExactElements(repair+": 409", repair+": 200"), "under rules the API server is asked whose a field is")

		service.ManagedFields = slices.DeleteFunc(service.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == rival })
		Expect(admin.Update(ctx, service)).To(Succeed()) // kubectl quell release
		Eventually(func() corev1.ServiceType { return fetched(ctx, service).Spec.Type }).WithContext(ctx).Should(Equal(corev1.ServiceTypeClusterIP))
	})
})
