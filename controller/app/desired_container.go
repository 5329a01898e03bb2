package app

import (
	"cmp"
	"fmt"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// appContainer is the container of the application.
func appContainer(spec *quellv1alpha1.AppSpec) corev1.Container {
	return corev1.Container{
		Name:            containerName,
		Image:           spec.Image,
		ImagePullPolicy: spec.ImagePullPolicy,
		Command:         spec.Command,
		Args:            spec.Args,
		WorkingDir:      spec.WorkingDir,
		Env:             spec.Env,
		EnvFrom:         spec.EnvFrom,
		Ports:           containerPorts(spec.Ports),
		Resources:       ptr.Deref(spec.Resources, corev1.ResourceRequirements{}),
		VolumeMounts:    volumeMounts(spec),
		LivenessProbe:   spec.LivenessProbe,
		ReadinessProbe:  spec.ReadinessProbe,
		StartupProbe:    spec.StartupProbe,
		Lifecycle:       spec.Lifecycle,
		SecurityContext: spec.SecurityContext,
	}
}

// initContainers are the sidecars and then the init containers, since these may need what a sidecar offers, such as a database
// proxy: the kubelet starts them one after the other, and a sidecar is one that it does not wait for to end.
func initContainers(spec *quellv1alpha1.AppSpec) []corev1.Container {
	var list []corev1.Container
	for _, c := range spec.Sidecars {
		always := corev1.ContainerRestartPolicyAlways
		sidecar := container(c)
		sidecar.RestartPolicy = &always
		list = append(list, sidecar)
	}
	for _, c := range spec.InitContainers {
		list = append(list, container(c))
	}
	return list
}

func container(c quellv1alpha1.AppContainer) corev1.Container {
	return corev1.Container{
		Name:            c.Name,
		Image:           c.Image,
		ImagePullPolicy: c.ImagePullPolicy,
		Command:         c.Command,
		Args:            c.Args,
		WorkingDir:      c.WorkingDir,
		Env:             c.Env,
		EnvFrom:         c.EnvFrom,
		Ports:           containerPorts(c.Ports),
		Resources:       ptr.Deref(c.Resources, corev1.ResourceRequirements{}),
		VolumeMounts:    c.VolumeMounts,
		ReadinessProbe:  c.ReadinessProbe,
		StartupProbe:    c.StartupProbe,
		SecurityContext: c.SecurityContext,
	}
}

func containerPorts(ports []quellv1alpha1.AppPort) []corev1.ContainerPort {
	var list []corev1.ContainerPort
	for _, p := range ports {
		list = append(list, corev1.ContainerPort{Name: p.Name, ContainerPort: p.ContainerPort, Protocol: protocol(p)})
	}
	return list
}

func protocol(p quellv1alpha1.AppPort) corev1.Protocol { return cmp.Or(p.Protocol, corev1.ProtocolTCP) }

// distinctContainers refuses two containers of one name: those of the App's fields, and those that only the Pod has, which are
// from spec.podTemplate.
func distinctContainers(spec *quellv1alpha1.AppSpec, pod *corev1.PodSpec) error {
	claims := []claim{containerClaim("the application's own container", containerName)}
	known := map[string]bool{}
	add := func(field string, list []quellv1alpha1.AppContainer) {
		for _, c := range list {
			claims, known[c.Name] = append(claims, containerClaim(field, c.Name)), true
		}
	}
	add("spec.sidecars", spec.Sidecars)
	add("spec.initContainers", spec.InitContainers)
	for _, c := range pod.InitContainers {
		if !known[c.Name] {
			claims = append(claims, containerClaim(overlayField+".spec.initContainers", c.Name))
		}
	}
	for _, c := range pod.Containers {
		if c.Name != containerName {
			claims = append(claims, containerClaim(overlayField+".spec.containers", c.Name))
		}
	}
	return distinct(claims, "rename one of them")
}

func containerClaim(field, name string) claim { return claim{field, fmt.Sprintf("container %q", name)} }
