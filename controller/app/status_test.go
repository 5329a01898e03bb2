package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/fieldowners"
	"github.com/hduolab/quell/controller/ssa"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deployed is the Deployment of an App with a status.
func deployed(app *quellv1alpha1.App, s appsv1.DeploymentStatus, available corev1.ConditionStatus, progressing string) *appsv1.Deployment {
	replicas, deadline := desiredReplicas(app), int32(600)
	s.Conditions = []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: available},
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: progressing},
	}
	if progressing == reasonStuck {
		s.Conditions[1].Status = corev1.ConditionFalse
	}
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: app.Namespace, Name: app.Name, UID: "uid-2", Generation: 5, ResourceVersion: "20",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(app, quellv1alpha1.SchemeGroupVersion.WithKind("App"))},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, ProgressDeadlineSeconds: &deadline,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: app.Spec.Image}}}},
		},
		Status: s,
	}
}

func counts(generation int64, replicas, updated, available int32) appsv1.DeploymentStatus {
	return appsv1.DeploymentStatus{
		ObservedGeneration: generation, Replicas: replicas, UpdatedReplicas: updated, ReadyReplicas: available, AvailableReplicas: available,
	}
}

func running(app *quellv1alpha1.App) *appsv1.Deployment {
	return deployed(app, counts(5, 2, 2, 2), corev1.ConditionTrue, "NewReplicaSetAvailable")
}

// situation is what a reconcile finds.
type situation struct {
	app        *quellv1alpha1.App
	deployment *appsv1.Deployment
	// child changes what became of the Deployment's apply.
	child func(*applied)
	// beside is another child, which is in place.
	beside *applied
	// why is the cause that was found for a rollout without progress.
	why *finding
}

func (s situation) status(g Gomega) quellv1alpha1.AppStatus {
	desired := desiredStatus(s.observed(), s.children())
	app := &quellv1alpha1.App{}
	g.Expect(json.Unmarshal([]byte(asJSON(g, desired)), app)).To(Succeed())
	return app.Status
}

func (s situation) observed() observed {
	seen := observed{app: s.app, live: map[string]client.Object{}, version: "v1", stuck: stuck{why: s.why}}
	if s.deployment != nil {
		seen.live[kindDeployment] = s.deployment
	}
	return seen
}

func (s situation) children() []applied {
	if deletionPending(s.app) {
		return nil
	}
	deployment := applied{child: child{kind: kindDeployment, name: s.app.Name, wanted: true}, Result: ssa.Result{Outcome: ssa.Unchanged}}
	if s.deployment != nil {
		deployment.live, deployment.Object = s.deployment, s.deployment
	}
	if s.child != nil {
		s.child(&deployment)
	}
	if s.beside != nil {
		return []applied{deployment, *s.beside}
	}
	return []applied{deployment, {child: child{kind: kindService, name: s.app.Name, wanted: wantsService(s.app)}}}
}

func outcome(o ssa.Outcome, reasons ...ssa.Reason) func(*applied) {
	return func(a *applied) { a.Outcome, a.Reasons = o, reasons }
}

func refused(err error) func(*applied) {
	return func(a *applied) {
		a.Result, a.err = ssa.Result{Outcome: "Error"}, fmt.Errorf("apply Deployment: %w", err)
	}
}

// rolledOut is an App whose status says that this generation was rolled out.
func rolledOut(app *quellv1alpha1.App) {
	app.Status.Conditions = []metav1.Condition{{
		Type: quellv1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: reasonRolledOut, ObservedGeneration: app.Generation,
	}}
}

func deleted(app *quellv1alpha1.App) {
	now := metav1.Now()
	app.DeletionTimestamp, app.Finalizers = &now, []string{"foregroundDeletion"}
}

func suspended(app *quellv1alpha1.App) { app.Spec.Suspend = ptr.To(true) }

func reporting(app *quellv1alpha1.App) {
	app.Spec.ConflictPolicy = &quellv1alpha1.ConflictPolicy{Mode: quellv1alpha1.ConflictReport}
}

var (
	rival       = fieldowners.Owner{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate}
	stolen      = ssa.Reason{Change: ssa.Taken, Path: ".spec.replicas", Owners: []fieldowners.Owner{rival}}
	deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}
)

type expectation struct {
	phase   quellv1alpha1.AppPhase
	ready   string
	reason  string // of Ready
	present string // the one of Reconciling and Stalled that is there
	kstatus status.Status
	message string // part of Ready's
}

