package app

import (
	"cmp"
	"strconv"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

// AnnotationRendering is the annotation of a Deployment that says which rendering made it. Rendering 1 leaves it out, as the
// releases did that knew no other, unless the Deployment was adopted. A person who changes it moves the App to that rendering,
// which replaces its Pods.
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

// renderingOf is the rendering of an App's Pods: what the Deployment says, else what the status remembers, for the annotation may
// have been removed, else the first where a Deployment exists. Only a new App gets the newest. A Deployment that somebody else
// made has the first, whatever the status remembers: when it is adopted its Pods stay as they are as far as they can.
func renderingOf(seen observed) int32 {
	live := seen.deployment()
	if live == nil {
		return remembered(seen.app, newestRendering)
	}
	if n, err := strconv.ParseInt(live.Annotations[AnnotationRendering], 10, 32); err == nil {
		return known(int32(n))
	}
	if !isMade(live, seen.app) {
		return renderingPlain
	}
	return remembered(seen.app, renderingPlain)
}

// renderingToKeep is what the status remembers from now on. A Deployment that is somebody else's tells nothing of the App.
func renderingToKeep(seen observed) int32 {
	if live := seen.deployment(); live != nil && !isOurs(live, seen.app) {
		return remembered(seen.app, newestRendering)
	}
	return renderingOf(seen)
}

// remembered is the rendering that the status has, otherwise another one.
func remembered(app *quellv1alpha1.App, otherwise int32) int32 {
	return known(cmp.Or(app.Status.Rendering, otherwise))
}

// known is the nearest rendering that this release has: a later one may have made the Deployment.
func known(rendering int32) int32 {
	return min(max(rendering, renderingPlain), newestRendering)
}

// renderingNote is the annotation of a Deployment that says its rendering. An adopted one has it in any case, since what the status
// remembers may be of the time before.
func renderingNote(seen observed) map[string]string {
	rendering, live := renderingOf(seen), seen.deployment()
	if rendering == renderingPlain && (live == nil || isMade(live, seen.app) && live.Annotations[AnnotationRendering] == "") {
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
