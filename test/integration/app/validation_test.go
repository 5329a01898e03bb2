package app_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
)

var _ = Describe("The CRD", func() {
	DescribeTable("refuses, and says what to write instead", func(ctx SpecContext, spec string, words ...string) {
		err := dryRun(ctx, "shop", spec)
		Expect(err).To(HaveOccurred())
		for _, word := range words {
			Expect(err.Error()).To(ContainSubstring(word))
		}
	},
		Entry("no image", `{}`, "spec.image: Required value"),
		Entry("an empty image", `{image: ""}`, "spec.image", "at least 1 chars long"),
		Entry("an image with a space", `{image: "a b"}`, "spec.image", "for example registry.example.com/team/app:1.2.3"),
		Entry("a long image", `{image: `+strings.Repeat("i", 1025)+`}`, "spec.image", "1024"),
		Entry("an unknown pull policy", `{image: i, imagePullPolicy: Sometimes}`, "spec.imagePullPolicy", `"Always", "IfNotPresent", "Never"`),
		Entry("too many pull secrets", `{image: i, imagePullSecrets: [`+listOf(17, "{name: s%d}")+`]}`, "spec.imagePullSecrets", "16"),
		Entry("a pull secret twice", `{image: i, imagePullSecrets: [{name: s}, {name: s}]}`, "spec.imagePullSecrets[1]", "Duplicate value"),
		Entry("a long command", `{image: i, command: [`+listOf(65, "c%d")+`]}`, "spec.command", "64"),
		Entry("a long word of a command", `{image: i, command: [`+strings.Repeat("c", 32769)+`]}`, "spec.command[0]", "32768"),
		Entry("too many args", `{image: i, args: [`+listOf(257, "c%d")+`]}`, "spec.args", "256"),
		Entry("a long arg", `{image: i, args: [`+strings.Repeat("c", 32769)+`]}`, "spec.args[0]", "32768"),
		Entry("too many variables", `{image: i, env: [`+listOf(257, "{name: V%d}")+`]}`, "spec.env", "256"),
		Entry("a variable twice", `{image: i, env: [{name: A, value: x}, {name: A, value: y}]}`, "spec.env[1]", "Duplicate value"),
		Entry("a variable with two sources", `{image: i, env: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}`, "spec.env", "remove one of the two"),
		Entry("too many envFrom", `{image: i, envFrom: [`+listOf(65, "{configMapRef: {name: c%d}}")+`]}`, "spec.envFrom", "64"),
		Entry("negative replicas", `{image: i, replicas: -1}`, "spec.replicas", "greater than or equal to 0"),
		Entry("too many replicas", `{image: i, replicas: 100001}`, "spec.replicas", "less than or equal to 100000"),
		Entry("too many ports", `{image: i, ports: [`+listOf(33, "{name: p%[1]d, containerPort: 1%[1]d}")+`]}`, "spec.ports", "32"),
		Entry("a port name twice", `{image: i, ports: [{name: a, containerPort: 1}, {name: a, containerPort: 2}]}`, "spec.ports[1]", "Duplicate value"),
		Entry("a port number twice", `{image: i, ports: [{name: a, containerPort: 1}, {name: b, containerPort: 1}]}`, "spec.ports", "keep one of them"),
		Entry("a port without a name", `{image: i, ports: [{containerPort: 1}]}`, "spec.ports[0].name", "Required value"),
		Entry("an empty port name", `{image: i, ports: [{name: "", containerPort: 1}]}`, "spec.ports[0].name", "at least 1 chars long"),
		Entry("a long port name", `{image: i, ports: [{name: abcdefghijklmnop, containerPort: 1}]}`, "spec.ports[0].name", "15"),
		Entry("a port name with a capital", `{image: i, ports: [{name: Http, containerPort: 1}]}`, "spec.ports[0].name", "for example http"),
		Entry("a port name of digits", `{image: i, ports: [{name: "80", containerPort: 1}]}`, "spec.ports[0].name", "at least one letter"),
		Entry("a probe of a port that does not exist", `{image: i, ports: [{name: http, containerPort: 1}], readinessProbe: {httpGet: {port: web}}}`, "spec", "a probe names a port that is not in spec.ports; add that port, correct the name, or give the number"),
		Entry("a probe of a port without ports", `{image: i, startupProbe: {tcpSocket: {port: web}}}`, "spec", "a probe names a port"),
		Entry("a pull secret without a name", `{image: i, imagePullSecrets: [{}]}`, "spec.imagePullSecrets", "needs the name of a Secret"),
		Entry("a port name with two dashes in a row", `{image: i, ports: [{name: a--b, containerPort: 1}]}`, "spec.ports[0].name", "single dashes"),
		Entry("a port without a number", `{image: i, ports: [{name: a}]}`, "spec.ports[0].containerPort", "Required value"),
		Entry("port 0", `{image: i, ports: [{name: a, containerPort: 0}]}`, "spec.ports[0].containerPort", "greater than or equal to 1"),
		Entry("port 65536", `{image: i, ports: [{name: a, containerPort: 65536}]}`, "spec.ports[0].containerPort", "less than or equal to 65535"),
		Entry("an unknown protocol", `{image: i, ports: [{name: a, containerPort: 1, protocol: HTTP}]}`, "spec.ports[0].protocol", `"TCP", "UDP", "SCTP"`),
		Entry("an unknown service mode", `{image: i, service: {mode: Off}}`, "spec.service.mode", `"Auto", "Headless", "None"`),
		Entry("an unknown service type", `{image: i, service: {type: ExternalName}}`, "spec.service.type", `"ClusterIP", "NodePort", "LoadBalancer"`),
		Entry("a mapping of an unknown port", `{image: i, ports: [{name: a, containerPort: 1}], service: {ports: [{name: b, port: 80}]}}`, "add that port or correct the name"),
		Entry("a mapping without any port", `{image: i, service: {ports: [{name: b, port: 80}]}}`, "add that port or correct the name"),
		Entry("too many mappings", `{image: i, service: {ports: [`+listOf(33, "{name: p%[1]d, port: 1%[1]d}")+`]}}`, "spec.service.ports", "32"),
		Entry("a mapping twice", `{image: i, ports: [{name: a, containerPort: 1}], service: {ports: [{name: a, port: 80}, {name: a, port: 81}]}}`, "spec.service.ports[1]", "Duplicate value"),
		Entry("a mapping with an empty name", `{image: i, service: {ports: [{name: "", port: 80}]}}`, "spec.service.ports[0].name", "at least 1 chars long"),
		Entry("a mapping with a long name", `{image: i, service: {ports: [{name: abcdefghijklmnop, port: 80}]}}`, "spec.service.ports[0].name", "15"),
		Entry("a mapping without a number", `{image: i, service: {ports: [{name: a}]}}`, "spec.service.ports[0].port", "Required value"),
		Entry("a mapping to port 0", `{image: i, service: {ports: [{name: a, port: 0}]}}`, "spec.service.ports[0].port", "greater than or equal to 1"),
		Entry("a mapping to port 65536", `{image: i, service: {ports: [{name: a, port: 65536}]}}`, "spec.service.ports[0].port", "less than or equal to 65535"),
		Entry("too many labels", `{image: i, commonLabels: {`+listOf(65, "l%d: v")+`}}`, "spec.commonLabels", "64"),
		Entry("the label name", `{image: i, commonLabels: {app.kubernetes.io/name: x}}`, "spec.commonLabels", "use another key"),
		Entry("the label instance", `{image: i, commonLabels: {app.kubernetes.io/instance: x}}`, "spec.commonLabels", "use another key"),
		Entry("the label managed-by", `{image: i, commonLabels: {app.kubernetes.io/managed-by: x}}`, "spec.commonLabels", "use another key"),
		Entry("a label of the operator", `{image: i, commonLabels: {quell.dev/x: x}}`, "spec.commonLabels", "use another key"),
		Entry("too many annotations", `{image: i, commonAnnotations: {`+listOf(65, "l%d: v")+`}}`, "spec.commonAnnotations", "64"),
		Entry("an annotation of the operator", `{image: i, commonAnnotations: {quell.dev/x: x}}`, "spec.commonAnnotations", "use another key"),
		Entry("an annotation of the Deployment controller", `{image: i, commonAnnotations: {deployment.kubernetes.io/revision: "1"}}`, "spec.commonAnnotations", "use another key"),
		Entry("kubectl's annotation", `{image: i, commonAnnotations: {kubectl.kubernetes.io/last-applied-configuration: x}}`, "spec.commonAnnotations", "use another key"),
		Entry("an unknown conflict mode", `{image: i, conflictPolicy: {mode: Fight}}`, "spec.conflictPolicy.mode", `"Force", "Yield", "Report"`),
		Entry("an unknown field", `{image: i, replica: 2}`, `unknown field "spec.replica"`),
	)

	DescribeTable("refuses a name that the Service cannot take", func(ctx SpecContext, name string) {
		Expect(dryRun(ctx, name, `{image: i}`)).To(MatchError(ContainSubstring("rename the App")))
	},
		Entry("with a dot", "shop.example"),
		Entry("that starts with a digit", "1shop"),
		Entry("of 64 characters", strings.Repeat("s", 64)),
	)

	DescribeTable("accepts", func(ctx SpecContext, name, spec string) {
		Expect(dryRun(ctx, name, spec)).To(Succeed())
	},
		Entry("the least", "s", `{image: i}`),
		Entry("a name of 63 characters", strings.Repeat("s", 63), `{image: i}`),
		Entry("an image with a digest", "shop", `{image: "registry.example.com:5000/team/app@sha256:`+strings.Repeat("a", 64)+`"}`),
		Entry("the longest image", "shop", `{image: `+strings.Repeat("i", 1024)+`}`),
		Entry("no replicas and the most", "shop", `{image: i, replicas: 0}`),
		Entry("the most replicas", "shop", `{image: i, replicas: 100000}`),
		Entry("the longest port name and the limits of numbers", "shop", `{image: i, ports: [{name: abcdefg-hijk-15, containerPort: 65535}, {name: a, containerPort: 1}]}`),
		Entry("probes of a port by name and by number", "shop", `{image: i, ports: [{name: http, containerPort: 1}], livenessProbe: {tcpSocket: {port: http}}, readinessProbe: {httpGet: {port: 99}}, startupProbe: {exec: {command: [a]}}}`),
		Entry("one number by two protocols", "shop", `{image: i, ports: [{name: dns, containerPort: 53}, {name: dns-udp, containerPort: 53, protocol: UDP}], service: {ports: [{name: dns, port: 5353}, {name: dns-udp, port: 5353}]}}`),
		Entry("numbers that change places", "shop", `{image: i, ports: [{name: a, containerPort: 80}, {name: b, containerPort: 81}], service: {ports: [{name: a, port: 81}, {name: b, port: 80}]}}`),
		Entry("as many ports as there may be", "shop", `{image: i, ports: [`+listOf(32, "{name: p%[1]d, containerPort: 1%[1]d}")+`], service: {ports: [`+listOf(32, "{name: p%[1]d, port: 2%[1]d}")+`]}}`),
		Entry("as many labels as there may be", "shop", `{image: i, commonLabels: {`+listOf(64, "l%d: v")+`}, commonAnnotations: {`+listOf(64, "l%d: v")+`}}`),
		Entry("as many variables as there may be, one with an empty value", "shop", `{image: i, env: [{name: E, value: "", valueFrom: {fieldRef: {fieldPath: metadata.name}}}, `+listOf(255, "{name: V%d}")+`]}`),
		Entry("labels of other domains", "shop", `{image: i, commonLabels: {app.kubernetes.io/part-of: x, team: a}, commonAnnotations: {prometheus.io/scrape: "true"}}`),
		Entry("everything else", "shop", `{image: i, imagePullPolicy: Never, imagePullSecrets: [{name: s}], command: [a], args: [b], envFrom: [{configMapRef: {name: c}}, {secretRef: {name: d}}],
			resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: "2"}}, livenessProbe: {tcpSocket: {port: 1}}, readinessProbe: {httpGet: {port: http, path: /}}, startupProbe: {exec: {command: [x]}},
			ports: [{name: http, containerPort: 8080, protocol: SCTP}], service: {mode: None, type: LoadBalancer}, conflictPolicy: {mode: Report}}`),
	)

	It("fills in one replica and TCP", func(ctx SpecContext) {
		u := unstructuredApp("shop", `{image: i, ports: [{name: a, containerPort: 1}]}`)
		Expect(admin.Create(ctx, u, client.DryRunAll)).To(Succeed())
		spec, err := yaml.Marshal(u.Object["spec"])
		Expect(err).NotTo(HaveOccurred())
		Expect(spec).To(MatchYAML(`{image: i, replicas: 1, ports: [{name: a, containerPort: 1, protocol: TCP}]}`))
	})

	It("takes every App of the table through to children that the API server accepts", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		u := unstructuredApp("shop", `{image: i, imagePullSecrets: [{name: s}], command: [a], args: [b], env: [{name: E, value: ""}, {name: F, valueFrom: {secretKeyRef: {name: s, key: k}}}],
			envFrom: [{configMapRef: {name: c}}, {prefix: P_, secretRef: {name: d, optional: true}}], resources: {requests: {cpu: "0.1", memory: 1048576}, limits: {cpu: "2000m"}},
			livenessProbe: {tcpSocket: {port: 1}}, readinessProbe: {httpGet: {port: http, path: /, httpHeaders: [{name: H, value: ""}]}}, startupProbe: {grpc: {port: 9}},
			ports: [{name: http, containerPort: 8080}, {name: udp, containerPort: 8080, protocol: UDP}], service: {type: NodePort, ports: [{name: http, port: 80}]}, commonLabels: {team: a}, commonAnnotations: {note: ""}}`)
		u.SetNamespace(ns)
		start := mark()
		Expect(admin.Create(ctx, u)).To(Succeed())
		a := newApp(ns, "shop")
		converge(ctx, a)
		expectCost(manager.writes(start, ns), 2, 3)

		// What the API server makes of "0.1", "2000m" and empty values is not taken for a difference.
		since := mark()
		touch(ctx, a)
		manager.restart()
		awaitIdle(ctx)
		Expect(manager.writes(since, ns)).To(BeEmpty())
	})
})

func dryRun(ctx context.Context, name, spec string) error {
	return admin.Create(ctx, unstructuredApp(name, spec), client.DryRunAll, client.FieldValidation("Strict"))
}

func unstructuredApp(name, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	content := map[string]any{}
	Expect(yaml.Unmarshal([]byte(spec), &content)).To(Succeed())
	u := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	u.SetGroupVersionKind(quellv1alpha1.SchemeGroupVersion.WithKind("App"))
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

// listOf is a YAML list's or map's inside: format with the numbers from 0.
func listOf(n int, format string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(items, ", ")
}
