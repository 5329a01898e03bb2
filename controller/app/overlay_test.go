package app

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/hduolab/quell/controller/ssa"
)

func TestOverlayIsMerged(t *testing.T) {
	for name, c := range map[string]struct {
		spec  string
		check func(Gomega, corev1.PodTemplateSpec)
	}{
		"a field of the Pod": {`{podTemplate: {spec: {hostNetwork: true, activeDeadlineSeconds: 1000680000}}}`, func(g Gomega, p corev1.PodTemplateSpec) {
			g.Expect(p.Spec.HostNetwork).To(BeTrue())
			g.Expect(p.Spec.ActiveDeadlineSeconds).To(HaveValue(BeEquivalentTo(1000680000)))
		}},
		"a field of a container": {`{podTemplate: {spec: {containers: [{name: app, stdin: true}]}}}`, func(g Gomega, p corev1.PodTemplateSpec) {
			g.Expect(p.Spec.Containers).To(HaveLen(1))
			g.Expect(p.Spec.Containers[0].Stdin).To(BeTrue())
			g.Expect(p.Spec.Containers[0].Image).To(Equal("shop:1"))
		}},
		"a container, with the defaults": {`{podTemplate: {spec: {containers: [{name: more, image: more}]}}}`, func(g Gomega, p corev1.PodTemplateSpec) {
			g.Expect(p.Spec.Containers).To(HaveLen(2))
			for _, c := range p.Spec.Containers {
				g.Expect(c.SecurityContext.AllowPrivilegeEscalation).To(HaveValue(BeFalse()), c.Name)
			}
		}},
		"labels and annotations": {`{commonLabels: {a: b}, podTemplate: {metadata: {labels: {a: null, c: d}, annotations: {e: f}}}}`, func(g Gomega, p corev1.PodTemplateSpec) {
			g.Expect(p.Labels).To(And(HaveKeyWithValue("c", "d"), Not(HaveKey("a")), HaveKeyWithValue(LabelName, "shop")))
			g.Expect(p.Annotations).To(HaveKeyWithValue("e", "f"))
		}},
		"removal by null": {`{nodeSelector: {a: b}, env: [{name: A, value: x}], podTemplate: {spec: {nodeSelector: null, containers: [{name: app, env: null}]}}}`, func(g Gomega, p corev1.PodTemplateSpec) {
			g.Expect(p.Spec.NodeSelector).To(BeEmpty())
			g.Expect(p.Spec.Containers[0].Env).To(BeEmpty())
		}},
		"$patch: delete": {`{env: [{name: A, value: x}, {name: B, value: z}], podTemplate: {spec: {containers: [{name: app, env: [{name: A, $patch: delete}]}]}}}`, func(g Gomega, p corev1.PodTemplateSpec) {
			g.Expect(p.Spec.Containers[0].Env).To(Equal([]corev1.EnvVar{{Name: "B", Value: "z"}}))
		}},
		"$patch: replace": {`{nodeSelector: {a: b}, podTemplate: {spec: {nodeSelector: {$patch: replace, c: d}}}}`, func(g Gomega, p corev1.PodTemplateSpec) {
			g.Expect(p.Spec.NodeSelector).To(Equal(map[string]string{"c": "d"}))
		}},
		"$retainKeys": {`{configFiles: [{name: a, mountPath: /a, configMap: c}], podTemplate: {spec: {volumes: [{name: a, $retainKeys: [name, emptyDir], emptyDir: {}}]}}}`, func(g Gomega, p corev1.PodTemplateSpec) {
			g.Expect(p.Spec.Volumes).To(Equal([]corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}))
		}},
		"$setElementOrder": {`{sidecars: [{name: proxy, image: i}], initContainers: [{name: first, image: i}], podTemplate: {spec: {$setElementOrder/initContainers: [{name: first}, {name: proxy}], initContainers: [{name: first}, {name: proxy}]}}}`, func(g Gomega, p corev1.PodTemplateSpec) {
			g.Expect(p.Spec.InitContainers).To(HaveLen(2))
			g.Expect(p.Spec.InitContainers[0].Name).To(Equal("first"))
		}},
		"a part of a volume": {`{configFiles: [{name: a, mountPath: /a, configMap: c}], podTemplate: {spec: {volumes: [{name: a, configMap: {defaultMode: 256}}]}}}`, func(g Gomega, p corev1.PodTemplateSpec) {
			g.Expect(p.Spec.Volumes[0].ConfigMap.DefaultMode).To(HaveValue(BeEquivalentTo(256)))
			g.Expect(p.Spec.Volumes[0].ConfigMap.Name).To(Equal("c"))
		}},
		"the name of the account by its old name": {`{podTemplate: {spec: {serviceAccount: a}}}`, func(g Gomega, p corev1.PodTemplateSpec) {
			g.Expect(p.Spec.ServiceAccountName).To(Equal("a"))
		}},
		"nothing": {`{podTemplate: {}}`, func(g Gomega, p corev1.PodTemplateSpec) {
			g.Expect(p.Spec).To(Equal(podOf(g, observed{app: appOf(g, `{}`)})))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			template, err := desiredTemplate(observed{app: appOf(g, c.spec)})
			g.Expect(err).NotTo(HaveOccurred())
			merged, err := as[corev1.PodTemplateSpec](template)
			g.Expect(err).NotTo(HaveOccurred())
			c.check(g, *merged)
		})
	}
}

