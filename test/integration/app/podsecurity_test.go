package app_test

import (
	"context"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The namespace of config/manager enforces the Pod Security Standard "restricted" by its label; the admission plugin is the API
// server's own.
var _ = Describe("The Pods of config/manager", func() {
	It("are made in their restricted namespace, and become ready", func(ctx SpecContext) {
		var ns corev1.Namespace
		Expect(admin.Get(ctx, client.ObjectKey{Name: "quell-system"}, &ns)).To(Succeed())
		Expect(ns.Labels).To(HaveKeyWithValue("pod-security.kubernetes.io/enforce", "restricted"))

		d := managerDeployment()
		Expect(admin.Create(ctx, d)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, d)).To(Succeed()) })
		Eventually(ctx, func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
			g.Expect(d.Status.ReadyReplicas).To(Equal(*d.Spec.Replicas), "%+v", d.Status)
		}).Should(Succeed())
	})

	It("are accepted as they are", func(ctx SpecContext) {
		Expect(createPod(ctx, func(*corev1.PodSpec) {})).To(Succeed())
	})

	DescribeTable("would be refused", func(ctx SpecContext, words string, change func(*corev1.PodSpec)) {
		err := createPod(ctx, change)
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(And(ContainSubstring(`violates PodSecurity "restricted:`), ContainSubstring(words))))
	},
		Entry("with privileges", "privileged", func(p *corev1.PodSpec) {
			yes := true
			p.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &yes}
		}),
		Entry("without runAsNonRoot", "runAsNonRoot", func(p *corev1.PodSpec) { p.SecurityContext.RunAsNonRoot = nil }),
		Entry("without a seccomp profile", "seccompProfile", func(p *corev1.PodSpec) { p.SecurityContext.SeccompProfile = nil }),
		Entry("with escalation of privileges", "allowPrivilegeEscalation", func(p *corev1.PodSpec) {
			p.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil
		}),
		Entry("with capabilities", "unrestricted capabilities", func(p *corev1.PodSpec) { p.Containers[0].SecurityContext.Capabilities = nil }),
		Entry("with the node's files", "hostPath", func(p *corev1.PodSpec) {
			p.Volumes = append(p.Volumes, corev1.Volume{Name: "node", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}})
		}),
	)
})

func managerDeployment() *appsv1.Deployment {
	GinkgoHelper()
	d := &appsv1.Deployment{}
	readYAML(filepath.Join(configDir, "manager", "deployment.yaml"), d)
	return d
}

// createPod sends a Pod of the operator's Deployment by dry run.
func createPod(ctx context.Context, change func(*corev1.PodSpec)) error {
	d := managerDeployment()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}, Spec: d.Spec.Template.Spec}
	change(&pod.Spec)
	return admin.Create(ctx, pod, client.DryRunAll)
}