// progressing is what an App says that is on its way.
func progressing(phase quellv1alpha1.AppPhase, ready, reason, message string) expectation {
	return expectation{phase, ready, reason, quellv1alpha1.ConditionReconciling, status.InProgressStatus, message}
}

func stalled(ready, reason, message string) expectation {
	return expectation{quellv1alpha1.PhaseFailed, ready, reason, quellv1alpha1.ConditionStalled, status.FailedStatus, message}
}

var (
	invalid = apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "shop", field.ErrorList{
		field.Invalid(field.NewPath("spec", "b"), "x", "is wrong"), field.Invalid(field.NewPath("spec", "a"), "y", "is wrong too"),
	})
	serves = expectation{quellv1alpha1.PhaseRunning, "2/2", "AllReplicasReady", "", status.CurrentStatus, "serves with all its replicas"}
)

func situations() map[string]struct {
	situation
	expectation
} {
	app, before := shop(), shop(rolledOut)
	on := func(app *quellv1alpha1.App, d *appsv1.Deployment, child ...func(*applied)) situation {
		s := situation{app: app, deployment: d}
		if len(child) > 0 {
			s.child = child[0]
		}
		return s
	}
	rolling := func(s appsv1.DeploymentStatus) *appsv1.Deployment {
		return deployed(app, s, corev1.ConditionTrue, "ReplicaSetUpdated")
	}
	leaving := func(a *applied) { a.leaving, a.Result = true, ssa.Result{} }
	foreign := func(a *applied) {
		a.foreign, a.adoption, a.Result = "it has no owner", "rename the App, or delete that object", ssa.Result{}
	}
	behind := func(a *applied) { a.Object = nil }
	because := func(s situation) situation {
		s.why = &finding{reasonImagePull, "no such image"}
		return s
	}
	with := func(kind string, o client.Object, change ...func(*quellv1alpha1.App)) situation {
		app, c := shop(append(change, exposed)...), inPlace(kind, o)
		return situation{app: app, deployment: running(app), beside: &c}
	}
	held := func(a *applied) {
		a.pending, a.Result = true, ssa.Result{Reasons: []ssa.Reason{{Change: ssa.Changed, Path: ".spec.replicas"}}}
	}
	return map[string]struct {
		situation
		expectation
	}{
		"nothing exists":              {on(app, nil), progressing(quellv1alpha1.PhasePending, "0/2", "Creating", "is being created")},
		"just created":                {on(app, deployed(app, appsv1.DeploymentStatus{}, "", "")), progressing(quellv1alpha1.PhaseProgressing, "0/2", "RollingOut", "rolling out")},
		"first Pods":                  {on(app, deployed(app, counts(5, 2, 2, 1), corev1.ConditionFalse, "ReplicaSetUpdated")), progressing(quellv1alpha1.PhaseProgressing, "1/2", "ReplicasUnavailable", "not all replicas")},
		"serves":                      {on(app, running(app)), serves},
		"serves, cache behind":        {on(app, running(app), behind), serves},
		"generation not seen yet":     {on(app, rolling(counts(4, 2, 2, 2))), progressing(quellv1alpha1.PhaseProgressing, "2/2", "RollingOut", "")},
		"rolling":                     {on(app, rolling(counts(5, 3, 1, 2))), progressing(quellv1alpha1.PhaseProgressing, "2/2", "RollingOut", "")},
		"old Pods left":               {on(app, rolling(counts(5, 3, 2, 3))), progressing(quellv1alpha1.PhaseProgressing, "3/2", "RollingOut", "")},
		"scaling up":                  {on(app, rolling(counts(5, 1, 1, 1))), progressing(quellv1alpha1.PhaseProgressing, "1/2", "RollingOut", "")},
		"scaling down":                {on(app, rolling(counts(5, 3, 3, 3))), progressing(quellv1alpha1.PhaseProgressing, "3/2", "RollingOut", "")},
		"lost a replica":              {on(before, rolling(counts(5, 2, 2, 1))), progressing(quellv1alpha1.PhaseDegraded, "1/2", "ReplicasUnavailable", "")},
		"counts before the condition": {on(app, deployed(app, counts(5, 2, 2, 2), corev1.ConditionFalse, "ReplicaSetUpdated")), expectation{quellv1alpha1.PhaseProgressing, "2/2", "MinimumReplicasUnavailable", "", status.InProgressStatus, ""}},
		"stuck":                       {on(app, deployed(app, counts(5, 3, 1, 2), corev1.ConditionTrue, reasonStuck)), stalled("2/2", "ProgressDeadlineExceeded", "look at its Pods")},
		"stuck, explained":            {because(on(app, deployed(app, counts(5, 3, 1, 2), corev1.ConditionTrue, reasonStuck))), stalled("2/2", reasonImagePull, "no progress within the deadline: no such image")},
		"rolling, explained":          {because(on(app, rolling(counts(5, 3, 1, 2)))), progressing(quellv1alpha1.PhaseProgressing, "2/2", reasonImagePull, "no such image")},
		"first Pods, explained":       {because(on(app, rolling(counts(5, 2, 2, 1)))), progressing(quellv1alpha1.PhaseProgressing, "1/2", reasonImagePull, "no such image")},
		"lost a replica, explained":   {because(on(before, rolling(counts(5, 2, 2, 1)))), progressing(quellv1alpha1.PhaseDegraded, "1/2", reasonImagePull, "no such image")},
		"serves, explained before":    {because(on(app, running(app))), serves},
		"rejected, explained too":     {because(on(app, rolling(counts(5, 3, 1, 2)), refused(invalid))), stalled("2/2", "Rejected", "spec.a")},
		"no address yet":              {with(kindService, balanced()), progressing(quellv1alpha1.PhaseProgressing, "2/2", reasonAddressPending, "has no address from a load balancer yet")},
		"no address any more":         {with(kindService, balanced(), rolledOut), progressing(quellv1alpha1.PhaseProgressing, "2/2", reasonAddressPending, "has no address from a load balancer yet")},
		"address":                     {with(kindService, balanced(corev1.LoadBalancerIngress{IP: "192.0.2.1"})), serves},
		"route not accepted":          {with(kindRoute, routed()), progressing(quellv1alpha1.PhaseProgressing, "2/2", reasonRoutePending, `Gateway "edge" has not accepted HTTPRoute "shop" yet`)},
		"autoscaler without metrics":  {with(kindAutoscaler, hpaWith(scales(autoscalingv2.ScalingActive, corev1.ConditionFalse, "FailedGetResourceMetric"))), serves},
		"suspended":                   {on(shop(suspended), running(app)), expectation{quellv1alpha1.PhaseSuspended, "2/2", "AllReplicasReady", "", status.CurrentStatus, ""}},
		"suspended with a change":     {on(shop(suspended), running(app), held), expectation{quellv1alpha1.PhaseSuspended, "2/2", reasonSuspended, "", status.InProgressStatus, "spec.suspend holds changes back"}},
		"rejected":                    {on(app, running(app), refused(invalid)), stalled("2/2", "Rejected", "spec.a: Invalid value: \"y\": is wrong too; spec.b: Invalid value")},
		"rejected at creation":        {on(app, nil, refused(invalid)), stalled("0/2", "Rejected", "spec.a")},
		"content is invalid":          {on(app, nil, refused(&ssa.InvalidContentError{Reason: "port twice"})), stalled("0/2", "Rejected", "port twice")},
		"forbidden":                   {on(app, running(app), refused(apierrors.NewForbidden(deployments, "shop", errors.New("exceeded quota: q-1")))), stalled("2/2", "Forbidden", "quota")},
		"unreachable":                 {on(app, running(app), refused(errors.New("dial tcp 10.0.0.1:4711: connection refused"))), progressing(quellv1alpha1.PhaseProgressing, "2/2", "ApplyFailed", "trying again")},
		"name taken":                  {on(app, running(app), foreign), stalled("0/2", "NameTaken", "it has no owner; rename the App")},
		"earlier one leaves":          {on(app, running(app), leaving), progressing(quellv1alpha1.PhasePending, "0/2", "WaitingForDeletion", "still being deleted")},
		"conflict": {on(shop(reporting), running(app), func(a *applied) {
			a.Outcome, a.Conflicts = ssa.Conflicted, []fieldowners.Conflict{{Path: ".spec.replicas", Owner: rival}}
		}), stalled("2/2", "FieldConflict", `.spec.replicas belongs to "kubectl-edit" (Update)`)},
		"contended":                 {on(app, running(app), outcome(ssa.Contended, stolen)), progressing(quellv1alpha1.PhaseDegraded, "2/2", "FieldContended", `.spec.replicas of Deployment "shop" taken back again and again by "kubectl-edit" (Update)`)},
		"contended by nobody known": {on(shop(reporting), running(app), outcome(ssa.Contended, ssa.Reason{Change: ssa.Added, Path: ".x"})), progressing(quellv1alpha1.PhaseDegraded, "2/2", "FieldContended", "an unknown writer")},
		"does not stick":            {on(app, running(app), outcome(ssa.DoesNotStick, ssa.Reason{Change: ssa.Lost, Path: ".spec.x"})), stalled("2/2", "NotKept", ".spec.x; an admission policy")},
		"gone":                      {on(app, running(app), func(a *applied) { a.Result = ssa.Result{Outcome: ssa.Gone} }), progressing(quellv1alpha1.PhasePending, "0/2", "Creating", "")},
		"being deleted":             {on(shop(deleted), running(app)), expectation{quellv1alpha1.PhaseTerminating, "2/2", "Terminating", "", status.TerminatingStatus, "is being deleted"}},
	}
}

