package app

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
)

// holder is an entry of managedFields that owns the number of Pods.
func holder(manager string, operation metav1.ManagedFieldsOperationType, subresource string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, Subresource: subresource, APIVersion: "apps/v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
	}
}

var (
	heldByUs         = holder(ChildManager, metav1.ManagedFieldsOperationApply, "")
	heldByUsOnce     = holder(ChildManager, metav1.ManagedFieldsOperationUpdate, "")
	heldByAutoscaler = holder(autoscalerManager, metav1.ManagedFieldsOperationUpdate, scaleSubresource)
	heldByScale      = holder("kubectl", metav1.ManagedFieldsOperationUpdate, scaleSubresource)
	heldByEdit       = holder("kubectl-edit", metav1.ManagedFieldsOperationUpdate, "")
	heldByApply      = holder("gitops", metav1.ManagedFieldsOperationApply, "")
	heldByScaleApply = holder("gitops", metav1.ManagedFieldsOperationApply, scaleSubresource)
)

func deploymentOf(replicas int32, entries ...metav1.ManagedFieldsEntry) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop", ManagedFields: entries},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
	}
}

func scalerOf(name string, low *int32, high, last int32) autoscalingv2.HorizontalPodAutoscaler {
	return autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: kindDeployment, Name: "shop"},
			MinReplicas:    low, MaxReplicas: high,
		},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{DesiredReplicas: last},
	}
}

