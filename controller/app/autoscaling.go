package app

import (
	"fmt"
	"slices"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of the condition AutoscalingActive beside those that an autoscaler gives itself.
const (
	reasonOwnAutoscaler     = "OwnAutoscaler"
	reasonForeignAutoscaler = "ForeignAutoscaler"
)

// notInForce ends each message of the condition AutoscalingActive.
const notInForce = "spec.replicas is not in force"

// autoscalingActive is the condition AutoscalingActive: nil while spec.replicas is in force.
func autoscalingActive(seen observed, children []applied) *aspect {
	names := scalerNames(seen)
	h, own := scalerInForce(seen, children)
	switch {
	case !seen.autoscaled() || isForeignDeployment(children):
		return nil
	case h == nil:
		return scaling(false, reasonCreating, "the HorizontalPodAutoscaler does not exist yet; %s", notInForce)
	case len(names) > 1:
		return scaling(false, "AmbiguousAutoscaler", "several HorizontalPodAutoscalers target the Deployment, remove all but one: %s; %s", enumerated(names), notInForce)
	}
	if s := autoscalerState(h); s.ready == metav1.ConditionFalse {
		return scaling(false, s.reason, "HorizontalPodAutoscaler %q cannot set the number of Pods, its conditions say why; %s", h.Name, notInForce)
	}
	reason := reasonForeignAutoscaler
	if own {
		reason = reasonOwnAutoscaler
	}
	return scaling(true, reason, "HorizontalPodAutoscaler %q sets the number of Pods; %s", h.Name, notInForce)
}

func scaling(active bool, reason, format string, args ...any) *aspect {
	return &aspect{
		kind: quellv1alpha1.ConditionAutoscalingActive, is: active,
		finding: finding{reason, bounded(fmt.Sprintf(format, args...))},
	}
}

// scalerInForce is the autoscaler that sets the number of Pods, nil when it does not exist yet; own tells whether it is the App's.
func scalerInForce(seen observed, children []applied) (h *autoscalingv2.HorizontalPodAutoscaler, own bool) {
	for _, c := range children {
		if h, ok := c.current().(*autoscalingv2.HorizontalPodAutoscaler); ok && h != nil && c.desired != nil {
			return h, true
		}
	}
	if len(seen.scalers) == 0 {
		return nil, false
	}
	h = &seen.scalers[0]
	return h, metav1.IsControlledBy(h, seen.app)
}

func scalerNames(seen observed) []string {
	names := make([]string, len(seen.scalers))
	for i, h := range seen.scalers {
		names[i] = fmt.Sprintf("%q", h.Name)
	}
	slices.Sort(names)
	return names
}

// isForeignDeployment reports whether the object that has the name of the App's Deployment is somebody else's.
func isForeignDeployment(children []applied) bool {
	return slices.ContainsFunc(children, func(c applied) bool { return c.kind == kindDeployment && c.foreign != "" })
}
