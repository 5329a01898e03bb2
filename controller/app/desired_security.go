package app

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// restrict fills in what the Pod Security Standard "restricted" asks for, leaf by leaf, wherever the Pod does not say otherwise. A
// setting that would contradict what it says is left out: a container that asks for user 0 or for privileges gets them.
func restrict(pod *corev1.PodSpec) {
	setDefaultPointer(&pod.SecurityContext, corev1.PodSecurityContext{})
	s := pod.SecurityContext
	noRoot := s.RunAsNonRoot == nil && !isRoot(s.RunAsUser)
	if noRoot {
		setDefaultPointer(&s.RunAsNonRoot, true)
	}
	if pod.OS != nil && pod.OS.Name == corev1.Windows {
		return // the API server refuses all else
	}
	setDefaultPointer(&s.SeccompProfile, corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault})
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			restrictContainer(&containers[i], noRoot)
		}
	}
}

// restrictContainer fills in the settings that a Pod cannot say for all its containers; noRoot tells that the operator said for
// the Pod that nobody runs as root.
func restrictContainer(c *corev1.Container, noRoot bool) {
	setDefaultPointer(&c.SecurityContext, corev1.SecurityContext{})
	s := c.SecurityContext
	if noRoot && isRoot(s.RunAsUser) {
		setDefaultPointer(&s.RunAsNonRoot, false)
	}
	if s.Privileged != nil && *s.Privileged {
		return
	}
	setDefaultPointer(&s.Capabilities, corev1.Capabilities{})
	if s.Capabilities.Drop == nil {
		s.Capabilities.Drop = []corev1.Capability{"ALL"}
	}
	if !slices.Contains(s.Capabilities.Add, "CAP_SYS_ADMIN") && !slices.Contains(s.Capabilities.Add, "SYS_ADMIN") {
		setDefaultPointer(&s.AllowPrivilegeEscalation, false)
	}
}

func isRoot(user *int64) bool { return user != nil && *user == 0 }
