package app

import (
	"strconv"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

// AnnotationRendering is the annotation of a Deployment that says which rendering made it. Rendering 1 leaves it out, as the
// releases did that knew no other. A person who changes it moves the App to that rendering, which replaces its Pods.
const AnnotationRendering = "quell.dev/rendering"

// The renderings of the Pods. A release that changes what the same spec makes of the Pod template does so under a new number, and
// Apps that exist keep theirs: an upgrade of the operator replaces no Pods.
const (
	// renderingPlain fills in nothing that the App does not ask for.
	renderingPlain int32 = 1
	// renderingRestricted fills in restricted security settings and the spread over zones and nodes.
	renderingRestricted int32 = 2

	newestRendering = renderingRestricted
)

// renderingOf is the rendering of an App's Pods: what its Deployment says, else what the status remembers, for the annotation may
// have been removed, else the first where a Deployment exists. Only a new App gets the newest.
func renderingOf(seen observed) int32 {
	live := seen.deployment()
	ours := live != nil && isOurs(live, seen.app)
	if ours {
		if n, err := strconv.ParseInt(live.Annotations[AnnotationRendering], 10, 32); err == nil {
			return known(int32(n))
		}
	}
	switch {
	case seen.app.Status.Rendering > 0:
		return known(seen.app.Status.Rendering)
	case ours:
		return renderingPlain
	}
	return newestRendering
}

// known is the nearest rendering that this release has: a later one may have made the Deployment.
func known(rendering int32) int32 {
	return min(max(rendering, renderingPlain), newestRendering)
}

// renderingNote is the annotation of a Deployment that says its rendering.
func renderingNote(seen observed) map[string]string {
	rendering := renderingOf(seen)
	if rendering == renderingPlain {
		return nil
	}
	return map[string]string{AnnotationRendering: strconv.Itoa(int(rendering))}
}

// fillsSecurity reports whether the operator fills in security settings.
func fillsSecurity(seen observed) bool {
	if d := seen.app.Spec.Defaults; d != nil && d.Security != "" {
		return d.Security == quellv1alpha1.SecurityRestricted
	}
	return renderingOf(seen) >= renderingRestricted
}

// fillsSpread reports whether the operator spreads the Pods of an App that says nothing about it.
func fillsSpread(seen observed) bool {
	if d := seen.app.Spec.Defaults; d != nil && d.TopologySpread != "" {
		return d.TopologySpread == quellv1alpha1.SpreadOn
	}
	return renderingOf(seen) >= renderingRestricted
}