func TestStatusTells(t *testing.T) {
	for name, c := range situations() {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := c.status(g)
			ready := meta.FindStatusCondition(s.Conditions, quellv1alpha1.ConditionReady)
			g.Expect(ready).NotTo(BeNil())
			g.Expect(s.Phase).To(Equal(c.phase), ready.Message)
			g.Expect(s.Ready).To(Equal(c.ready))
			g.Expect(ready.Reason).To(Equal(c.reason))
			g.Expect(ready.Message).To(ContainSubstring(c.message))
			g.Expect(meta.IsStatusConditionTrue(s.Conditions, quellv1alpha1.ConditionReady)).To(Equal(c.kstatus == status.CurrentStatus))
			for _, kind := range []string{quellv1alpha1.ConditionReconciling, quellv1alpha1.ConditionStalled} {
				g.Expect(meta.IsStatusConditionTrue(s.Conditions, kind)).To(Equal(kind == c.present), kind)
			}
			g.Expect(kstatusOf(g, c.app, s)).To(Equal(c.kstatus))
			for _, condition := range s.Conditions {
				g.Expect(condition.ObservedGeneration).To(Equal(c.app.Generation))
			}
		})
	}
}

// kstatusOf is what kstatus, and with it Argo CD, Flux and kpt, makes of an App.
func kstatusOf(g Gomega, app *quellv1alpha1.App, s quellv1alpha1.AppStatus) status.Status {
	app = app.DeepCopy()
	app.Status = s
	return compute(g, app, quellv1alpha1.SchemeGroupVersion.WithKind("App"))
}

