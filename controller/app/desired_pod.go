package app

import (
	"cmp"
	"maps"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// AnnotationConfigHash is the annotation of the Pods whose value changes with the content of config files that replace the Pods.
const AnnotationConfigHash = "quell.dev/config-hash"

// desiredTemplate is the Pod template: what the App's fields make, spec.podTemplate over it, and the operator's defaults where
// neither says anything. An error that a person can mend is an ssa.InvalidContentError.
func desiredTemplate(seen observed) (*corev1ac.PodTemplateSpecApplyConfiguration, error) {
	template, err := typedTemplate(seen)
	if err != nil {
		return nil, err
	}
	if template, err = overlaid(seen.app, template); err != nil {
		return nil, err
	}
	pod := &template.Spec
	if fillsSecurity(seen) {
		restrict(pod)
	}
	if fillsSpread(seen) && len(pod.TopologySpreadConstraints) == 0 {
		pod.TopologySpreadConstraints = spread()
	}
	complete(pod, selectorLabels(seen.app))
	return claimed(template)
}

// typedTemplate is the Pod template that the App's fields make. It shares nothing with the App.
func typedTemplate(seen observed) (*corev1.PodTemplateSpec, error) {
	spec := seen.app.Spec.DeepCopy()
	affinity, err := affinityOf(spec)
	if err != nil {
		return nil, err
	}
	template := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: podLabels(seen.app), Annotations: podAnnotations(seen)},
		Spec: corev1.PodSpec{
			InitContainers:                initContainers(spec),
			Containers:                    []corev1.Container{appContainer(spec)},
			Volumes:                       volumes(spec),
			ImagePullSecrets:              spec.ImagePullSecrets,
			SecurityContext:               spec.PodSecurityContext,
			TerminationGracePeriodSeconds: spec.TerminationGracePeriodSeconds,
			Affinity:                      affinity,
			NodeSelector:                  spec.NodeSelector,
			Tolerations:                   spec.Tolerations,
			TopologySpreadConstraints:     spec.TopologySpreadConstraints,
			PriorityClassName:             spec.PriorityClassName,
			HostAliases:                   spec.HostAliases,
			DNSPolicy:                     spec.DNSPolicy,
			DNSConfig:                     spec.DNSConfig,
		},
	}
	if spec.RuntimeClassName != "" {
		template.Spec.RuntimeClassName = &spec.RuntimeClassName
	}
	if account := spec.ServiceAccount; account != nil {
		template.Spec.ServiceAccountName, template.Spec.AutomountServiceAccountToken = usedAccount(seen.app), account.Automount
	}
	return template, cmp.Or(distinctVolumes(spec), distinctMounts(spec), distinctContainers(spec, &template.Spec))
}

func affinityOf(spec *quellv1alpha1.AppSpec) (*corev1.Affinity, error) {
	if spec.Affinity == nil {
		return nil, nil
	}
	affinity := &corev1.Affinity{}
	return affinity, decodeStrict("spec.affinity", spec.Affinity.Raw, affinity)
}

// podLabels are those of a child, and the App's own for its Pods. What selects the Pods wins.
func podLabels(app *quellv1alpha1.App) map[string]string {
	labels := childLabels(app)
	maps.Copy(labels, app.Spec.PodLabels)
	maps.Copy(labels, selectorLabels(app))
	labels[LabelManagedBy] = ManagedBy
	return labels
}

func podAnnotations(seen observed) map[string]string {
	annotations := map[string]string{}
	maps.Copy(annotations, seen.app.Spec.CommonAnnotations)
	maps.Copy(annotations, seen.app.Spec.PodAnnotations)
	if seen.configHash != "" {
		annotations[AnnotationConfigHash] = seen.configHash
	}
	return annotations
}

// spread prefers, and does not insist on, different zones and different nodes.
func spread() []corev1.TopologySpreadConstraint {
	var list []corev1.TopologySpreadConstraint
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelHostname} {
		list = append(list, corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway})
	}
	return list
}

// complete fills in whose Pods a spread counts where it does not say, and the second name that the API server has for the
// ServiceAccount: it would copy the first to it, and take the first from it when that is gone.
func complete(pod *corev1.PodSpec, selector map[string]string) {
	for i := range pod.TopologySpreadConstraints {
		setDefaultPointer(&pod.TopologySpreadConstraints[i].LabelSelector, metav1.LabelSelector{MatchLabels: selector})
	}
	pod.ServiceAccountName = cmp.Or(pod.ServiceAccountName, pod.DeprecatedServiceAccount)
	pod.DeprecatedServiceAccount = pod.ServiceAccountName
}

// claimed is the template as an apply configuration. The Go types write empty resources although nobody asks for them.
func claimed(template *corev1.PodTemplateSpec) (*corev1ac.PodTemplateSpecApplyConfiguration, error) {
	ac, err := as[corev1ac.PodTemplateSpecApplyConfiguration](template)
	if err != nil {
		return nil, err
	}
	for _, containers := range [][]corev1ac.ContainerApplyConfiguration{ac.Spec.InitContainers, ac.Spec.Containers} {
		for i := range containers {
			if r := containers[i].Resources; r != nil && r.Limits == nil && r.Requests == nil && r.Claims == nil {
				containers[i].Resources = nil
			}
		}
	}
	return ac, nil
}
