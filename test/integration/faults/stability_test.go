package faults_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

// The fields that a child is spoiled in, with a value that no App here asks for.
var wrongFields = map[string]struct {
	path  []string
	value any
}{
	"Deployment":              {[]string{"spec", "template", "spec", "containers"}, []any{map[string]any{"name": "app", "image": "registry.example.com/wrong:1"}}},
	"Service":                 {[]string{"spec", "type"}, "NodePort"},
	"ServiceAccount":          {[]string{"metadata", "labels", "team"}, "wrong"},
	"NetworkPolicy":           {[]string{"spec", "podSelector", "matchLabels", "app.kubernetes.io/name"}, "wrong"},
	"HorizontalPodAutoscaler": {[]string{"spec", "maxReplicas"}, int64(9)},
	"PodDisruptionBudget":     {[]string{"spec", "maxUnavailable"}, int64(7)},
	"Ingress":                 {[]string{"spec", "rules"}, []any{map[string]any{"host": "wrong.example.com"}}},
	"HTTPRoute":               {[]string{"spec", "hostnames"}, []any{"wrong.example.com"}},
}

// spoiled is an object of which something is wrong, and how.
type spoiled struct {
	app *quellv1alpha1.App
	k   childKind
	how string
}

// spoils are the ways in which a child may be wrong when the operator starts. The ones that leave something in the operator's way
// tell so by true: that has to be said by the status, and everything else done.
var spoils = []struct {
	how      string
	obstacle bool
	do       func(context.Context, *quellv1alpha1.App, childKind) error
}{
	{"missing", false, remove},
	{"wrong by an update", false, spoil},
	{"stolen by a forced apply", false, steal},
	{"managedFields stripped", false, strip},
	{"without the labels", false, editMeta(func(o client.Object) { o.SetLabels(map[string]string{"team": "wrong"}) })},
	{"without an owner", false, editMeta(func(o client.Object) { o.SetOwnerReferences(nil) })},
	{"wrong, stripped and without the labels", false, func(ctx context.Context, a *quellv1alpha1.App, k childKind) error {
		return firstOf(ctx, a, k, spoil, editMeta(func(o client.Object) { o.SetLabels(nil) }), strip)
	}},
	{"half deleted", true, halfDelete},
	{"foreign", true, makeForeign},
}

func remove(ctx context.Context, a *quellv1alpha1.App, k childKind) error {
	o := k.empty()
	o.SetNamespace(a.Namespace)
	o.SetName(a.Name)
	return client.IgnoreNotFound(admin.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

func firstOf(ctx context.Context, a *quellv1alpha1.App, k childKind, steps ...func(context.Context, *quellv1alpha1.App, childKind) error) error {
	for _, step := range steps {
		if err := step(ctx, a, k); err != nil {
			return err
		}
	}
	return nil
}

// editMeta updates a child's metadata as somebody would who does not know whose it is.
func editMeta(f func(client.Object)) func(context.Context, *quellv1alpha1.App, childKind) error {
	return func(ctx context.Context, a *quellv1alpha1.App, k childKind) error {
		o := k.empty()
		o.SetNamespace(a.Namespace)
		o.SetName(a.Name)
		return tryChange(ctx, o, f)
	}
}

// spoil changes a value by an update, which takes the field.
func spoil(ctx context.Context, a *quellv1alpha1.App, k childKind) error {
	wrong := wrongFields[k.name]
	return patchAs(ctx, a, k, wrong.value, wrong.path...)
}

func patchAs(ctx context.Context, a *quellv1alpha1.App, k childKind, value any, path ...string) error {
	o, err := fetch(ctx, a, k)
	if err != nil {
		return err
	}
	before := o.DeepCopy()
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		return err
	}
	return admin.Patch(ctx, o, client.MergeFrom(before), client.FieldOwner("kubectl-edit"))
}

// steal takes the same field by a forced apply of another manager.
func steal(ctx context.Context, a *quellv1alpha1.App, k childKind) error {
	live, err := fetch(ctx, a, k)
	if err != nil {
		return err
	}
	wrong, u := wrongFields[k.name], &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(live.GroupVersionKind())
	u.SetNamespace(a.Namespace)
	u.SetName(a.Name)
	if err := unstructured.SetNestedField(u.Object, wrong.value, wrong.path...); err != nil {
		return err
	}
	return admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("rival"), client.ForceOwnership)
}