func compute(g Gomega, o runtime.Object, kind schema.GroupVersionKind) status.Status {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	g.Expect(err).NotTo(HaveOccurred())
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind)
	result, err := status.Compute(u)
	g.Expect(err).NotTo(HaveOccurred())
	return result.Status
}

// What moves by itself, or differs from cluster to cluster, must not reach the status.
func TestStatusHoldsNothingVolatile(t *testing.T) {
	before, after := situations(), situations()
	for name := range before {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			moved := after[name].situation
			moved.app.UID, moved.app.ResourceVersion = "other", "999"
			if moved.deployment != nil {
				age(moved.deployment)
				moved.deployment.OwnerReferences[0].UID = moved.app.UID
			}
			child := moved.child
			moved.child = func(a *applied) {
				if child != nil {
					child(a)
				}
				a.RetryAfter += time.Hour
				if strings.Contains(fmt.Sprint(a.err), "4711") {
					a.err = errors.New("dial tcp 10.0.0.2:1234: i/o timeout")
				}
			}
			g.Expect(asJSON(g, moved.status(g))).To(Equal(asJSON(g, before[name].status(g))))
		})
	}
}

func TestTheImageThatIsRolledOutIsKeptUntilTheNextIs(t *testing.T) {
	before := func(app *quellv1alpha1.App) { app.Status.RolledOutImage = "shop:0" }
	app := shop(before)
	complete := running(app)
	complete.Spec.Template.Spec.Containers = []corev1.Container{{Name: "proxy", Image: "proxy:1"}, {Name: containerName, Image: "shop:1"}}
	complete.Annotations = map[string]string{annotationRevision: "4"}
	odd := running(app)
	odd.Annotations = map[string]string{annotationRevision: "-1"}
	for name, c := range map[string]struct {
		situation
		image    string
		revision int64
	}{
		"never rolled out":   {situation{app: shop()}, "", 0},
		"no Deployment":      {situation{app: app}, "shop:0", 0},
		"rolling":            {situation{app: app, deployment: deployed(app, counts(5, 3, 1, 2), corev1.ConditionTrue, "ReplicaSetUpdated")}, "shop:0", 0},
		"not observed":       {situation{app: app, deployment: deployed(app, counts(4, 2, 2, 2), corev1.ConditionTrue, "NewReplicaSetAvailable")}, "shop:0", 0},
		"rolled out":         {situation{app: app, deployment: complete}, "shop:1", 4},
		"an odd revision":    {situation{app: app, deployment: odd}, "shop:0", 0},
		"an App to be gone":  {situation{app: shop(before, deleted)}, "shop:0", 0},
		"of somebody else's": {situation{app: app, deployment: complete, child: func(a *applied) { a.foreign = "it has no owner" }}, "shop:0", 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := c.status(g)
			g.Expect(s.Image).To(Equal("shop:1"))
			g.Expect(s.RolledOutImage).To(Equal(c.image))
			g.Expect(s.Revision).To(Equal(c.revision))
			g.Expect(s.OperatorVersion).To(Equal("v1"))
			g.Expect(s.Rendering).To(BeNumerically(">", 0))
		})
	}
}