func TestReplicas(t *testing.T) {
	between := func(low, high int32) *quellv1alpha1.AppAutoscaling {
		return &quellv1alpha1.AppAutoscaling{MinReplicas: low, MaxReplicas: high}
	}
	hpas := func(list ...autoscalingv2.HorizontalPodAutoscaler) []autoscalingv2.HorizontalPodAutoscaler {
		return list
	}
	was := []metav1.Condition{{Type: quellv1alpha1.ConditionAutoscalingActive, Status: metav1.ConditionFalse}}
	stated := func(n int32) count { return count{value: &n} }
	unsure := func(n int32) count { return count{value: &n, unsure: true} }
	handedBack := func(n int32) count { return count{value: &n, unsure: true, uncontested: true} }
	live := func(n int32) count { return count{value: &n, uncontested: true} }
	for name, c := range map[string]struct {
		asked       *int32
		autoscaling *quellv1alpha1.AppAutoscaling
		scalers     []autoscalingv2.HorizontalPodAutoscaler
		conditions  []metav1.Condition
		deployment  *appsv1.Deployment
		want        count
	}{
		"a new Deployment": {asked: ptr.To[int32](3), want: stated(3)},
		"a new Deployment of an App that says nothing":            {want: stated(1)},
		"a new Deployment of none":                                {asked: ptr.To[int32](0), want: stated(0)},
		"a new Deployment below the autoscaler's bounds":          {asked: ptr.To[int32](1), autoscaling: between(2, 5), want: stated(2)},
		"a new Deployment above them":                             {asked: ptr.To[int32](9), autoscaling: between(2, 5), want: stated(5)},
		"a new Deployment within them":                            {asked: ptr.To[int32](4), autoscaling: between(2, 5), want: stated(4)},
		"a new Deployment without a lower bound":                  {asked: ptr.To[int32](0), autoscaling: between(0, 5), want: stated(1)},
		"a new Deployment under a foreign autoscaler":             {asked: ptr.To[int32](1), scalers: hpas(scalerOf("a", ptr.To[int32](3), 9, 0)), want: stated(3)},
		"a new Deployment under one without a lower bound":        {asked: ptr.To[int32](0), scalers: hpas(scalerOf("a", nil, 9, 0)), want: stated(1)},
		"a new Deployment under one that may go to none":          {asked: ptr.To[int32](0), scalers: hpas(scalerOf("a", ptr.To[int32](0), 9, 0)), want: stated(0)},
		"a Deployment made again begins where its autoscaler was": {asked: ptr.To[int32](1), scalers: hpas(scalerOf("a", nil, 9, 7)), want: stated(7)},
		"... within the bounds that are asked for now":            {asked: ptr.To[int32](1), autoscaling: between(2, 5), scalers: hpas(scalerOf("a", nil, 9, 7)), want: stated(5)},
		"as asked":                                                    {asked: ptr.To[int32](3), deployment: deploymentOf(3, heldByUs), want: live(3)},
		"more are asked for":                                          {asked: ptr.To[int32](5), deployment: deploymentOf(3, heldByUs), want: stated(5)},
		"fewer are asked for":                                         {asked: ptr.To[int32](2), deployment: deploymentOf(3, heldByUs), want: unsure(2)},
		"somebody has edited it upwards":                              {asked: ptr.To[int32](2), deployment: deploymentOf(3, heldByEdit), want: unsure(2)},
		"somebody has edited it downwards":                            {asked: ptr.To[int32](5), deployment: deploymentOf(3, heldByEdit), want: unsure(5)},
		"somebody has scaled it":                                      {asked: ptr.To[int32](5), deployment: deploymentOf(3, heldByScale), want: unsure(5)},
		"somebody has applied the same":                               {asked: ptr.To[int32](3), deployment: deploymentOf(3, heldByApply), want: live(3)},
		"nobody is known to own it":                                   {asked: ptr.To[int32](2), deployment: deploymentOf(3), want: unsure(2)},
		"an autoscaler that is gone left more":                        {asked: ptr.To[int32](2), deployment: deploymentOf(3, heldByAutoscaler), want: handedBack(2)},
		"an autoscaler that is gone left fewer":                       {asked: ptr.To[int32](5), deployment: deploymentOf(3, heldByAutoscaler), want: handedBack(5)},
		"an autoscaler that is gone left as many":                     {asked: ptr.To[int32](3), deployment: deploymentOf(3, heldByAutoscaler), want: live(3)},
		"scaled while there was an autoscaler":                        {asked: ptr.To[int32](2), conditions: was, deployment: deploymentOf(3, heldByScale), want: handedBack(2)},
		"scaled to none while there was an autoscaler":                {asked: ptr.To[int32](2), conditions: was, deployment: deploymentOf(0), want: handedBack(2)},
		"edited while there was an autoscaler":                        {asked: ptr.To[int32](2), conditions: was, deployment: deploymentOf(3, heldByEdit), want: unsure(2)},
		"autoscaling begins":                                          {asked: ptr.To[int32](2), autoscaling: between(3, 5), deployment: deploymentOf(2, heldByUs), want: live(2)},
		"autoscaling begins, another number is asked for":             {asked: ptr.To[int32](1), autoscaling: between(3, 5), deployment: deploymentOf(2, heldByUs), want: live(2)},
		"autoscaling begins at none":                                  {asked: ptr.To[int32](0), autoscaling: between(3, 5), deployment: deploymentOf(0, heldByUs), want: live(3)},
		"the autoscaler has moved it":                                 {asked: ptr.To[int32](1), autoscaling: between(3, 5), deployment: deploymentOf(4, heldByAutoscaler), want: count{}},
		"the autoscaler has moved it and we wrote the same":           {asked: ptr.To[int32](1), autoscaling: between(3, 5), deployment: deploymentOf(4, heldByAutoscaler, heldByUs), want: live(4)},
		"an entry of ours that is no apply counts as somebody else's": {asked: ptr.To[int32](1), autoscaling: between(3, 5), deployment: deploymentOf(4, heldByAutoscaler, heldByUsOnce), want: count{}},
		"somebody has scaled it to none, which is booked on nobody":   {asked: ptr.To[int32](1), autoscaling: between(3, 5), deployment: deploymentOf(0), want: count{}},
		"somebody has edited it to none":                              {asked: ptr.To[int32](1), autoscaling: between(3, 5), deployment: deploymentOf(0, heldByEdit), want: live(0)},
		"somebody has edited it to none and we wrote the same":        {asked: ptr.To[int32](1), autoscaling: between(3, 5), deployment: deploymentOf(0, heldByEdit, heldByUs), want: live(0)},
		"somebody else may give it up again":                          {asked: ptr.To[int32](1), autoscaling: between(3, 5), deployment: deploymentOf(4, heldByApply), want: live(4)},
		"somebody else may give it up again, through scale too":       {asked: ptr.To[int32](1), autoscaling: between(3, 5), deployment: deploymentOf(4, heldByScaleApply), want: live(4)},
		"a foreign autoscaler comes":                                  {asked: ptr.To[int32](2), scalers: hpas(scalerOf("a", nil, 9, 0)), deployment: deploymentOf(2, heldByUs), want: live(2)},
		"a foreign autoscaler comes, another number is asked for":     {asked: ptr.To[int32](5), scalers: hpas(scalerOf("a", nil, 9, 0)), deployment: deploymentOf(2, heldByUs), want: live(2)},
		"a foreign autoscaler over none":                              {asked: ptr.To[int32](0), scalers: hpas(scalerOf("a", nil, 9, 0)), deployment: deploymentOf(0, heldByUs), want: live(0)},
		"a foreign autoscaler has moved it":                           {asked: ptr.To[int32](2), scalers: hpas(scalerOf("a", nil, 9, 0)), deployment: deploymentOf(6, heldByAutoscaler), want: count{}},
		"the App's autoscaler is on its way out":                      {asked: ptr.To[int32](2), scalers: hpas(scalerOf("shop", nil, 9, 6)), deployment: deploymentOf(6, heldByAutoscaler), want: count{}},
	} {
		t.Run(name, func(t *testing.T) {
			seen := observed{
				app: &quellv1alpha1.App{
					ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop"},
					Spec:       quellv1alpha1.AppSpec{Replicas: c.asked, Autoscaling: c.autoscaling},
					Status:     quellv1alpha1.AppStatus{Conditions: c.conditions},
				},
				live: map[string]client.Object{}, scalers: c.scalers,
			}
			if c.deployment != nil {
				seen.live[kindDeployment] = c.deployment
			}
			NewWithT(t).Expect(replicas(seen)).To(Equal(c.want))
		})
	}
}