func strip(ctx context.Context, a *quellv1alpha1.App, k childKind) error {
	o, err := fetch(ctx, a, k)
	if err != nil {
		return err
	}
	return admin.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`)))
}

func halfDelete(ctx context.Context, a *quellv1alpha1.App, k childKind) error {
	return firstOf(ctx, a, k, editMeta(func(o client.Object) { o.SetFinalizers([]string{"example.com/hold"}) }), remove)
}

// makeForeign puts an object of the same name there that another controller owns.
func makeForeign(ctx context.Context, a *quellv1alpha1.App, k childKind) error {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "owner-of-" + a.Name}}
	if err := admin.Create(ctx, owner); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := admin.Get(ctx, client.ObjectKeyFromObject(owner), owner); err != nil {
		return err
	}
	o := k.empty()
	if err := admin.Get(ctx, client.ObjectKeyFromObject(a), o); err != nil {
		return err
	}
	if err := remove(ctx, a, k); err != nil {
		return err
	}
	o.SetResourceVersion("")
	o.SetUID("")
	o.SetManagedFields(nil)
	o.SetLabels(nil)
	o.SetOwnerReferences(nil)
	if s, ok := o.(*corev1.Service); ok {
		s.Spec.ClusterIP, s.Spec.ClusterIPs = "", nil
	}
	if err := controllerutil.SetControllerReference(owner, o, scheme); err != nil {
		return err
	}
	return admin.Create(ctx, o, client.FieldOwner("another-operator"))
}

func fetch(ctx context.Context, a *quellv1alpha1.App, k childKind) (*unstructured.Unstructured, error) {
	gvk, err := apiutil.GVKForObject(k.empty(), scheme)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u, admin.Get(ctx, client.ObjectKeyFromObject(a), u)
}

// statusSpoils are the ways in which a status may be wrong when the operator starts.
var statusSpoils = []struct {
	how string
	do  func(context.Context, *quellv1alpha1.App) error
}{
	{"status right", func(context.Context, *quellv1alpha1.App) error { return nil }},
	{"status removed", updateStatus(func(s *quellv1alpha1.AppStatus) {
		theirs := slices.DeleteFunc(s.Conditions, func(c metav1.Condition) bool { return c.Type != "example.com/Audited" })
		*s = quellv1alpha1.AppStatus{Conditions: theirs}
	})},
	{"status corrupted", updateStatus(func(s *quellv1alpha1.AppStatus) {
		s.Phase, s.Ready, s.Replicas, s.ObservedGeneration = quellv1alpha1.PhaseFailed, "9/9", ptr.To[int32](9), 99
		for i := range s.Children {
			s.Children[i].Ready, s.Children[i].Reason = metav1.ConditionFalse, "Wrong"
		}
		for i := range s.Conditions {
			s.Conditions[i].Status, s.Conditions[i].Reason = metav1.ConditionUnknown, "Wrong"
		}
	})},
	{"status stolen by a forced apply", func(ctx context.Context, a *quellv1alpha1.App) error {
		return applyStatusAs(ctx, a, "rival", map[string]any{"phase": "Pending", "ready": "0/9", "observedGeneration": int64(99)})
	}},
	{"managedFields of the App stripped", stripApp},
}

func stripApp(ctx context.Context, a *quellv1alpha1.App) error {
	return admin.Patch(ctx, a, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`)))
}

// audited is a condition of another manager, which the operator has to leave alone.
var audited = map[string]any{
	"type": "example.com/Audited", "status": "True", "reason": "Yes", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
}

func updateStatus(f func(*quellv1alpha1.AppStatus)) func(context.Context, *quellv1alpha1.App) error {
	return func(ctx context.Context, a *quellv1alpha1.App) error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(a), a); err != nil {
			return err
		}
		f(&a.Status)
		return admin.Status().Update(ctx, a, client.FieldOwner("kubectl-edit"))
	}
}

func applyStatusAs(ctx context.Context, a *quellv1alpha1.App, manager string, status map[string]any) error {
	u := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	u.SetGroupVersionKind(quellv1alpha1.SchemeGroupVersion.WithKind("App"))
	u.SetNamespace(a.Namespace)
	u.SetName(a.Name)
	return admin.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(manager), client.ForceOwnership)
}

