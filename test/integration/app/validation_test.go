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
	DescribeTable("refuses, and says what to write instead", expectRefused,
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
		Entry("a variable with a value and a source", `{image: i, env: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}`, "spec.env", "either value or valueFrom"),
		Entry("too many envFrom", `{image: i, envFrom: [`+listOf(65, "{configMapRef: {name: c%d}}")+`]}`, "spec.envFrom", "64"),
		Entry("negative replicas", `{image: i, replicas: -1}`, "spec.replicas", "greater than or equal to 0"),
		Entry("too many replicas", `{image: i, replicas: 100001}`, "spec.replicas", "less than or equal to 100000"),
		Entry("too many ports", `{image: i, ports: [`+listOf(33, "{name: p%[1]d, containerPort: 1%[1]d}")+`]}`, "spec.ports", "32"),
		Entry("a port name twice", `{image: i, ports: [{name: a, containerPort: 1}, {name: a, containerPort: 2}]}`, "spec.ports[1]", "Duplicate value"),
		Entry("a port number twice, once with the default protocol", `{image: i, ports: [{name: a, containerPort: 1}, {name: b, containerPort: 1, protocol: TCP}]}`, "spec.ports", "keep one of them"),
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

	DescribeTable("refuses Pods, and says what to write instead", expectRefused,
		Entry("an empty working directory", `{image: i, workingDir: ""}`, "spec.workingDir", "at least 1 chars long"),
		Entry("a long working directory", `{image: i, workingDir: `+strings.Repeat("w", 4097)+`}`, "spec.workingDir", "4096"),
		Entry("a variable with an empty source", `{image: i, env: [{name: A, valueFrom: {}}]}`, "spec.env", "exactly one source"),
		Entry("a variable with two sources", `{image: i, env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}, secretKeyRef: {name: s, key: k}}}]}`, "spec.env", "exactly one source; remove the others"),
		Entry("envFrom of nothing", `{image: i, envFrom: [{prefix: A_}]}`, "spec.envFrom", "needs the name of either a configMapRef or a secretRef"),
		Entry("envFrom without a name", `{image: i, envFrom: [{configMapRef: {}}]}`, "spec.envFrom", "needs the name of either"),
		Entry("envFrom of two", `{image: i, envFrom: [{configMapRef: {name: a}, secretRef: {name: b}}]}`, "spec.envFrom", "either a configMapRef or a secretRef"),
		Entry("a probe of nothing", `{image: i, livenessProbe: {periodSeconds: 1}}`, "spec.livenessProbe", "exactly one of exec, httpGet, tcpSocket and grpc"),
		Entry("a probe of two ways", `{image: i, readinessProbe: {exec: {command: [a]}, tcpSocket: {port: 1}}}`, "spec.readinessProbe", "exactly one of exec"),
		Entry("a liveness probe that must succeed twice", `{image: i, livenessProbe: {tcpSocket: {port: 1}, successThreshold: 2}}`, "spec.livenessProbe", "can only be 1; remove it"),
		Entry("a startup probe that must succeed twice", `{image: i, startupProbe: {tcpSocket: {port: 1}, successThreshold: 2}}`, "spec.startupProbe", "can only be 1; remove it"),
		Entry("a probe of port 70000", `{image: i, readinessProbe: {tcpSocket: {port: 70000}}}`, "spec.readinessProbe", "a number from 1 to 65535, or the name of a port"),
		Entry("a sidecar's probe of a port that no Go client can read", `{image: i, sidecars: [{name: s, image: i, startupProbe: {httpGet: {port: 2147483648}}}]}`, "spec.sidecars[0].startupProbe", "a number from 1 to 65535"),
		Entry("a hook of port 0", `{image: i, lifecycle: {preStop: {httpGet: {port: 0}}}}`, "spec.lifecycle", "a number from 1 to 65535"),
		Entry("a hook of nothing", `{image: i, lifecycle: {preStop: {}}}`, "spec.lifecycle", "exactly one of exec, httpGet and sleep"),
		Entry("a hook of two ways", `{image: i, lifecycle: {postStart: {exec: {command: [a]}, sleep: {seconds: 1}}}}`, "spec.lifecycle", "exactly one of exec, httpGet and sleep"),
		Entry("root that is not root", `{image: i, securityContext: {runAsNonRoot: true, runAsUser: 0}}`, "spec.securityContext", "runAsUser 0 is root: choose another user, or set runAsNonRoot to false"),
		Entry("Pods of root that is not root", `{image: i, podSecurityContext: {runAsNonRoot: true, runAsUser: 0}}`, "spec.podSecurityContext", "runAsUser 0 is root"),
		Entry("privileges without escalation", `{image: i, securityContext: {privileged: true, allowPrivilegeEscalation: false}}`, "spec.securityContext", "remove allowPrivilegeEscalation, or privileged"),
		Entry("too many volumes", `{image: i, volumes: [`+listOf(65, "{name: v%d, emptyDir: {}}")+`]}`, "spec.volumes", "64"),
		Entry("a volume twice", `{image: i, volumes: [{name: a, emptyDir: {}}, {name: a, emptyDir: {}}]}`, "spec.volumes[1]", "Duplicate value"),
		Entry("a volume without a name", `{image: i, volumes: [{emptyDir: {}}]}`, "spec.volumes[0].name", "Required value"),
		Entry("a volume name with a capital", `{image: i, volumes: [{name: Data, emptyDir: {}}]}`, "spec.volumes[0].name", "for example cache"),
		Entry("a long volume name", `{image: i, volumes: [{emptyDir: {}, name: `+strings.Repeat("v", 64)+`}]}`, "spec.volumes[0].name", "63"),
		Entry("a volume of nothing", `{image: i, volumes: [{name: a}]}`, "spec.volumes[0]", "exactly one source: configMap, secret, emptyDir", "use spec.podTemplate for others"),
		Entry("a volume of two sources", `{image: i, volumes: [{name: a, emptyDir: {}, hostPath: {path: /x}}]}`, "spec.volumes[0]", "exactly one source"),
		Entry("a volume of a kind that is not here", `{image: i, volumes: [{name: a, emptyDir: {}, ephemeral: {}}]}`, `unknown field "spec.volumes[0].ephemeral"`),
		Entry("a Secret volume without its Secret", `{image: i, volumes: [{name: a, secret: {}}]}`, "spec.volumes[0]", "the source needs its name", "secret.secretName"),
		Entry("a ConfigMap volume without its ConfigMap", `{image: i, volumes: [{name: a, configMap: {optional: true}}]}`, "spec.volumes[0]", "configMap.name"),
		Entry("a claim without a name", `{image: i, volumes: [{name: a, persistentVolumeClaim: {claimName: ""}}]}`, "spec.volumes[0]", "persistentVolumeClaim.claimName"),
		Entry("a file mode that is not octal", `{image: i, volumes: [{name: a, secret: {secretName: s, defaultMode: 640}}]}`, "spec.volumes[0]", "write it as an octal number, for example 0640"),
		Entry("too many mounts", `{image: i, podTemplate: {}, volumeMounts: [`+listOf(65, "{name: a, mountPath: /%d}")+`]}`, "spec.volumeMounts", "64"),
		Entry("a mount of a volume that does not exist", `{image: i, volumes: [{name: data, emptyDir: {}}], volumeMounts: [{name: date, mountPath: /a}]}`, "volumeMounts name a volume that is not in spec.volumes and spec.configFiles; add it or correct the name"),
		Entry("a mount without volumes", `{image: i, volumeMounts: [{name: data, mountPath: /a}]}`, "volumeMounts name a volume that is not in spec.volumes and spec.configFiles; add it or correct the name"),
		Entry("two mounts at one place", `{image: i, volumes: [{name: data, emptyDir: {}}], volumeMounts: [{name: data, mountPath: /a}, {name: data, mountPath: /a, subPath: x}]}`, "spec.volumeMounts[1]", "Duplicate value"),
		Entry("too many config files", `{image: i, configFiles: [`+listOf(33, "{name: c%[1]d, mountPath: /%[1]d, secret: s}")+`]}`, "spec.configFiles", "32"),
		Entry("config files twice", `{image: i, configFiles: [{name: c, mountPath: /a, secret: s}, {name: c, mountPath: /b, secret: s}]}`, "spec.configFiles[1]", "Duplicate value"),
		Entry("config files at one place", `{image: i, configFiles: [{name: c, mountPath: /a, secret: s}, {name: d, mountPath: /a, secret: s}]}`, "spec.configFiles", "the same mountPath; move one of them"),
		Entry("config files of nothing", `{image: i, configFiles: [{name: c, mountPath: /a}]}`, "spec.configFiles[0]", "give either configMap or secret"),
		Entry("config files of two", `{image: i, configFiles: [{name: c, mountPath: /a, secret: s, configMap: m}]}`, "spec.configFiles[0]", "give either configMap or secret"),
		Entry("config files without a path", `{image: i, configFiles: [{name: c, secret: s}]}`, "spec.configFiles[0].mountPath", "Required value"),
		Entry("config files at a relative path", `{image: i, configFiles: [{name: c, mountPath: etc, secret: s}]}`, "spec.configFiles[0].mountPath", "an absolute path without a colon, for example /etc/app"),
		Entry("config files at a path with a colon", `{image: i, configFiles: [{name: c, mountPath: "/a:b", secret: s}]}`, "spec.configFiles[0].mountPath", "without a colon"),
		Entry("a key with a slash", `{image: i, configFiles: [{name: c, mountPath: /a, secret: s, subPath: a/b}]}`, "spec.configFiles[0].subPath", "must be a key of the ConfigMap or Secret"),
		Entry("a ConfigMap with a capital", `{image: i, configFiles: [{name: c, mountPath: /a, configMap: Settings}]}`, "spec.configFiles[0].configMap", "must be the name of a ConfigMap"),
		Entry("a Secret with a slash", `{image: i, configFiles: [{name: c, mountPath: /a, secret: team/s}]}`, "spec.configFiles[0].secret", "must be the name of a Secret"),
		Entry("an unknown answer to a change of config", `{image: i, configFiles: [{name: c, mountPath: /a, secret: s, onChange: Restart}]}`, "spec.configFiles[0].onChange", `"Roll", "Ignore"`),
		Entry("config files with a volume's name", `{image: i, volumes: [{name: data, emptyDir: {}}], configFiles: [{name: data, mountPath: /a, secret: s}]}`, "spec.volumes and spec.configFiles", "rename one of them"),
		Entry("config files on a mount", `{image: i, volumes: [{name: data, emptyDir: {}}], volumeMounts: [{name: data, mountPath: /a}], configFiles: [{name: c, mountPath: /a, secret: s}]}`, "spec.volumeMounts and spec.configFiles", "move one of them"),
		Entry("too many init containers", `{image: i, initContainers: [`+listOf(17, "{name: c%d, image: i}")+`]}`, "spec.initContainers", "16"),
		Entry("an init container without an image", `{image: i, initContainers: [{name: c}]}`, "spec.initContainers[0].image", "Required value"),
		Entry("an init container with the application's name", `{image: i, initContainers: [{name: app, image: i}]}`, "spec.initContainers[0].name", "the application's own container; choose another"),
		Entry("an init container with a probe", `{image: i, initContainers: [{name: c, image: i, startupProbe: {tcpSocket: {port: 1}}}]}`, "spec.initContainers", "move it to spec.sidecars if it keeps running"),
		Entry("an init container with a port", `{image: i, initContainers: [{name: c, image: i, ports: [{name: a, containerPort: 1}]}]}`, "spec.initContainers", "move it to spec.sidecars"),
		Entry("an init container that mounts nothing", `{image: i, initContainers: [{name: c, image: i, volumeMounts: [{name: data, mountPath: /a}]}]}`, "volumeMounts name a volume that is not in spec.volumes and spec.configFiles; add it or correct the name"),
		Entry("an init container with a double variable", `{image: i, initContainers: [{name: c, image: i, env: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}`, "spec.initContainers[0].env", "either value or valueFrom"),
		Entry("a sidecar twice", `{image: i, sidecars: [{name: c, image: i}, {name: c, image: j}]}`, "spec.sidecars[1]", "Duplicate value"),
		Entry("a sidecar with a dot in its name", `{image: i, sidecars: [{name: c.d, image: i}]}`, "spec.sidecars[0].name", "for example log-shipper"),
		Entry("a sidecar with a space in its image", `{image: i, sidecars: [{name: c, image: "i j"}]}`, "spec.sidecars[0].image", "an image reference without spaces"),
		Entry("a sidecar with the application's name", `{image: i, sidecars: [{name: app, image: i}]}`, "spec.sidecars[0].name", "choose another"),
		Entry("a sidecar with an init container's name", `{image: i, sidecars: [{name: c, image: i}], initContainers: [{name: c, image: i}]}`, "spec.initContainers and spec.sidecars", "rename one of them"),
		Entry("a sidecar with a port of the application", `{image: i, ports: [{name: http, containerPort: 8080}], sidecars: [{name: c, image: i, ports: [{name: http, containerPort: 9}]}]}`, "spec.sidecars", "two containers have a port of the same name; rename one of them"),
		Entry("two sidecars with a port of one name", `{image: i, sidecars: [{name: c, image: i, ports: [{name: m, containerPort: 9}]}, {name: d, image: i, ports: [{name: m, containerPort: 10}]}]}`, "spec.sidecars", "two containers have a port of the same name"),
		Entry("a sidecar that probes a port of the application", `{image: i, ports: [{name: http, containerPort: 8080}], sidecars: [{name: c, image: i, readinessProbe: {tcpSocket: {port: http}}}]}`, "spec.sidecars[0]", "a port that this container does not have"),
		Entry("a sidecar that mounts nothing", `{image: i, sidecars: [{name: c, image: i, volumeMounts: [{name: data, mountPath: /a}]}]}`, "volumeMounts name a volume that is not in spec.volumes and spec.configFiles; add it or correct the name"),
		Entry("a sidecar of envFrom without a name", `{image: i, sidecars: [{name: c, image: i, envFrom: [{secretRef: {}}]}]}`, "spec.sidecars[0].envFrom", "needs the name of either"),
		Entry("a privileged sidecar without escalation", `{image: i, sidecars: [{name: c, image: i, securityContext: {privileged: true, allowPrivilegeEscalation: false}}]}`, "spec.sidecars[0].securityContext", "remove allowPrivilegeEscalation, or privileged"),
		Entry("an unknown strategy", `{image: i, strategy: {type: Canary}}`, "spec.strategy", "type is RollingUpdate or Recreate"),
		Entry("Recreate with a rolling update", `{image: i, strategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}}`, "spec.strategy", "remove it, or set type to RollingUpdate"),
		Entry("a rolling update that cannot move", `{image: i, strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: "0%"}}}`, "spec.strategy", "cannot both be 0: no Pod could be replaced"),
		Entry("a surge of words", `{image: i, strategy: {rollingUpdate: {maxSurge: half}}}`, "spec.strategy", "a number or a percentage, for example 1 or 25%"),
		Entry("more than everything unavailable", `{image: i, strategy: {rollingUpdate: {maxUnavailable: "101%"}}}`, "spec.strategy", "maxUnavailable at most 100%"),
		Entry("negative minReadySeconds", `{image: i, minReadySeconds: -1}`, "spec.minReadySeconds", "greater than or equal to 0"),
		Entry("a deadline before Pods count", `{image: i, minReadySeconds: 60, progressDeadlineSeconds: 60}`, "spec.minReadySeconds", "must be less than progressDeadlineSeconds"),
		Entry("the default deadline before Pods count", `{image: i, minReadySeconds: 600}`, "spec.minReadySeconds", "600 when unset"),
		Entry("no time to progress", `{image: i, progressDeadlineSeconds: 0}`, "spec.progressDeadlineSeconds", "greater than or equal to 1"),
		Entry("a negative history", `{image: i, revisionHistoryLimit: -1}`, "spec.revisionHistoryLimit", "greater than or equal to 0"),
		Entry("a long history", `{image: i, revisionHistoryLimit: 1001}`, "spec.revisionHistoryLimit", "less than or equal to 1000"),
		Entry("a negative grace period", `{image: i, terminationGracePeriodSeconds: -1}`, "spec.terminationGracePeriodSeconds", "greater than or equal to 0"),
		Entry("an affinity that is no object", `{image: i, affinity: zone-a}`, "spec.affinity", "must be of type object"),
		Entry("a node label with a space", `{image: i, nodeSelector: {"a b": c}}`, "spec.nodeSelector", "each key must be a label key"),
		Entry("a long value of a node label", `{image: i, nodeSelector: {a: `+strings.Repeat("v", 64)+`}}`, "spec.nodeSelector", "each value at most 63 characters"),
		Entry("too many node labels", `{image: i, nodeSelector: {`+listOf(65, "l%d: v")+`}}`, "spec.nodeSelector", "64"),
		Entry("a toleration of every taint with a value", `{image: i, tolerations: [{operator: Exists, value: x}]}`, "spec.tolerations", "operator Exists has no value"),
		Entry("a toleration without a key", `{image: i, tolerations: [{value: x}]}`, "spec.tolerations", "any other needs a key; write {key: k, operator: Exists}"),
		Entry("a toleration of an unknown effect", `{image: i, tolerations: [{key: a, effect: NoRun}]}`, "spec.tolerations", "effect is NoSchedule, PreferNoSchedule or NoExecute"),
		Entry("a toleration for a time of the wrong effect", `{image: i, tolerations: [{key: a, effect: NoSchedule, tolerationSeconds: 1}]}`, "spec.tolerations", "tolerationSeconds is for NoExecute only"),
		Entry("a spread without skew", `{image: i, topologySpreadConstraints: [{maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}`, "spec.topologySpreadConstraints", "a maxSkew of at least 1"),
		Entry("a spread of an unknown kind", `{image: i, topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: Never}]}`, "spec.topologySpreadConstraints", "DoNotSchedule or ScheduleAnyway"),
		Entry("a spread over nothing", `{image: i, topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]}`, "spec.topologySpreadConstraints[0].topologyKey", "Required value"),
		Entry("a soft spread with domains", `{image: i, topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, minDomains: 2}]}`, "spec.topologySpreadConstraints", "for whenUnsatisfiable DoNotSchedule only"),
		Entry("a spread twice", `{image: i, topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}`, "spec.topologySpreadConstraints[1]", "Duplicate value"),
		Entry("a priority class with a capital", `{image: i, priorityClassName: High}`, "spec.priorityClassName", "must be the name of a PriorityClass"),
		Entry("a runtime class with a space", `{image: i, runtimeClassName: "g visor"}`, "spec.runtimeClassName", "must be the name of a RuntimeClass"),
		Entry("an address of the hosts file twice", `{image: i, hostAliases: [{ip: 10.0.0.1, hostnames: [a]}, {ip: 10.0.0.1, hostnames: [b]}]}`, "spec.hostAliases[1]", "Duplicate value"),
		Entry("an unknown DNS policy", `{image: i, dnsPolicy: Cluster}`, "spec.dnsPolicy", `"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"`),
		Entry("no DNS at all", `{image: i, dnsPolicy: None}`, "spec.dnsPolicy", "needs dnsConfig.nameservers; give at least one"),
		Entry("a Pod label that selects", `{image: i, podLabels: {app.kubernetes.io/instance: x}}`, "spec.podLabels", "use another key"),
		Entry("a Pod label of the operator", `{image: i, podLabels: {quell.dev/x: x}}`, "spec.podLabels", "use another key"),
		Entry("a Pod label with two slashes", `{image: i, podLabels: {a/b/c: x}}`, "spec.podLabels", "each key must be a label key, for example example.com/tier"),
		Entry("a Pod annotation of the operator", `{image: i, podAnnotations: {quell.dev/x: x}}`, "spec.podAnnotations", "use another key"),
		Entry("a Pod annotation with a space", `{image: i, podAnnotations: {"a b": x}}`, "spec.podAnnotations", "each key must be an annotation key, for example example.com/owner"),
		Entry("too many Pod annotations", `{image: i, podAnnotations: {`+listOf(65, "l%d: v")+`}}`, "spec.podAnnotations", "64"),
		Entry("a label with a long value", `{image: i, commonLabels: {a: `+strings.Repeat("v", 64)+`}}`, "spec.commonLabels", "each value at most 63 characters"),
		Entry("a label with an empty key", `{image: i, commonLabels: {"": x}}`, "spec.commonLabels", "each key must be a label key"),
		Entry("an annotation with a slash at its end", `{image: i, commonAnnotations: {a/: x}}`, "spec.commonAnnotations", "each key must be an annotation key"),
		Entry("an overlay that is no object", `{image: i, podTemplate: [a]}`, "spec.podTemplate", "must be of type object"),
		Entry("an unknown security default", `{image: i, defaults: {security: Baseline}}`, "spec.defaults.security", `"Restricted", "None"`),
		Entry("an unknown spread default", `{image: i, defaults: {topologySpread: Zone}}`, "spec.defaults.topologySpread", `"Spread", "None"`),
		Entry("a ServiceAccount without a name", `{image: i, serviceAccount: {automount: false}}`, "spec.serviceAccount", "name the ServiceAccount to use"),
		Entry("a ServiceAccount with a capital", `{image: i, serviceAccount: {name: Shop}}`, "spec.serviceAccount.name", "lower-case letters, digits, dashes and dots"),
		Entry("annotations of a ServiceAccount that is not made", `{image: i, serviceAccount: {name: shop, annotations: {a: b}}}`, "spec.serviceAccount", "set create to true, or remove them"),
		Entry("an annotation of the operator on the ServiceAccount", `{image: i, serviceAccount: {create: true, annotations: {quell.dev/x: b}}}`, "spec.serviceAccount.annotations", "belong to the operator and kubectl"),
		Entry("a suspend that is no truth", `{image: i, suspend: "yes"}`, "spec.suspend", "must be of type boolean"),
	)

	DescribeTable("refuses numbers of Pods, and says what to write instead", expectRefused,
		Entry("an autoscaler without a highest number", `{image: i, autoscaling: {cpuUtilization: 80}}`, "spec.autoscaling.maxReplicas", "Required value"),
		Entry("an autoscaler without a metric", `{image: i, autoscaling: {maxReplicas: 3}}`, "spec.autoscaling", "give at least one of cpuUtilization, memoryUtilization and metrics"),
		Entry("an autoscaler upside down", `{image: i, autoscaling: {minReplicas: 4, maxReplicas: 3, cpuUtilization: 80}}`, "spec.autoscaling", "minReplicas must not be larger than maxReplicas"),
		Entry("an autoscaler to nothing", `{image: i, autoscaling: {minReplicas: 0, maxReplicas: 3, cpuUtilization: 80}}`, "spec.autoscaling.minReplicas", "greater than or equal to 1"),
		Entry("too large an autoscaler", `{image: i, autoscaling: {maxReplicas: 100001, cpuUtilization: 80}}`, "spec.autoscaling.maxReplicas", "less than or equal to 100000"),
		Entry("a CPU target of 0", `{image: i, autoscaling: {maxReplicas: 3, cpuUtilization: 0}}`, "spec.autoscaling.cpuUtilization", "greater than or equal to 1"),
		Entry("too high a memory target", `{image: i, autoscaling: {maxReplicas: 3, memoryUtilization: 10001}}`, "spec.autoscaling.memoryUtilization", "less than or equal to 10000"),
		Entry("a metric without its source", `{image: i, autoscaling: {maxReplicas: 3, metrics: [{type: Resource}]}}`, "spec.autoscaling.metrics", "exactly the source of that type"),
		Entry("a metric of the wrong source", `{image: i, autoscaling: {maxReplicas: 3, metrics: [{type: Pods, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}}`, "spec.autoscaling.metrics", "exactly the source of that type, for example type: Resource with resource"),
		Entry("a metric of an unknown type", `{image: i, autoscaling: {maxReplicas: 3, metrics: [{type: Moon}]}}`, "spec.autoscaling.metrics", "a metric has a type"),
		Entry("a budget of nothing", `{image: i, podDisruptionBudget: {}}`, "spec.podDisruptionBudget", "exactly one of minAvailable and maxUnavailable"),
		Entry("a budget of two limits", `{image: i, podDisruptionBudget: {minAvailable: 1, maxUnavailable: 1}}`, "spec.podDisruptionBudget", "exactly one of"),
		Entry("a negative budget", `{image: i, podDisruptionBudget: {minAvailable: -1}}`, "spec.podDisruptionBudget.minAvailable", "a number, or a percentage up to 100%"),
		Entry("a budget of more than all", `{image: i, podDisruptionBudget: {maxUnavailable: "101%"}}`, "spec.podDisruptionBudget.maxUnavailable", "for example 1 or 25%"),
		Entry("a budget without a percent sign", `{image: i, podDisruptionBudget: {maxUnavailable: "25"}}`, "spec.podDisruptionBudget.maxUnavailable", "for example 1 or 25%"),
		Entry("an unknown eviction policy", `{image: i, podDisruptionBudget: {maxUnavailable: 1, unhealthyPodEvictionPolicy: Never}}`, "spec.podDisruptionBudget.unhealthyPodEvictionPolicy", `"IfHealthyBudget", "AlwaysAllow"`),
	)

	DescribeTable("refuses networks and policies, and says what to write instead", expectRefused,
		Entry("a headless load balancer", `{image: i, service: {mode: Headless, type: LoadBalancer}}`, "spec.service", "remove type, or set mode to Auto"),
		Entry("an external policy within the cluster", `{image: i, service: {externalTrafficPolicy: Local}}`, "spec.service", "set that type, or remove it"),
		Entry("an unknown session affinity", `{image: i, service: {sessionAffinity: Cookie}}`, "spec.service.sessionAffinity", `"None", "ClientIP"`),
		Entry("an unknown internal policy", `{image: i, service: {internalTrafficPolicy: Near}}`, "spec.service.internalTrafficPolicy", `"Cluster", "Local"`),
		Entry("an unknown distribution", `{image: i, service: {trafficDistribution: Near}}`, "spec.service.trafficDistribution", "must be PreferSameZone, PreferSameNode or PreferClose"),
		Entry("an annotation of the operator on the Service", `{image: i, service: {annotations: {quell.dev/x: b}}}`, "spec.service.annotations", "belong to the operator and kubectl"),
		Entry("kubectl's annotation on the Service", `{image: i, service: {annotations: {kubectl.kubernetes.io/last-applied-configuration: b}}}`, "spec.service.annotations", "belong to the operator and kubectl"),
		Entry("too many extra ports", `{image: i, service: {extraPorts: [`+listOf(17, "{name: p%[1]d, port: 1%[1]d}")+`]}}`, "spec.service.extraPorts", "16"),
		Entry("an extra port with a capital", `{image: i, service: {extraPorts: [{name: Metrics, port: 1}]}}`, "spec.service.extraPorts[0].name", "for example metrics"),
		Entry("an extra port without a number", `{image: i, service: {extraPorts: [{name: metrics}]}}`, "spec.service.extraPorts[0].port", "Required value"),
		Entry("an extra port with the name of a port", `{image: i, ports: [{name: http, containerPort: 8080}], service: {extraPorts: [{name: http, port: 1}]}}`, "is a name in spec.ports already; choose another"),
		Entry("an extra port to 65536", `{image: i, service: {extraPorts: [{name: metrics, port: 1, targetPort: 65536}]}}`, "spec.service.extraPorts[0].targetPort", "a number from 1 to 65535"),
		Entry("an extra port to a name that does not exist", `{image: i, ports: [{name: http, containerPort: 8080}], service: {extraPorts: [{name: metrics, port: 1, targetPort: metrics}]}}`, "a port that no container has; add it to spec.ports or to spec.sidecars[].ports, or give the number"),
		Entry("an extra port of an unknown protocol", `{image: i, service: {extraPorts: [{name: metrics, port: 1, protocol: HTTP}]}}`, "spec.service.extraPorts[0].protocol", `"TCP", "UDP", "SCTP"`),
		Entry("an Ingress without hosts", `{image: i, ports: [{name: http, containerPort: 8080}], ingress: {}}`, "spec.ingress.hosts", "Required value"),
		Entry("an Ingress with no hosts", `{image: i, ports: [{name: http, containerPort: 8080}], ingress: {hosts: []}}`, "spec.ingress.hosts", "at least 1 items"),
		Entry("an Ingress without ports", `{image: i, ingress: {hosts: [{host: a.example}]}}`, "spec.ingress", "add an entry to spec.ports"),
		Entry("an Ingress without a Service", `{image: i, ports: [{name: http, containerPort: 8080}], ingress: {hosts: [{host: a.example}]}, service: {mode: None}}`, "spec.ingress", "do not set service.mode to None"),
		Entry("an Ingress class with a capital", `{image: i, ports: [{name: http, containerPort: 8080}], ingress: {className: Nginx, hosts: [{host: a.example}]}}`, "spec.ingress.className", "must be the name of an IngressClass"),
		Entry("a host with a capital", `{image: i, ports: [{name: http, containerPort: 8080}], ingress: {hosts: [{host: Shop.example}]}}`, "spec.ingress.hosts[0].host", "for example shop.example.com or *.example.com"),
		Entry("a host with a scheme", `{image: i, ports: [{name: http, containerPort: 8080}], ingress: {hosts: [{host: "https://shop.example"}]}}`, "spec.ingress.hosts[0].host", "must be a DNS name"),
		Entry("a host with a star in the middle", `{image: i, ports: [{name: http, containerPort: 8080}], ingress: {hosts: [{host: shop.*.example}]}}`, "spec.ingress.hosts[0].host", "must be a DNS name"),
		Entry("an address as host", `{image: i, ports: [{name: http, containerPort: 8080}], ingress: {hosts: [{host: 10.0.0.1}]}}`, "spec.ingress.hosts[0].host", "must be a DNS name, not an address"),
		Entry("a host twice", `{image: i, ports: [{name: http, containerPort: 8080}], ingress: {hosts: [{host: a.example}, {host: a.example}]}}`, "spec.ingress.hosts[1]", "Duplicate value"),
		Entry("a path without a slash", `{image: i, ports: [{name: http, containerPort: 8080}], ingress: {hosts: [{host: a.example, paths: [{path: shop}]}]}}`, "spec.ingress.hosts[0].paths[0].path", "must begin with a slash"),
		Entry("a path that climbs", `{image: i, ports: [{name: http, containerPort: 8080}], ingress: {hosts: [{host: a.example, paths: [{path: /a/../b}]}]}}`, "spec.ingress.hosts[0].paths[0]", "must not contain //, /./ or /../"),
		Entry("a path twice", `{image: i, ports: [{name: http, containerPort: 8080}], ingress: {hosts: [{host: a.example, paths: [{path: /}, {path: /}]}]}}`, "spec.ingress.hosts[0].paths[1]", "Duplicate value"),
		Entry("an unknown path type", `{image: i, ports: [{name: http, containerPort: 8080}], ingress: {hosts: [{host: a.example, paths: [{path: /, pathType: Regex}]}]}}`, "spec.ingress.hosts[0].paths[0].pathType", `"Exact", "Prefix", "ImplementationSpecific"`),
		Entry("a path to a port that does not exist", `{image: i, ports: [{name: http, containerPort: 8080}], ingress: {hosts: [{host: a.example, paths: [{path: /, port: web}]}]}}`, "spec.ingress", "an ingress path names a port that is not in spec.ports; add that port or correct the name"),
		Entry("a certificate for a host that is not served", `{image: i, ports: [{name: http, containerPort: 8080}], ingress: {hosts: [{host: a.example}], tls: [{secretName: s, hosts: [b.example]}]}}`, "spec.ingress", "tls names a host that is not in hosts; add it there, or correct the name"),
		Entry("a certificate with a capital", `{image: i, ports: [{name: http, containerPort: 8080}], ingress: {hosts: [{host: a.example}], tls: [{secretName: Shop}]}}`, "spec.ingress.tls[0].secretName", "must be the name of a Secret"),
		Entry("an annotation of the operator on the Ingress", `{image: i, ports: [{name: http, containerPort: 8080}], ingress: {hosts: [{host: a.example}], annotations: {quell.dev/x: b}}}`, "spec.ingress.annotations", "belong to the operator and kubectl"),
		Entry("a route without a Gateway", `{image: i, ports: [{name: http, containerPort: 8080}], httpRoute: {}}`, "spec.httpRoute.parentRefs", "Required value"),
		Entry("a route without ports", `{image: i, httpRoute: {parentRefs: [{name: g}]}}`, "spec.httpRoute", "add an entry to spec.ports"),
		Entry("a route to one Gateway twice", `{image: i, ports: [{name: http, containerPort: 8080}], httpRoute: {parentRefs: [{name: g}, {name: g}]}}`, "spec.httpRoute.parentRefs", "two entries name the same Gateway"),
		Entry("a Gateway with a slash", `{image: i, ports: [{name: http, containerPort: 8080}], httpRoute: {parentRefs: [{name: infra/g}]}}`, "spec.httpRoute.parentRefs[0].name", "must be the name of a Gateway"),
		Entry("a Gateway of a namespace with a dot", `{image: i, ports: [{name: http, containerPort: 8080}], httpRoute: {parentRefs: [{name: g, namespace: a.b}]}}`, "spec.httpRoute.parentRefs[0].namespace", "must be the name of a namespace"),
		Entry("a listener with a capital", `{image: i, ports: [{name: http, containerPort: 8080}], httpRoute: {parentRefs: [{name: g, sectionName: HTTP}]}}`, "spec.httpRoute.parentRefs[0].sectionName", "must be the name of a listener"),
		Entry("a hostname with a port", `{image: i, ports: [{name: http, containerPort: 8080}], httpRoute: {parentRefs: [{name: g}], hostnames: ["a.example:80"]}}`, "spec.httpRoute.hostnames", "each must be a DNS name"),
		Entry("an address as hostname", `{image: i, ports: [{name: http, containerPort: 8080}], httpRoute: {parentRefs: [{name: g}], hostnames: [10.0.0.1]}}`, "spec.httpRoute.hostnames", "each must be a DNS name"),
		Entry("a hostname twice", `{image: i, ports: [{name: http, containerPort: 8080}], httpRoute: {parentRefs: [{name: g}], hostnames: [a.example, a.example]}}`, "spec.httpRoute.hostnames[1]", "Duplicate value"),
		Entry("a route rule without a port", `{image: i, ports: [{name: http, containerPort: 8080}], httpRoute: {parentRefs: [{name: g}], rules: [{}]}}`, "spec.httpRoute.rules[0].port", "Required value"),
		Entry("a route rule to a port that does not exist", `{image: i, ports: [{name: http, containerPort: 8080}], httpRoute: {parentRefs: [{name: g}], rules: [{port: web}]}}`, "spec.httpRoute", "an httpRoute rule names a port that is not in spec.ports"),
		Entry("a match of nothing", `{image: i, ports: [{name: http, containerPort: 8080}], httpRoute: {parentRefs: [{name: g}], rules: [{port: http, matches: [{}]}]}}`, "spec.httpRoute.rules[0].matches[0]", "at least one of path, method and headers"),
		Entry("a path type without a path", `{image: i, ports: [{name: http, containerPort: 8080}], httpRoute: {parentRefs: [{name: g}], rules: [{port: http, matches: [{method: GET, pathType: Exact}]}]}}`, "spec.httpRoute.rules[0].matches[0]", "give the path, or remove pathType"),
		Entry("a match of a path with two slashes", `{image: i, ports: [{name: http, containerPort: 8080}], httpRoute: {parentRefs: [{name: g}], rules: [{port: http, matches: [{path: /a//b}]}]}}`, "spec.httpRoute.rules[0].matches[0]", "must not contain //, /./ or /../"),
		Entry("a method in small letters", `{image: i, ports: [{name: http, containerPort: 8080}], httpRoute: {parentRefs: [{name: g}], rules: [{port: http, matches: [{method: get}]}]}}`, "spec.httpRoute.rules[0].matches[0].method", `"GET", "HEAD"`),
		Entry("a header with a space", `{image: i, ports: [{name: http, containerPort: 8080}], httpRoute: {parentRefs: [{name: g}], rules: [{port: http, matches: [{headers: [{name: X Version, value: a}]}]}]}}`, "spec.httpRoute.rules[0].matches[0].headers[0].name", "for example X-Version"),
		Entry("a header without a value", `{image: i, ports: [{name: http, containerPort: 8080}], httpRoute: {parentRefs: [{name: g}], rules: [{port: http, matches: [{headers: [{name: X-Version}]}]}]}}`, "spec.httpRoute.rules[0].matches[0].headers[0].value", "Required value"),
		Entry("a network policy of nothing", `{image: i, networkPolicy: {}}`, "spec.networkPolicy", "give ingress, egress or both"),
		Entry("a policy for a port that does not exist", `{image: i, ports: [{name: http, containerPort: 8080}], networkPolicy: {ingress: {from: [{app: a}], ports: [web]}}}`, "spec.networkPolicy", "add that port or correct the name"),
		Entry("a policy for a port of nobody", `{image: i, ports: [{name: http, containerPort: 8080}], networkPolicy: {ingress: {ports: [http]}}}`, "spec.networkPolicy.ingress", "say who may reach them, for example namespaceSelector {}"),
		Entry("a peer of nobody", `{image: i, networkPolicy: {egress: {to: [{}]}}}`, "spec.networkPolicy.egress.to[0]", "a peer is either a cidr, or an app, a namespace or namespaceSelector"),
		Entry("a peer of two kinds", `{image: i, networkPolicy: {egress: {to: [{app: a, cidr: 10.0.0.0/8}]}}}`, "spec.networkPolicy.egress.to[0]", "a peer is either a cidr"),
		Entry("a peer of two namespaces", `{image: i, networkPolicy: {ingress: {from: [{namespace: a, namespaceSelector: {}}]}}}`, "spec.networkPolicy.ingress.from[0]", "give either namespace or namespaceSelector"),
		Entry("an address without a range", `{image: i, networkPolicy: {egress: {to: [{cidr: 10.0.0.1}]}}}`, "spec.networkPolicy.egress.to[0].cidr", "a range of addresses, for example 10.0.0.0/8"),
		Entry("a peer App with a slash", `{image: i, networkPolicy: {ingress: {from: [{app: team/shop}]}}}`, "spec.networkPolicy.ingress.from[0].app", "must be the name of an App"),
		Entry("a peer namespace with a capital", `{image: i, networkPolicy: {ingress: {from: [{namespace: Team}]}}}`, "spec.networkPolicy.ingress.from[0].namespace", "must be the name of a namespace"),
		Entry("a conflict rule without a path", `{image: i, conflictPolicy: {rules: [{kind: Deployment, mode: Yield}]}}`, "spec.conflictPolicy.rules[0].path", "Required value"),
		Entry("a conflict rule without a dot", `{image: i, conflictPolicy: {rules: [{kind: Deployment, path: spec.replicas, mode: Yield}]}}`, "spec.conflictPolicy.rules[0].path", "must begin with a dot, for example .spec.replicas"),
		Entry("a conflict rule without a mode", `{image: i, conflictPolicy: {rules: [{kind: Deployment, path: .spec.replicas}]}}`, "spec.conflictPolicy.rules[0].mode", "Required value"),
		Entry("a conflict rule of an unknown kind", `{image: i, conflictPolicy: {rules: [{kind: Pod, path: .spec, mode: Yield}]}}`, "spec.conflictPolicy.rules[0].kind", `"Deployment", "Service"`),
		Entry("a conflict rule twice", `{image: i, conflictPolicy: {rules: [{kind: Service, path: .spec, mode: Yield}, {kind: Service, path: .spec, mode: Force}]}}`, "spec.conflictPolicy.rules[1]", "Duplicate value"),
		Entry("too many conflict rules", `{image: i, conflictPolicy: {rules: [`+listOf(33, "{kind: Service, path: .a%d, mode: Yield}")+`]}}`, "spec.conflictPolicy.rules", "32"),
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

	DescribeTable("accepts, of the rest,", func(ctx SpecContext, spec string) {
		Expect(dryRun(ctx, "shop", spec)).To(Succeed())
	},
		Entry("Pods of every field", `{image: i, workingDir: /srv, lifecycle: {postStart: {exec: {command: [a]}}, preStop: {sleep: {seconds: 5}}}, securityContext: {runAsUser: 1000, readOnlyRootFilesystem: true}, podSecurityContext: {fsGroup: 2000},
			minReadySeconds: 599, revisionHistoryLimit: 0, terminationGracePeriodSeconds: 0, affinity: {nodeAffinity: {}}, nodeSelector: {kubernetes.io/os: linux}, priorityClassName: system-node-critical, runtimeClassName: gvisor,
			hostAliases: [{ip: "::1", hostnames: [a]}], dnsPolicy: None, dnsConfig: {nameservers: [10.0.0.10]}, podLabels: {example.com/tier: ""}, podAnnotations: {example.com/Note: "any words"}, suspend: true,
			defaults: {security: None, topologySpread: None}}`),
		Entry("a probe that may be slow to trust", `{image: i, readinessProbe: {grpc: {port: 1}, successThreshold: 3}}`),
		Entry("root by name", `{image: i, securityContext: {runAsUser: 0}, podSecurityContext: {runAsNonRoot: false, runAsUser: 0}}`),
		Entry("privileges", `{image: i, securityContext: {privileged: true}, sidecars: [{name: s, image: i, securityContext: {privileged: true, allowPrivilegeEscalation: true}}]}`),
		Entry("a variable of each source", `{image: i, env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: B, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}, {name: C, valueFrom: {configMapKeyRef: {name: c, key: k}}}, {name: D, valueFrom: {secretKeyRef: {name: s, key: k, optional: true}}}]}`),
		Entry("a volume of each source", `{image: i, volumes: [{name: a, configMap: {name: c, defaultMode: 0777}}, {name: b, secret: {secretName: s, defaultMode: 0}}, {name: c, emptyDir: {}}, {name: d, persistentVolumeClaim: {claimName: p}},
			{name: e, projected: {sources: [{secret: {name: s}}]}}, {name: f, csi: {driver: d.example}}, {name: g, hostPath: {path: /}}, {name: h, nfs: {server: nfs.example, path: /}}]}`),
		Entry("mounts of volumes and config files in every container", `{image: i, volumes: [{name: a, emptyDir: {}}], configFiles: [{name: b, mountPath: /b, configMap: c.d-e, onChange: Roll}, {name: c, mountPath: /b/c.yaml, secret: s, subPath: c.yaml, onChange: Ignore}],
			volumeMounts: [{name: a, mountPath: /a}, {name: b, mountPath: /b2}], initContainers: [{name: c, image: i, volumeMounts: [{name: a, mountPath: /a}, {name: b, mountPath: /b}]}], sidecars: [{name: d, image: i, volumeMounts: [{name: c, mountPath: /c}]}]}`),
		Entry("a mount of a volume of the overlay", `{image: i, volumeMounts: [{name: scratch, mountPath: /a}], podTemplate: {spec: {volumes: [{name: scratch, ephemeral: {}}]}}}`),
		Entry("a sidecar with a port and probes of it", `{image: i, ports: [{name: http, containerPort: 8080}], sidecars: [{name: s, image: i, ports: [{name: metrics, containerPort: 9}], readinessProbe: {httpGet: {port: metrics}}, startupProbe: {tcpSocket: {port: 9}}}], service: {extraPorts: [{name: prom, port: 90, targetPort: metrics}, {name: other, port: 91, targetPort: 65535}]}}`),
		Entry("each strategy", `{image: i, strategy: {type: Recreate}}`),
		Entry("a rolling update of percentages", `{image: i, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: "150%", maxUnavailable: "100%"}}}`),
		Entry("a rolling update without a surge", `{image: i, strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}}`),
		Entry("tolerations of every form", `{image: i, tolerations: [{operator: Exists}, {key: a, value: b, effect: NoSchedule}, {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: -1}, {key: a}]}`),
		Entry("spreads of one key, hard and soft", `{image: i, topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, minDomains: 1}, {maxSkew: 5, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {a: b}}}]}`),
		Entry("ServiceAccounts", `{image: i, serviceAccount: {create: true, annotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::1:role/a"}, automount: false}}`),
		Entry("an existing ServiceAccount", `{image: i, serviceAccount: {name: shop.team-a}}`),
		Entry("an autoscaler with equal limits", `{image: i, autoscaling: {minReplicas: 100000, maxReplicas: 100000, cpuUtilization: 1, memoryUtilization: 10000}}`),
		Entry("an autoscaler by every type of metric", `{image: i, autoscaling: {maxReplicas: 1, behavior: {scaleDown: {stabilizationWindowSeconds: 0}}, metrics: [{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: "1"}}}, {type: ContainerResource, containerResource: {name: cpu, container: app, target: {type: Utilization, averageUtilization: 1}}},
			{type: Pods, pods: {metric: {name: a}, target: {type: AverageValue, averageValue: "1"}}}, {type: Object, object: {describedObject: {kind: Ingress, name: a}, metric: {name: a}, target: {type: Value, value: "1"}}}, {type: External, external: {metric: {name: a}, target: {type: Value, value: "1"}}}]}}`),
		Entry("a budget of nobody away", `{image: i, podDisruptionBudget: {maxUnavailable: 0}}`),
		Entry("a budget of all", `{image: i, podDisruptionBudget: {minAvailable: "100%", unhealthyPodEvictionPolicy: AlwaysAllow}}`),
		Entry("a Service of every field", `{image: i, ports: [{name: http, containerPort: 8080}], service: {type: LoadBalancer, annotations: {a.example/b: ""}, sessionAffinity: ClientIP, externalTrafficPolicy: Local, internalTrafficPolicy: Local, trafficDistribution: PreferSameNode}}`),
		Entry("a headless Service", `{image: i, ports: [{name: http, containerPort: 8080}], service: {mode: Headless, type: ClusterIP}}`),
		Entry("an Ingress of every field", `{image: i, ports: [{name: http, containerPort: 8080}], ingress: {className: nginx.internal, annotations: {nginx.ingress.kubernetes.io/proxy-body-size: 8m}, hosts: [{host: "*.shop.example", paths: [{path: /, port: http}, {path: /a//b, pathType: ImplementationSpecific}, {path: /..a/.b, pathType: Exact}]}, {host: xn--p1b6ci4b4b3a}], tls: [{secretName: s, hosts: ["*.shop.example", xn--p1b6ci4b4b3a]}, {hosts: ["*.example"]}, {}]}}`),
		Entry("a route of every field", `{image: i, ports: [{name: http, containerPort: 8080}], httpRoute: {annotations: {a: b}, parentRefs: [{name: g}, {name: g, namespace: infra}, {name: g, sectionName: http}, {name: g, sectionName: https}], hostnames: ["*.shop.example", shop.example], rules: [{port: http, matches: [{path: /a, pathType: Exact, method: GET, headers: [{name: X-Version, value: "1"}]}, {method: PATCH}]}, {port: http}]}}`),
		Entry("a network policy of every peer", `{image: i, ports: [{name: http, containerPort: 8080}], networkPolicy: {ingress: {from: [{app: a}, {app: a, namespace: b}, {namespaceSelector: {}}, {app: a, namespaceSelector: {matchLabels: {c: d}}}, {cidr: "fd00::/8"}], ports: [http]}, egress: {}}}`),
		Entry("a network policy that lets nobody in", `{image: i, networkPolicy: {ingress: {}}}`),
		Entry("conflict rules", `{image: i, conflictPolicy: {mode: Force, rules: [{kind: Deployment, path: .spec.replicas, mode: Yield}, {kind: Deployment, path: ".spec.template.spec.containers[name=\"app\"].image", mode: Report}]}}`),
		Entry("as many containers, mounts and variables as there may be", `{image: i, volumes: [`+listOf(64, "{name: v%d, emptyDir: {}}")+`], configFiles: [`+listOf(32, "{name: c%[1]d, mountPath: /c%[1]d, secret: s}")+`],
			volumeMounts: [`+listOf(64, "{name: v%[1]d, mountPath: /v%[1]d}")+`], initContainers: [`+containers("i", "")+`], sidecars: [`+containers("s", ", ports: [%s]")+`]}`),
		Entry("as many hosts, paths and tolerations as there may be", `{image: i, ports: [`+listOf(32, "{name: p%[1]d, containerPort: 1%[1]d}")+`], tolerations: [`+listOf(64, "{key: k%d, value: v}")+`],
			ingress: {hosts: [`+listOf(64, "{host: h%d.example, paths: ["+paths+"]}")+`], tls: [`+listOf(64, "{secretName: s%d, hosts: ["+tlsHosts+"]}")+`]}, httpRoute: {parentRefs: [`+listOf(32, "{name: g%d}")+`], hostnames: [`+listOf(16, "h%d.example")+`], rules: [`+listOf(16, "{port: p%d}")+`]}}`),
		Entry("as many labels and annotations of the longest names as there may be", `{image: i, commonLabels: {`+longest+`}, podLabels: {`+longest+`}, nodeSelector: {`+longest+`}, commonAnnotations: {`+longest+`}, podAnnotations: {`+longest+`}}`),
	)

	It("fills in one replica, and nothing within lists", func(ctx SpecContext) {
		u := unstructuredApp("shop", `{image: i, ports: [{name: a, containerPort: 1}]}`)
		Expect(admin.Create(ctx, u, client.DryRunAll)).To(Succeed())
		spec, err := yaml.Marshal(u.Object["spec"])
		Expect(err).NotTo(HaveOccurred())
		Expect(spec).To(MatchYAML(`{image: i, replicas: 1, ports: [{name: a, containerPort: 1}]}`))
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

// expectRefused wants a refusal that holds all the words.
func expectRefused(ctx SpecContext, spec string, words ...string) {
	err := dryRun(ctx, "shop", spec)
	Expect(err).To(HaveOccurred())
	for _, word := range words {
		Expect(err.Error()).To(ContainSubstring(word))
	}
}

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

var (
	// paths are as many paths as a host may have.
	paths = listOf(64, "{path: /a%d, port: p31}")
	// tlsHosts are as many hosts as a certificate may have.
	tlsHosts = listOf(64, "h%d.example")
	// longest are 64 keys and values of labels, as long as they may be.
	longest = listOf(64, strings.Repeat("d", 61)+".example/"+strings.Repeat("k", 61)+"%02[1]d: "+strings.Repeat("v", 63))
)

// containers are as many containers as a list may have, each with 64 mounts, 256 variables, and more in a format that takes a port.
func containers(prefix, more string) string {
	mounts, env := listOf(64, "{name: v%[1]d, mountPath: /v%[1]d}"), listOf(256, "{name: V%d, value: v}")
	items := make([]string, 16)
	for i := range items {
		port := ""
		if more != "" {
			port = fmt.Sprintf(more, fmt.Sprintf("{name: p%[1]d, containerPort: 1%[1]d}", i))
		}
		items[i] = fmt.Sprintf("{name: %s%d, image: i, volumeMounts: [%s], env: [%s]%s}", prefix, i, mounts, env, port)
	}
	return strings.Join(items, ", ")
}

// listOf is a YAML list's or map's inside: format with the numbers from 0.
func listOf(n int, format string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(items, ", ")
}

// refused are specs that only the operator, or the API server when a child is applied, finds to be wrong.
var refused = []struct{ name, spec, words string }{
	{"an affinity with a slip", `affinity: {nodeAffinty: {}}`, `unknown field "spec.affinity.nodeAffinty"`},
	{"an affinity of another type", `affinity: {nodeAffinity: [a]}`, `spec.affinity.nodeAffinity: must be an object, is array`},
	{"an affinity of an unknown operator", `affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Near, values: [b]}]}]}}}`, `matchExpressions[0].operator: `},
	{"an overlay with a slip", `podTemplate: {spec: {containrs: []}}`, `unknown field "spec.podTemplate.spec.containrs"`},
	{"an overlay of another type", `podTemplate: {spec: {hostNetwork: "yes"}}`, `spec.podTemplate.spec.hostNetwork: must be true or false, is string`},
	{"an overlay of more than a template", `podTemplate: {replicas: 2}`, `unknown field "spec.podTemplate.replicas"`},
	{"an overlay with an unknown directive", `podTemplate: {spec: {$patch: explode}}`, `spec.podTemplate`},
	{"an overlay with a container without a name", `podTemplate: {spec: {containers: [{image: i}]}}`, `spec.podTemplate.spec.containers`},
	{"an overlay of the labels that select", `podTemplate: {metadata: {labels: {app.kubernetes.io/name: other}}}`, `app.kubernetes.io/name is set by the operator`},
	{"an overlay with an annotation of the operator", `podTemplate: {metadata: {annotations: {quell.dev/x: z}}}`, `quell.dev/x is set by the operator`},
	{"an overlay without the application", `podTemplate: {spec: {containers: [{name: app, $patch: delete}, {name: other, image: i}]}}`, `removes container "app"`},
	{"an overlay with a second source", `volumes: [{name: a, emptyDir: {}}], podTemplate: {spec: {volumes: [{name: a, hostPath: {path: /x}}]}}`, `would both give volume "a" a source (emptyDir, hostPath): rename one of them`},
	{"an overlay that a Deployment does not allow", `podTemplate: {spec: {restartPolicy: Never}}`, `spec.template.spec.restartPolicy: `},
	{"an overlay with a sidecar's name", `sidecars: [{name: s, image: i}], podTemplate: {spec: {containers: [{name: s, image: i}]}}`, `container "s"`},
	{"two mounts at one place, written in two ways", `volumes: [{name: a, emptyDir: {}}], volumeMounts: [{name: a, mountPath: /x}], configFiles: [{name: c, mountPath: /x/, secret: s}]`, `give one of them another mountPath`},
	{"a mount outside of its volume", `volumes: [{name: a, emptyDir: {}}], volumeMounts: [{name: a, mountPath: /x, subPath: ../y}]`, `volumeMounts.subPath: `},
	{"a mount of a volume that the overlay forgot", `volumeMounts: [{name: b, mountPath: /x}], podTemplate: {spec: {volumes: [{name: a, emptyDir: {}}]}}`, `volumeMounts[0].name: Not found: "b"`},
	{"a variable with an equals sign", `env: [{name: "A=B", value: x}]`, `containers[0].env[0].name: `},
	{"a value of a label with a space", `commonLabels: {team: "a b"}`, `metadata.labels: `},
	{"a value of a Pod label with a space", `podLabels: {team: "a b"}`, `spec.template.labels: `},
	{"an address of the hosts file that is none", `hostAliases: [{ip: nowhere, hostnames: [a]}]`, `hostAliases[0].ip: `},
	{"a name server that is none", `dnsConfig: {nameservers: [dns.example]}`, `dnsConfig.nameservers[0]: `},
	{"a probe before its time", `livenessProbe: {exec: {command: [a]}, periodSeconds: -1}`, `livenessProbe.periodSeconds: `},
	{"a hook longer than the grace period", `lifecycle: {preStop: {sleep: {seconds: 31}}}`, `lifecycle.preStop.sleep`},
	{"a seccomp profile without its file", `securityContext: {seccompProfile: {type: Localhost}}`, `seccompProfile.localhostProfile: `},
	{"a request that is no number", `resources: {requests: {gpu: 1}}`, `resources.requests[gpu]: `},
	{"a toleration by an unknown operator", `tolerations: [{key: a, operator: Near, value: b}]`, `tolerations[0].operator: `},
	{"a spread of an unknown policy", `topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Maybe}]`, `nodeTaintsPolicy: `},
	{"a file outside of its volume", `volumes: [{name: a, secret: {secretName: s, items: [{key: k, path: /etc/x}]}}]`, `volumes[0].secret.items[0].path: `},
	{"a directory of the node that climbs", `volumes: [{name: a, hostPath: {path: /x/../y}}]`, `hostPath.path: `},
	{"a port of an extra port's number", `ports: [{name: http, containerPort: 8080}], service: {extraPorts: [{name: also, port: 8080}]}`, `would both be port 8080/TCP of the Service`},
	{"a certificate for a pattern of nothing", `ports: [{name: http, containerPort: 8080}], ingress: {hosts: [{host: a.example}], tls: [{hosts: ["*. b"]}]}`, `tls[0].hosts`},
	{"an Ingress path with an escaped slash", `ports: [{name: http, containerPort: 8080}], ingress: {hosts: [{host: a.example, paths: [{path: /a%2fb}]}]}`, `paths[0].path: `},
	{"an Ingress to a port of UDP", `ports: [{name: dns, containerPort: 53, protocol: UDP}], ingress: {hosts: [{host: a.example}]}`, `TCP`},
	{"a metric without a target", `autoscaling: {maxReplicas: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization}}}]}`, `metrics[0].resource.target`},
	{"a window of more than an hour", `autoscaling: {maxReplicas: 3, cpuUtilization: 50, behavior: {scaleDown: {stabilizationWindowSeconds: 3601}}}`, `stabilizationWindowSeconds: `},
	{"a peer by an unknown operator", `networkPolicy: {ingress: {from: [{namespaceSelector: {matchExpressions: [{key: a, operator: Near}]}}]}}`, `namespaceSelector.matchExpressions[0].operator: `},
	{"a conflict rule of no path", `conflictPolicy: {rules: [{kind: Deployment, path: ".spec.containers[", mode: Yield}]}`, `spec.conflictPolicy.rules`},
}

var _ = Describe("An App that the CRD accepts and that is wrong all the same", func() {
	It("says what to change", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		apps := make([]*quellv1alpha1.App, len(refused))
		for i, name := range named("shop", len(refused)) {
			u := unstructuredApp(name, `{image: i, `+refused[i].spec+`}`)
			u.SetNamespace(ns)
			Expect(admin.Create(ctx, u, client.FieldValidation("Strict"))).To(Succeed(), refused[i].name)
			apps[i] = newApp(ns, name)
		}
		for i, a := range apps {
			By(refused[i].name)
			Expect(eventuallyCondition(ctx, a, quellv1alpha1.ConditionStalled, "Rejected")).To(ContainSubstring(refused[i].words))
		}
		expectCalm(ctx, ns, calm)
	})
})