func TestTentative(t *testing.T) {
	g := NewWithT(t)
	seen := observed{app: &quellv1alpha1.App{Spec: quellv1alpha1.AppSpec{Replicas: ptr.To[int32](2)}}, live: map[string]client.Object{}}
	deployment, autoscaler, service := kindNamed(kindDeployment), kindNamed(kindAutoscaler), kindNamed(kindService)
	g.Expect(isTentative(deployment, seen)).To(BeFalse())
	g.Expect(isTentative(autoscaler, seen)).To(BeTrue())
	g.Expect(isTentative(service, seen)).To(BeTrue(), "to be deleted")
	withPorts(seen.app)
	g.Expect(isTentative(service, seen)).To(BeFalse())
	seen.app.Spec.Autoscaling = &quellv1alpha1.AppAutoscaling{MinReplicas: 1, MaxReplicas: 2}
	g.Expect(isTentative(autoscaler, seen)).To(BeTrue())
	seen.app.Spec.Autoscaling = nil
	seen.live[kindDeployment] = deploymentOf(3, heldByUs)
	g.Expect(isTentative(deployment, seen)).To(BeTrue())
	seen.sure = true
	for _, k := range kinds {
		g.Expect(isTentative(k, seen)).To(BeFalse(), k.name)
	}
}

func TestHandoverIsNoTaking(t *testing.T) {
	g := NewWithT(t)
	reasons := []ssa.Reason{{Change: ssa.Changed, Path: ".spec.minReadySeconds"}, {Change: ssa.Taken, Path: replicasField}}
	a := applied{child: child{uncontested: true}, Result: ssa.Result{Outcome: ssa.Applied, Reasons: reasons}}
	g.Expect(a.withoutHandover().Paths()).To(ConsistOf(".spec.minReadySeconds"))
	a.Outcome = ssa.Contended
	g.Expect(a.withoutHandover().Paths()).To(HaveLen(2), "a fight is told")
	a.uncontested, a.Outcome = false, ssa.Applied
	g.Expect(a.withoutHandover().Paths()).To(HaveLen(2))
}

func TestTargets(t *testing.T) {
	for name, c := range map[string]struct {
		ref  autoscalingv2.CrossVersionObjectReference
		want []string
	}{
		"a Deployment":                  {autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop"}, []string{"shop"}},
		"one of an older version":       {autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1beta1", Kind: "Deployment", Name: "shop"}, []string{"shop"}},
		"one of no group":               {autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "shop"}, nil},
		"a StatefulSet":                 {autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "shop"}, nil},
		"an App by its own subresource": {autoscalingv2.CrossVersionObjectReference{APIVersion: "quell.dev/v1alpha1", Kind: "App", Name: "shop"}, nil},
		"something broken":              {autoscalingv2.CrossVersionObjectReference{APIVersion: "a/b/c", Kind: "Deployment", Name: "shop"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			h := scalerOf("a", nil, 9, 0)
			h.Spec.ScaleTargetRef = c.ref
			g.Expect(targets(&h)).To(Equal(c.want))
			g.Expect(targetedApps(context.Background(), &h)).To(HaveLen(len(c.want)))
		})
	}
}

func TestScalersOfOtherPeopleAreTrimmed(t *testing.T) {
	g := NewWithT(t)
	full := func() *autoscalingv2.HorizontalPodAutoscaler {
		h := scalerOf("a", ptr.To[int32](2), 9, 7)
		h.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "keda"}, {Manager: "kube-controller-manager", Subresource: "status"}}
		h.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType}}
		h.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{}
		h.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{Type: autoscalingv2.ResourceMetricSourceType}}
		h.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{
			{Type: autoscalingv2.ScalingActive, Status: "False", Reason: "FailedGetResourceMetric", Message: "at 12:00", LastTransitionTime: metav1.Unix(1, 0)},
		}
		return &h
	}
	want := scalerOf("a", ptr.To[int32](2), 9, 7)
	want.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.ScalingActive, Status: "False", Reason: "FailedGetResourceMetric"}}
	g.Expect(trimScaler(full())).To(Equal(&want))

	for name, change := range map[string]func(*autoscalingv2.HorizontalPodAutoscaler){
		"labelled": func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Labels = map[string]string{LabelManagedBy: ManagedBy}
		},
		"offered": func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.Annotations = map[string]string{"quell.dev/adopt": "shop"}
		},
		"orphaned": func(h *autoscalingv2.HorizontalPodAutoscaler) {
			h.ManagedFields = append(h.ManagedFields, metav1.ManagedFieldsEntry{Manager: ChildManager})
		},
	} {
		h, kept := full(), full()
		change(h)
		change(kept)
		kept.ManagedFields = append(kept.ManagedFields[:1], kept.ManagedFields[2:]...)
		g.Expect(trimScaler(h)).To(Equal(kept), name)
	}
}