// draw makes a spec at random.
func draw(r *rand.Rand) func(*quellv1alpha1.AppSpec) {
	image, replicas := imageNo(1+r.IntN(3)), int32(1+r.IntN(3))
	var parts []func(*quellv1alpha1.AppSpec)
	for _, part := range []func(*quellv1alpha1.AppSpec){withAccount, withPolicy, withAutoscaler, withBudget, withIngress, withRoute} {
		if r.IntN(2) == 0 {
			parts = append(parts, part)
		}
	}
	return func(s *quellv1alpha1.AppSpec) {
		defaults := newApp("", "").Spec
		*s = defaults
		s.Image, s.Replicas = image, &replicas
		for _, part := range parts {
			part(s)
		}
	}
}

var _ = Describe("From any starting state", func() {
	It("every App gets what it asks for, and then nothing is written", func(ctx SpecContext) {
		r := random()
		ns := newNamespace(ctx)
		apps := make([]*quellv1alpha1.App, 8)
		for i := range apps {
			spec := draw(r)
			if i == 0 {
				spec = func(s *quellv1alpha1.AppSpec) { withAll(s) }
			}
			apps[i] = create(ctx, newApp(ns, fmt.Sprintf("app-%d", i), spec))
		}
		o := startOperator(ns)
		converge(ctx, apps...)
		for _, a := range apps {
			Expect(applyStatusAs(ctx, a, "auditor", map[string]any{"conditions": []any{audited}})).To(Succeed())
		}
		states, obstacles, kept := 0, 0, map[string]bool{}
		for round := range 2 * rounds {
			o.stop()
			spoiledNow := spoilAll(ctx, r, apps, kept)
			states += len(apps)
			fmt.Fprintf(GinkgoWriter, "round %d, seed %d:\n%s\n", round, seed, strings.Join(spoiledNow.words, "\n"))
			o.restart()
			for _, s := range spoiledNow.obstacles {
				obstacles++
				s.expectTold(ctx)
				Expect(s.clear(ctx)).To(Succeed())
				touch(ctx, s.app) // what is not the App's is not watched, but looked at again within a minute
			}
			for _, a := range apps {
				Eventually(ctx, func() error { return asAsked(ctx, a) }).Should(Succeed(), "round %d, seed %d: %s", round, seed, spoiledNow.of(a))
				Expect(meta.FindStatusCondition(a.Status.Conditions, "example.com/Audited")).NotTo(BeNil(), "of another manager: %s", spoiledNow.of(a))
			}
		}
		tell("%d Apps in %d starting states, %d obstacles, seed %d: all as asked", len(apps), states, obstacles, seed)
		expectQuiet(ctx, ns)
	})
})

var _ = Describe("A condition that tells of trouble", func() {
	// Such a condition is absent in good times, so that the operator does not own it then. What others co-own stays with an apply that
	// leaves it out, and kstatus calls an App failed for a Stalled that is True, whoever says so.
	It("does not outlive the trouble, whoever else owns it", func(ctx SpecContext) {
		namespaces := map[string]string{}
		for how := range shares {
			namespaces[how] = newNamespace(ctx)
		}
		inParallel(len(shares), slices.Sorted(maps.Keys(shares)), func(how string) { outlive(ctx, namespaces[how], how) })
		tell("a Stalled that somebody else owns too, in %d ways, is over with its cause", len(shares))
	})
})

// shares are the ways in which somebody else comes to own the condition Stalled.
var shares = map[string]func(context.Context, *quellv1alpha1.App) error{
	"managedFields were stripped": stripApp,
	"somebody wrote it too": updateStatus(func(s *quellv1alpha1.AppStatus) {
		for i := range s.Conditions {
			s.Conditions[i].Message = "from a person"
		}
	}),
	"somebody applied it too": func(ctx context.Context, a *quellv1alpha1.App) error {
		return applyStatusAs(ctx, a, "rival", map[string]any{"conditions": []any{map[string]any{
			"type": "Stalled", "status": "True", "reason": "Mine", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
		}}})
	},
}

