package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/ssa"
	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AnnotationAdopt on an object that has the name of an App's child, and no controller, lets the App named by its value adopt it.
// It is the user's: the operator neither sets nor removes it, and once the App controls the object it means nothing more.
const AnnotationAdopt = "quell.dev/adopt"

// maxChanges bounds the paths that a message names.
const maxChanges = 12

// isOffered reports whether a live object is there for the App to adopt.
func isOffered(live client.Object, app *quellv1alpha1.App) bool {
	return metav1.GetControllerOf(live) == nil && live.GetAnnotations()[AnnotationAdopt] == app.Name && selectorInTheWay(live, app) == ""
}

// adoption tells what can be done about an object that is not the App's. It compares and sends nothing, so that it may be asked
// at each look; the text is as stable as the object.
func (r *Reconciler) adoption(ctx context.Context, app *quellv1alpha1.App, c child) string {
	if metav1.GetControllerOf(c.live) != nil {
		return "rename the App, or delete that object; an App adopts no object that has a controller"
	}
	if words := selectorInTheWay(c.live, app); words != "" {
		return words
	}
	words := fmt.Sprintf("rename the App, or delete that object, or let the App adopt it: kubectl annotate -n %s %s %s %s=%s",
		app.Namespace, strings.ToLower(c.kind), c.name, AnnotationAdopt, app.Name)
	if offered, found := c.live.GetAnnotations()[AnnotationAdopt]; found {
		words += fmt.Sprintf(" --overwrite (it says %.63q now)", offered)
	}
	preview, err := r.children.Preview(ctx, ssa.Intent{Desired: c.desired, Live: c.live, Rules: c.rules})
	if err != nil {
		return words
	}
	words += "; adoption " + changes(preview.Values)
	if kept := withoutMetadata(preview.Kept); len(kept) > 0 {
		words += "; beside that it keeps " + enumerated(kept)
	}
	return words
}

func withoutMetadata(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return rank(p) > 0 })
}

// changes words what adoption would change, the spec first.
func changes(paths []string) string {
	paths = slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return strings.HasPrefix(p, ".metadata.ownerReferences") })
	if len(paths) == 0 {
		return "would change nothing but its owner"
	}
	slices.SortStableFunc(paths, func(a, b string) int { return rank(a) - rank(b) })
	return "would change " + enumerated(paths)
}

func rank(path string) int {
	if strings.HasPrefix(path, ".metadata.") {
		return 1
	}
	return 0
}

// enumerated lists at most maxChanges words.
func enumerated(words []string) string {
	if more := len(words) - maxChanges; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:maxChanges], ", "), more)
	}
	return strings.Join(words, ", ")
}

// selectorInTheWay says what to do about a Deployment that cannot become the App's, since it selects other Pods for good; "" when
// nothing is in the way.
func selectorInTheWay(live client.Object, app *quellv1alpha1.App) string {
	d, ok := live.(*appsv1.Deployment)
	if !ok || apiequality.Semantic.DeepEqual(d.Spec.Selector, &metav1.LabelSelector{MatchLabels: selectorLabels(app)}) {
		return ""
	}
	return fmt.Sprintf("rename the App, or delete that object; it cannot be adopted, for its spec.selector is not this App's and can never be changed. "+
		"To replace it while its Pods go on: kubectl delete -n %s deployment %s --cascade=orphan, and delete its ReplicaSets once the App is Ready", app.Namespace, d.Name)
}
