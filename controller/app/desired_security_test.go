package app

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestRestrictedSettingsAreFilledInLeafByLeaf(t *testing.T) {
	const pod, container = `{runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}`, `{allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}`
	for name, c := range map[string]struct{ spec, pod, container string }{
		"nothing said":                      {`{}`, pod, container},
		"other things said":                 {`{securityContext: {fsGroup: 1}, containers: [{name: a, securityContext: {readOnlyRootFilesystem: true}}]}`, `{runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}, fsGroup: 1}`, `{allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, readOnlyRootFilesystem: true}`},
		"the Pod says so":                   {`{securityContext: {runAsNonRoot: false, seccompProfile: {type: Unconfined}}}`, `{runAsNonRoot: false, seccompProfile: {type: Unconfined}}`, container},
		"the Pod is root":                   {`{securityContext: {runAsUser: 0}}`, `{runAsUser: 0, seccompProfile: {type: RuntimeDefault}}`, container},
		"the container says":                {`{containers: [{name: a, securityContext: {allowPrivilegeEscalation: true, capabilities: {drop: [NET_RAW]}}}]}`, pod, `{allowPrivilegeEscalation: true, capabilities: {drop: [NET_RAW]}}`},
		"one more capability":               {`{containers: [{name: a, securityContext: {capabilities: {add: [NET_BIND_SERVICE]}}}]}`, pod, `{allowPrivilegeEscalation: false, capabilities: {add: [NET_BIND_SERVICE], drop: [ALL]}}`},
		"the container is root":             {`{containers: [{name: a, securityContext: {runAsUser: 0}}]}`, pod, `{runAsUser: 0, runAsNonRoot: false, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}`},
		"root against the Pod's own word":   {`{securityContext: {runAsNonRoot: true}, containers: [{name: a, securityContext: {runAsUser: 0}}]}`, pod, `{runAsUser: 0, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}`},
		"a privileged container":            {`{containers: [{name: a, securityContext: {privileged: true}}]}`, pod, `{privileged: true}`},
		"an administrator":                  {`{containers: [{name: a, securityContext: {capabilities: {add: [SYS_ADMIN]}}}]}`, pod, `{capabilities: {add: [SYS_ADMIN], drop: [ALL]}}`},
		"an administrator by the long name": {`{containers: [{name: a, securityContext: {capabilities: {add: [CAP_SYS_ADMIN]}}}]}`, pod, `{capabilities: {add: [CAP_SYS_ADMIN], drop: [ALL]}}`},
		"a Pod for Windows":                 {`{os: {name: windows}}`, `{runAsNonRoot: true}`, `null`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec := corev1.PodSpec{}
			g.Expect(yaml.UnmarshalStrict([]byte(c.spec), &spec)).To(Succeed())
			if spec.Containers == nil {
				spec.Containers = []corev1.Container{{Name: "a"}}
			}
			spec.InitContainers = []corev1.Container{*spec.Containers[0].DeepCopy()}
			restrict(&spec)
			g.Expect(asJSON(g, spec.SecurityContext)).To(MatchYAML(c.pod))
			g.Expect(asJSON(g, spec.Containers[0].SecurityContext)).To(MatchYAML(c.container))
			g.Expect(asJSON(g, spec.InitContainers[0].SecurityContext)).To(MatchYAML(c.container))
		})
	}
}