// outlive has an App stalled, somebody else own that too, and the cause end.
func outlive(ctx context.Context, ns, how string) {
	GinkgoHelper()
	o := newOperator(ns)
	o.start()
	defer o.stop()
	a := create(ctx, newApp(ns, "shop", func(s *quellv1alpha1.AppSpec) {
		s.Ports = append(s.Ports, quellv1alpha1.AppPort{Name: "admin", ContainerPort: 9090})
		s.Service = &quellv1alpha1.AppService{Ports: []quellv1alpha1.AppServicePort{{Name: "http", Port: 80}, {Name: "admin", Port: 80}}}
	}))
	eventuallySays(ctx, a, quellv1alpha1.ConditionStalled, "Rejected")
	o.idle(ctx)
	Expect(shares[how](ctx, a)).To(Succeed())
	touch(ctx, a)
	o.idle(ctx)
	ask(ctx, a, func(s *quellv1alpha1.AppSpec) { s.Ports, s.Service = s.Ports[:1], nil })
	Eventually(ctx, func(g Gomega) {
		c := condition(ctx, g, a, quellv1alpha1.ConditionReady)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Status).To(Equal(metav1.ConditionTrue))
		for _, kind := range []string{quellv1alpha1.ConditionStalled, quellv1alpha1.ConditionReconciling} {
			g.Expect(meta.IsStatusConditionTrue(a.Status.Conditions, kind)).To(BeFalse(), "%s: %+v", kind, a.Status.Conditions)
		}
	}).WithTimeout(30*time.Second).Should(Succeed(), how)
	expectQuiet(ctx, ns)
}

// spoilt is what was made wrong in one round.
type spoilt struct {
	words     []string
	obstacles []spoiled
}

// of are the words about one App.
func (s spoilt) of(a *quellv1alpha1.App) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(s.words), func(w string) bool { return !strings.HasPrefix(w, a.Name+" ") }), "; ")
}

// spoilAll brings each App into a state drawn at random while no operator runs. Some Apps keep their spec from then on: what is not
// asked for any more can only be given up where managedFields or labels still say whose it is (see package ssa).
func spoilAll(ctx context.Context, r *rand.Rand, apps []*quellv1alpha1.App, kept map[string]bool) spoilt {
	GinkgoHelper()
	var done spoilt
	for _, a := range apps {
		status := statusSpoils[r.IntN(len(statusSpoils))]
		done.words = append(done.words, a.Name+" "+status.how)
		hasObstacle, unmarked := false, false
		kept[a.Name] = kept[a.Name] || strings.Contains(status.how, "stripped")
		for _, k := range childKinds {
			s := spoils[r.IntN(len(spoils))]
			if !k.wanted(&a.Spec) || r.IntN(3) == 0 || s.obstacle && hasObstacle {
				continue
			}
			Expect(s.do(ctx, a, k)).To(Succeed(), "%s %s of %s", s.how, k.name, a.Name)
			done.words = append(done.words, fmt.Sprintf("%s %s %s", a.Name, k.name, s.how))
			kept[a.Name] = kept[a.Name] || strings.Contains(s.how, "stripped")
			unmarked = unmarked || strings.Contains(s.how, "without the labels")
			if s.obstacle {
				hasObstacle = true
				done.obstacles = append(done.obstacles, spoiled{a, k, s.how})
			}
		}
		Expect(status.do(ctx, a)).To(Succeed(), "%s of %s", status.how, a.Name)
		if !hasObstacle && !unmarked && !kept[a.Name] && r.IntN(2) == 0 {
			ask(ctx, a, draw(r))
			done.words = append(done.words, a.Name+" asks for something else")
		}
	}
	return done
}

// expectTold wants the status to say what is in the way, and everything else to be as asked.
func (s spoiled) expectTold(ctx context.Context) {
	GinkgoHelper()
	kind, reason := quellv1alpha1.ConditionReconciling, "WaitingForDeletion"
	if s.how == "foreign" {
		kind, reason = quellv1alpha1.ConditionStalled, "NameTaken"
	}
	Expect(eventuallySays(ctx, s.app, kind, reason)).To(ContainSubstring(s.k.name), "%s %s of %s", s.how, s.k.name, s.app.Name)
	Eventually(ctx, func() error { return childrenAsAsked(ctx, s.app, s.k.name) }).Should(Succeed())
}

// clear takes an obstacle out of the way, as its owner would.
func (s spoiled) clear(ctx context.Context) error {
	if s.how == "foreign" {
		return remove(ctx, s.app, s.k)
	}
	return editMeta(func(o client.Object) { o.SetFinalizers(nil) })(ctx, s.app, s.k)
}
