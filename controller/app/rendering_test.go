package app

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
)

// made is an observation of an App whose Deployment, the App's own unless foreign, has this annotation.
func made(app *quellv1alpha1.App, annotation string, foreign bool) observed {
	d := &appsv1.Deployment{}
	if annotation != "" {
		d.Annotations = map[string]string{AnnotationRendering: annotation}
	}
	if !foreign {
		d.OwnerReferences = []metav1.OwnerReference{{Kind: "App", Name: app.Name, UID: app.UID, Controller: ptr.To(true)}}
	}
	return observed{app: app, live: map[string]client.Object{kindDeployment: d}}
}

func TestTheRenderingIsKept(t *testing.T) {
	g := NewWithT(t)
	remembered := shop(func(app *quellv1alpha1.App) { app.Status.Rendering = 2 })
	plain := shop(func(app *quellv1alpha1.App) { app.Status.Rendering = 1 })
	for name, c := range map[string]struct {
		seen observed
		want int32
	}{
		"a new App":                            {observed{app: shop()}, newestRendering},
		"a Deployment of the first release":    {made(shop(), "", false), 1},
		"a Deployment of this release":         {made(shop(), "2", false), 2},
		"of this release, status lags":         {made(plain, "2", false), 2},
		"a Deployment of a later release":      {made(shop(), "99", false), newestRendering},
		"the annotation is gone":               {made(remembered, "", false), 2},
		"the annotation is nonsense":           {made(remembered, "two", false), 2},
		"the annotation is no rendering":       {made(remembered, "0", false), 1},
		"the Deployment is gone, of the first": {observed{app: plain}, 1},
		"the Deployment is gone, of this":      {observed{app: remembered}, 2},
		"the Deployment is somebody else's":    {made(shop(), "", true), 1},
		"somebody else's, the App was there":   {made(remembered, "", true), 1},
		"somebody else's, with a wish":         {made(shop(), "2", true), 2},
		"the status is of a later release":     {observed{app: shop(func(app *quellv1alpha1.App) { app.Status.Rendering = 99 })}, newestRendering},
	} {
		g.Expect(renderingOf(c.seen)).To(Equal(c.want), name)
	}
}

func TestAnAdoptedDeploymentKeepsItsRendering(t *testing.T) {
	g := NewWithT(t)
	app := shop(func(app *quellv1alpha1.App) { app.Status.Rendering = 2 })
	foreign := made(app, "", true)
	g.Expect(renderingToKeep(foreign)).To(BeEquivalentTo(2), "it may be deleted, and the App make its own")
	offered := made(app, "", true)
	offered.deployment().Annotations = map[string]string{AnnotationAdopt: app.Name}
	offered.deployment().Spec.Selector = &metav1.LabelSelector{MatchLabels: selectorLabels(app)}
	g.Expect(isOffered(offered.deployment(), app)).To(BeTrue())
	g.Expect(renderingToKeep(offered)).To(BeEquivalentTo(1))
	g.Expect(renderingNote(offered)).To(HaveKeyWithValue(AnnotationRendering, "1"), "else a status that could not be written decides")
	adopted := made(app, "1", false)
	g.Expect(renderingOf(adopted)).To(BeEquivalentTo(1))
	g.Expect(renderingNote(adopted)).To(Equal(renderingNote(offered)))
}

// The first rendering is what the first release applied, and beyond that only the strategy, which the API server fills in anyway.
func TestTheFirstRenderingIsThatOfTheFirstRelease(t *testing.T) {
	g := NewWithT(t)
	first := &appsv1ac.DeploymentApplyConfiguration{}
	g.Expect(yaml.UnmarshalStrict(read(g, "foundation", "deployment"), first)).To(Succeed())
	desired, err := desiredDeployment(made(readApp(g, "foundation"), "", false))
	g.Expect(err).NotTo(HaveOccurred())
	desired.(*appsv1ac.DeploymentApplyConfiguration).Spec.Strategy = nil
	g.Expect(asJSON(g, desired)).To(MatchJSON(asJSON(g, first)))
}

func TestDefaultsOfTheAppWinOverTheRendering(t *testing.T) {
	on := &quellv1alpha1.AppDefaults{Security: quellv1alpha1.SecurityRestricted, TopologySpread: quellv1alpha1.SpreadOn}
	off := &quellv1alpha1.AppDefaults{Security: quellv1alpha1.SecurityNone, TopologySpread: quellv1alpha1.SpreadNone}
	for _, c := range []struct {
		rendering int32
		defaults  *quellv1alpha1.AppDefaults
		filled    bool
	}{
		{1, nil, false}, {1, &quellv1alpha1.AppDefaults{}, false}, {1, on, true}, {1, off, false},
		{2, nil, true}, {2, &quellv1alpha1.AppDefaults{}, true}, {2, on, true}, {2, off, false},
	} {
		g := NewWithT(t)
		seen := observed{app: shop(func(app *quellv1alpha1.App) { app.Spec.Defaults, app.Status.Rendering = c.defaults, c.rendering })}
		pod := podOf(g, seen)
		g.Expect(pod.SecurityContext != nil).To(Equal(c.filled))
		g.Expect(pod.Containers[0].SecurityContext != nil).To(Equal(c.filled))
		g.Expect(pod.TopologySpreadConstraints).To(HaveLen(map[bool]int{true: 2}[c.filled]))
		desired, err := desiredDeployment(seen)
		g.Expect(err).NotTo(HaveOccurred())
		_, annotated := desired.(*appsv1ac.DeploymentApplyConfiguration).Annotations[AnnotationRendering]
		g.Expect(annotated).To(Equal(c.rendering > 1))
	}
}