func TestBadOverlayIsRefused(t *testing.T) {
	for overlay, message := range map[string]string{
		`{spec: {contaners: []}}`:                                                 `unknown field "spec.podTemplate.spec.contaners"`,
		`{spec: {containers: [{name: app, Image: i}]}}`:                           `unknown field "spec.podTemplate.spec.containers[0].Image"`,
		`{sepc: {}, spec: {hostNetwrok: true}}`:                                   `unknown field "spec.podTemplate.sepc"; unknown field "spec.podTemplate.spec.hostNetwrok"`,
		`{spec: {hostNetwrok: null}}`:                                             `unknown field "spec.podTemplate.spec.hostNetwrok"`,
		`{spec: {containers: [{name: app, $path: delete}]}}`:                      `unknown field "spec.podTemplate.spec.containers[0].$path"`,
		`{spec: {hostNetwork: "yes"}}`:                                            `spec.podTemplate.spec.hostNetwork: must be true or false, is string`,
		`{spec: {containers: {name: app}}}`:                                       `spec.podTemplate.spec.containers: must be a list, is object`,
		`{spec: {containers: [{image: i}]}}`:                                      `spec.podTemplate.spec.containers[0]: map: map[image:i] does not contain declared merge key: name`,
		`{spec: {containers: [{name: app, $patch: remove}]}}`:                     `spec.podTemplate.spec.containers[0]: unknown patch type: remove in map: map[$patch:remove name:app]`,
		`{spec: {containers: [{name: app, $patch: delete}]}}`:                     `spec.podTemplate removes container "app", which runs spec.image: leave it in place`,
		`{$patch: delete}`:                                                        `spec.podTemplate.metadata.labels: app.kubernetes.io/instance is set by the operator and must stay as it is: remove it from spec.podTemplate`,
		`{metadata: {labels: {app.kubernetes.io/name: x}}}`:                       `spec.podTemplate.metadata.labels: app.kubernetes.io/name is set by the operator and must stay as it is: remove it from spec.podTemplate`,
		`{metadata: {labels: {$patch: replace, a: b}}}`:                           `spec.podTemplate.metadata.labels: app.kubernetes.io/instance is set by the operator and must stay as it is: remove it from spec.podTemplate`,
		`{metadata: {labels: null}}`:                                              `spec.podTemplate.metadata.labels: app.kubernetes.io/instance is set by the operator and must stay as it is: remove it from spec.podTemplate`,
		`{metadata: {labels: {app.kubernetes.io/managed-by: null}}}`:              `spec.podTemplate.metadata.labels: app.kubernetes.io/managed-by is set by the operator and must stay as it is: remove it from spec.podTemplate`,
		`{metadata: {annotations: {quell.dev/config-hash: x}}}`:                   `spec.podTemplate.metadata.annotations: quell.dev/config-hash is set by the operator and must stay as it is: remove it from spec.podTemplate`,
		`{metadata: {name: x, labels: {a: b}}}`:                                   `unknown field "spec.podTemplate.metadata.name"`,
		`{spec: {containers: [{name: app, resources: {requests: {cpu: much}}}]}}`: `spec.podTemplate.spec.containers[0].resources.requests.cpu: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
		`[]`: `spec.podTemplate: must be an object, is array`,
	} {
		t.Run(overlay, func(t *testing.T) {
			g := NewWithT(t)
			_, err := desiredDeployment(observed{app: appOf(g, `{podTemplate: `+overlay+`}`)})
			g.Expect(err).To(MatchError(message))
			g.Expect(err).To(BeAssignableToTypeOf(&ssa.InvalidContentError{}))
		})
	}
}