// age changes everything about a Deployment that has no meaning.
func age(d *appsv1.Deployment) {
	collisions := int32(3)
	d.UID, d.ResourceVersion, d.Annotations = types.UID("other"), "999", map[string]string{"seen": "9"}
	d.Status.CollisionCount, d.Status.TerminatingReplicas, d.Status.UnavailableReplicas = &collisions, &collisions, 3
	for i := range d.Status.Conditions {
		c := &d.Status.Conditions[i]
		c.LastUpdateTime, c.LastTransitionTime, c.Message = metav1.Now(), metav1.Now(), `ReplicaSet "shop-5f7c9" has timed out progressing.`
	}
}

// Over every small Deployment: an App is Ready only when kstatus too calls its Deployment rolled out.
func TestReadyImpliesThatTheDeploymentIsRolledOut(t *testing.T) {
	g := NewWithT(t)
	readyOnes := 0
	each(4, func(observed, replicas, updated, available int32) {
		for desired := range int32(4) {
			for _, condition := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse} {
				app := shop(func(app *quellv1alpha1.App) { app.Spec.Replicas = &desired })
				d := deployed(app, counts(2+int64(observed), replicas, updated, available), condition, "NewReplicaSetAvailable")
				if !meta.IsStatusConditionTrue((situation{app: app, deployment: d}).status(g).Conditions, quellv1alpha1.ConditionReady) {
					continue
				}
				readyOnes++
				g.Expect(compute(g, d, appsv1.SchemeGroupVersion.WithKind("Deployment"))).To(Equal(status.CurrentStatus), "desired %d, status %+v", desired, d.Status)
			}
		}
	})
	g.Expect(readyOnes).To(BeNumerically(">=", 4))
}

// each calls f with all combinations of numbers below n that a Deployment can have.
func each(n int32, f func(observed, replicas, updated, available int32)) {
	for observed := range n {
		for replicas := range n {
			for updated := range replicas + 1 {
				for available := range replicas + 1 {
					f(observed, replicas, updated, available)
				}
			}
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	g := NewWithT(t)
	for i := range 4 { // so that the cut falls on each byte of a character
		message := found(reasonConflict, "%s%s", strings.Repeat("x", i), strings.Repeat("é中", 1000)).message
		g.Expect(len(message)).To(BeNumerically("<=", maxMessage))
		g.Expect(utf8.ValidString(message)).To(BeTrue())
		g.Expect(message).To(HaveSuffix("..."))
	}
	g.Expect(found(reasonConflict, "short").message).To(Equal("short"))
}

func TestEndpointIsOfAServiceThatWorks(t *testing.T) {
	app := shop(withEverything)
	for name, c := range map[string]struct {
		service  applied
		endpoint string
	}{
		"in place":  {applied{Result: ssa.Result{Outcome: ssa.Unchanged}}, "shop.team.svc:80"},
		"contended": {applied{Result: ssa.Result{Outcome: ssa.Contended}}, "shop.team.svc:80"},
		"refused":   {applied{err: errors.New("no")}, ""},
		"foreign":   {applied{foreign: "it has no owner"}, ""},
		"leaving":   {applied{leaving: true}, ""},
		"gone":      {applied{Result: ssa.Result{Outcome: ssa.Gone}}, ""},
		"conflict":  {applied{Result: ssa.Result{Outcome: ssa.Conflicted}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c.service.kind = "Service"
			desired := desiredStatus(observed{app: app}, []applied{c.service})
			if c.endpoint == "" {
				g.Expect(desired.Status.Endpoint).To(BeNil())
			} else {
				g.Expect(desired.Status.Endpoint).To(HaveValue(Equal(c.endpoint)))
			}
		})
	}
}
