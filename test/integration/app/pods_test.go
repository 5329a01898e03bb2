package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	quellv1alpha1 "github.com/hduolab/quell/api/quell/v1alpha1"
	"github.com/hduolab/quell/controller/app"
	"github.com/hduolab/quell/test/localcluster"
)

const (
	templatePath  = ".spec.template"
	podPath       = templatePath + ".spec"
	containerPath = podPath + ".containers[0]"
)

// podStep is a spec, in YAML, and what is seen of it on the Deployment.
type podStep struct{ spec, want string }

// podBase is the spec, in YAML, that each step adds to. Its Apps have no Pods, so that rounds are short, and no defaults, so that what
// is seen is what is asked.
const podBase = `{image: "registry.example.com/team/shop:1", replicas: 0, defaults: {security: None, topologySpread: None}}`

// workloadFields are, by a name, the jsonpath of what is looked at, and the steps. Where a field has members of which only one can
// be set, the steps switch from each to another.
var workloadFields = map[string]struct {
	path  string
	steps []podStep
}{
	"image":            {containerPath + ".image", []podStep{{`{image: "i:2"}`, `i:2`}, {`{image: "i:3"}`, `i:3`}, {`{}`, `registry.example.com/team/shop:1`}}},
	"imagePullPolicy":  {containerPath + ".imagePullPolicy", []podStep{{`{imagePullPolicy: Never}`, `Never`}, {`{imagePullPolicy: Always}`, `Always`}, {`{}`, `IfNotPresent`}}},
	"imagePullSecrets": {podPath + ".imagePullSecrets", []podStep{{`{imagePullSecrets: [{name: a}, {name: b}]}`, `[{name: a}, {name: b}]`}, {`{imagePullSecrets: [{name: b}]}`, `[{name: b}]`}, {`{}`, `null`}}},
	"command":          {containerPath + ".command", []podStep{{`{command: [a, b]}`, `[a, b]`}, {`{command: [b, a]}`, `[b, a]`}, {`{}`, `null`}}},
	"workingDir":       {containerPath + ".workingDir", []podStep{{`{workingDir: /a}`, `/a`}, {`{workingDir: /b}`, `/b`}, {`{}`, `null`}}},
	"args":             {containerPath + ".args", []podStep{{`{args: [a]}`, `[a]`}, {`{args: [a, a]}`, `[a, a]`}, {`{}`, `null`}}},
	"env": {containerPath + ".env", []podStep{
		{`{env: [{name: A, value: x}, {name: B, value: $(A)}]}`, `[{name: A, value: x}, {name: B, value: $(A)}]`},
		{`{env: [{name: B, value: x}, {name: A, value: $(B)}]}`, `[{name: B, value: x}, {name: A, value: $(B)}]`},
		{`{env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}`, `[{name: A, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}]`},
		{`{}`, `null`},
	}},
	"env from elsewhere": {containerPath + ".env", []podStep{
		{`{env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}`, `[{name: A, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}]`},
		{`{env: [{name: A, value: x}]}`, `[{name: A, value: x}]`},
		{`{env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]}`, `[{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]`},
		{`{env: [{name: A}]}`, `[{name: A}]`},
	}},
	"env from objects": {containerPath + ".env", []podStep{
		{`{env: [{name: A, valueFrom: {configMapKeyRef: {name: c, key: k, optional: true}}}]}`, `[{name: A, valueFrom: {configMapKeyRef: {name: c, key: k, optional: true}}}]`},
		{`{env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}]}`, `[{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: "0"}}}]`},
		{`{env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]}`, `[{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]`},
		{`{env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}`, `[{name: A, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}]`},
	}},
	"envFrom":  {containerPath + ".envFrom", []podStep{{`{envFrom: [{configMapRef: {name: c}}]}`, `[{configMapRef: {name: c}}]`}, {`{envFrom: [{prefix: P_, secretRef: {name: s}}]}`, `[{prefix: P_, secretRef: {name: s}}]`}, {`{}`, `null`}}},
	"replicas": {".spec.replicas", []podStep{{`{replicas: 1}`, `1`}, {`{replicas: 2}`, `2`}, {`{}`, `0`}}},
	"ports": {containerPath + ".ports", []podStep{
		{`{ports: [{name: http, containerPort: 80}]}`, `[{name: http, containerPort: 80, protocol: TCP}]`},
		{`{ports: [{name: http, containerPort: 80, protocol: UDP}, {name: more, containerPort: 81}]}`, `[{name: http, containerPort: 80, protocol: UDP}, {name: more, containerPort: 81, protocol: TCP}]`},
		{`{ports: [{name: more, containerPort: 82}]}`, `[{name: more, containerPort: 82, protocol: TCP}]`},
		{`{}`, `null`},
	}},
	"resources":            {containerPath + ".resources", []podStep{{`{resources: {requests: {cpu: "0.1", memory: 1Gi}}}`, `{requests: {cpu: 100m, memory: 1Gi}}`}, {`{resources: {requests: {cpu: "1"}, limits: {cpu: "2"}}}`, `{requests: {cpu: "1"}, limits: {cpu: "2"}}`}, {`{}`, `{}`}}},
	"livenessProbe":        {containerPath + ".livenessProbe", probeSteps("livenessProbe")},
	"livenessProbe, more":  {containerPath + ".livenessProbe", moreProbeSteps("livenessProbe")},
	"readinessProbe":       {containerPath + ".readinessProbe", probeSteps("readinessProbe")},
	"readinessProbe, more": {containerPath + ".readinessProbe", moreProbeSteps("readinessProbe")},
	"startupProbe":         {containerPath + ".startupProbe", probeSteps("startupProbe")},
	"startupProbe, more":   {containerPath + ".startupProbe", moreProbeSteps("startupProbe")},
	"lifecycle": {containerPath + ".lifecycle", []podStep{
		{`{lifecycle: {preStop: {httpGet: {port: 80}}}}`, `{preStop: {httpGet: {port: 80, path: /, scheme: HTTP}}}`},
		{`{lifecycle: {preStop: {exec: {command: [a]}}}}`, `{preStop: {exec: {command: [a]}}}`},
		{`{lifecycle: {preStop: {sleep: {seconds: 1}}}}`, `{preStop: {sleep: {seconds: 1}}}`},
		{`{}`, `null`},
	}},
	"lifecycle, the start": {containerPath + ".lifecycle", []podStep{
		{`{lifecycle: {postStart: {exec: {command: [a]}}}}`, `{postStart: {exec: {command: [a]}}}`},
		{`{lifecycle: {postStart: {httpGet: {port: 80, path: /a, scheme: HTTPS}}, preStop: {sleep: {seconds: 1}}}}`, `{postStart: {httpGet: {port: 80, path: /a, scheme: HTTPS}}, preStop: {sleep: {seconds: 1}}}`},
		{`{lifecycle: {postStart: {sleep: {seconds: 1}}, preStop: {httpGet: {port: 80}}}}`, `{postStart: {sleep: {seconds: 1}}, preStop: {httpGet: {port: 80, path: /, scheme: HTTP}}}`},
		{`{}`, `null`},
	}},
	"securityContext": {containerPath + ".securityContext", []podStep{
		{`{securityContext: {runAsUser: 1000, capabilities: {drop: [ALL]}, seccompProfile: {type: Localhost, localhostProfile: a}}}`, `{runAsUser: 1000, capabilities: {drop: [ALL]}, seccompProfile: {type: Localhost, localhostProfile: a}}`},
		{`{securityContext: {readOnlyRootFilesystem: false, capabilities: {add: [SYS_TIME]}, seccompProfile: {type: RuntimeDefault}}}`, `{readOnlyRootFilesystem: false, capabilities: {add: [SYS_TIME]}, seccompProfile: {type: RuntimeDefault}}`},
		{`{}`, `null`},
	}},
	"podSecurityContext": {podPath + ".securityContext", []podStep{
		{`{podSecurityContext: {fsGroup: 1, supplementalGroups: [2, 1], sysctls: [{name: a, value: b}]}}`, `{fsGroup: 1, supplementalGroups: [2, 1], sysctls: [{name: a, value: b}]}`},
		{`{podSecurityContext: {runAsNonRoot: true, fsGroupChangePolicy: OnRootMismatch}}`, `{runAsNonRoot: true, fsGroupChangePolicy: OnRootMismatch}`},
		{`{}`, `{}`},
	}},
	"volumes": {podPath + ".volumes", []podStep{
		volume(`configMap: {name: c}`, `configMap: {name: c, defaultMode: 420}`),
		volume(`secret: {secretName: s}`, `secret: {secretName: s, defaultMode: 420}`),
		volume(`emptyDir: {}`, `emptyDir: {}`),
		volume(`configMap: {name: c, items: [{key: k, path: p}], defaultMode: 256}`, `configMap: {name: c, items: [{key: k, path: p}], defaultMode: 256}`),
	}},
	"volumes of the cluster": {podPath + ".volumes", []podStep{
		volume(`projected: {sources: [{serviceAccountToken: {path: t}}, {configMap: {name: c}}]}`, `projected: {defaultMode: 420, sources: [{serviceAccountToken: {path: t, expirationSeconds: 3600}}, {configMap: {name: c}}]}`),
		volume(`persistentVolumeClaim: {claimName: p}`, `persistentVolumeClaim: {claimName: p}`),
		volume(`hostPath: {path: /h}`, `hostPath: {path: /h, type: ""}`),
		volume(`secret: {secretName: s, optional: true}`, `secret: {secretName: s, optional: true, defaultMode: 420}`),
	}},
	"volumes of drivers": {podPath + ".volumes", []podStep{
		volume(`csi: {driver: d}`, `csi: {driver: d}`),
		volume(`nfs: {server: s, path: /p}`, `nfs: {server: s, path: /p}`),
		volume(`emptyDir: {medium: Memory, sizeLimit: 1Gi}`, `emptyDir: {medium: Memory, sizeLimit: 1Gi}`),
		{`{}`, `null`},
	}},
	"volumeMounts": {containerPath + ".volumeMounts", []podStep{
		{`{volumes: [{name: v, emptyDir: {}}], volumeMounts: [{name: v, mountPath: /a}]}`, `[{name: v, mountPath: /a}]`},
		{`{volumes: [{name: v, emptyDir: {}}], volumeMounts: [{name: v, mountPath: /a, subPath: s, readOnly: true}, {name: v, mountPath: /b}]}`, `[{name: v, mountPath: /a, subPath: s, readOnly: true}, {name: v, mountPath: /b}]`},
		{`{volumes: [{name: v, emptyDir: {}}], volumeMounts: [{name: v, mountPath: /b, subPathExpr: s}]}`, `[{name: v, mountPath: /b, subPathExpr: s}]`},
		{`{}`, `null`},
	}},
	"configFiles": {podPath + ".volumes", []podStep{
		{`{configFiles: [{name: f, mountPath: /f, configMap: c}]}`, `[{name: f, configMap: {name: c, defaultMode: 420}}]`},
		{`{configFiles: [{name: f, mountPath: /f, secret: s}]}`, `[{name: f, secret: {secretName: s, defaultMode: 420}}]`},
		{`{}`, `null`},
	}},
	"configFiles, mounted": {containerPath + ".volumeMounts", []podStep{
		{`{configFiles: [{name: f, mountPath: /f, configMap: c}]}`, `[{name: f, mountPath: /f, readOnly: true}]`},
		{`{configFiles: [{name: f, mountPath: /g, subPath: k, configMap: c}]}`, `[{name: f, mountPath: /g, subPath: k, readOnly: true}]`},
		{`{}`, `null`},
	}},
	"initContainers": {podPath + ".initContainers[*]['name', 'image', 'restartPolicy']", []podStep{
		{`{initContainers: [{name: a, image: i}, {name: b, image: j}]}`, `[a, b, i, j]`},
		{`{initContainers: [{name: b, image: j}, {name: a, image: k}]}`, `[b, a, j, k]`},
		{`{initContainers: [{name: a, image: k}], sidecars: [{name: s, image: p}]}`, `[s, a, p, k, Always]`},
		{`{}`, `null`},
	}},
	"initContainers, in detail": {podPath + ".initContainers[*]['command', 'args', 'workingDir', 'env', 'envFrom', 'volumeMounts', 'securityContext', 'imagePullPolicy']", []podStep{
		{`{initContainers: [{name: a, image: "i:1", command: [c], args: [g], workingDir: /w, env: [{name: E, value: x}], envFrom: [{secretRef: {name: s}}], volumeMounts: [{name: v, mountPath: /v}], securityContext: {runAsUser: 1}, imagePullPolicy: Always}], volumes: [{name: v, emptyDir: {}}]}`,
			`[[c], [g], /w, [{name: E, value: x}], [{secretRef: {name: s}}], [{name: v, mountPath: /v}], {runAsUser: 1}, Always]`},
		{`{initContainers: [{name: a, image: "i:1"}]}`, `IfNotPresent`},
		{`{}`, `null`},
	}},
	"sidecars": {podPath + ".initContainers[0]['ports', 'readinessProbe', 'startupProbe', 'resources', 'restartPolicy']", []podStep{
		{`{sidecars: [{name: s, image: "i:1", ports: [{name: p, containerPort: 1}], readinessProbe: {exec: {command: [a]}}, startupProbe: {httpGet: {port: p}}, resources: {limits: {cpu: "1"}}}]}`,
			`[[{name: p, containerPort: 1, protocol: TCP}], ` + probe(`exec: {command: [a]}`) + `, ` + probe(`httpGet: {port: p, path: /, scheme: HTTP}`) + `, {limits: {cpu: "1"}}, Always]`},
		{`{sidecars: [{name: s, image: "i:1", startupProbe: {exec: {command: [a]}}}]}`, `[` + probe(`exec: {command: [a]}`) + `, {}, Always]`},
		{`{}`, `null`},
	}},
	"strategy": {".spec.strategy", []podStep{
		{`{strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}`, `{type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 25%}}`},
		{`{strategy: {type: Recreate}}`, `{type: Recreate}`},
		{`{strategy: {type: RollingUpdate}}`, `{type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}`},
		{`{}`, `{type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}`},
	}},
	"strategy Recreate": {".spec.strategy", []podStep{
		{`{strategy: {type: Recreate}}`, `{type: Recreate}`},
		{`{}`, `{type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}`},
		{`{strategy: {type: Recreate}}`, `{type: Recreate}`},
	}},
	"minReadySeconds":               {".spec.minReadySeconds", []podStep{{`{minReadySeconds: 5}`, `5`}, {`{minReadySeconds: 0}`, `null`}, {`{minReadySeconds: 1}`, `1`}, {`{}`, `null`}}},
	"progressDeadlineSeconds":       {".spec.progressDeadlineSeconds", []podStep{{`{progressDeadlineSeconds: 100}`, `100`}, {`{progressDeadlineSeconds: 200}`, `200`}, {`{}`, `600`}}},
	"revisionHistoryLimit":          {".spec.revisionHistoryLimit", []podStep{{`{revisionHistoryLimit: 0}`, `0`}, {`{revisionHistoryLimit: 3}`, `3`}, {`{}`, `10`}}},
	"terminationGracePeriodSeconds": {podPath + ".terminationGracePeriodSeconds", []podStep{{`{terminationGracePeriodSeconds: 0}`, `0`}, {`{terminationGracePeriodSeconds: 5}`, `5`}, {`{}`, `30`}}},
	"affinity": {podPath + ".affinity", []podStep{
		{`{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}}`, `{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}`},
		{`{affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: z, labelSelector: {}}}]}}}`, `{podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: z, labelSelector: {}}}]}}`},
		{`{}`, `null`},
	}},
	"nodeSelector": {podPath + ".nodeSelector", []podStep{{`{nodeSelector: {a: b, c: d}}`, `{a: b, c: d}`}, {`{nodeSelector: {a: "1"}}`, `{a: "1"}`}, {`{}`, `null`}}},
	"tolerations":  {podPath + ".tolerations", []podStep{{`{tolerations: [{key: a, operator: Exists}]}`, `[{key: a, operator: Exists}]`}, {`{tolerations: [{key: a, value: b, effect: NoExecute, tolerationSeconds: 0}, {key: a}]}`, `[{key: a, value: b, effect: NoExecute, tolerationSeconds: 0}, {key: a}]`}, {`{}`, `null`}}},
	"topologySpreadConstraints": {podPath + ".topologySpreadConstraints[*]['maxSkew', 'labelSelector', 'nodeTaintsPolicy']", []podStep{
		{`{topologySpreadConstraints: [{maxSkew: 2, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}`, `[2, {matchLabels: {app.kubernetes.io/name: APP, app.kubernetes.io/instance: APP}}]`},
		{`{topologySpreadConstraints: [{maxSkew: 3, topologyKey: a, whenUnsatisfiable: DoNotSchedule, labelSelector: {}, nodeTaintsPolicy: Honor}]}`, `[3, {}, Honor]`},
		{`{}`, `null`},
	}},
	"priorityClassName": {podPath + ".priorityClassName", []podStep{{`{priorityClassName: a}`, `a`}, {`{priorityClassName: b}`, `b`}, {`{}`, `null`}}},
	"runtimeClassName":  {podPath + ".runtimeClassName", []podStep{{`{runtimeClassName: a}`, `a`}, {`{runtimeClassName: b}`, `b`}, {`{}`, `null`}}},
	"hostAliases":       {podPath + ".hostAliases", []podStep{{`{hostAliases: [{ip: 10.0.0.1, hostnames: [a, b]}]}`, `[{ip: 10.0.0.1, hostnames: [a, b]}]`}, {`{hostAliases: [{ip: 10.0.0.2, hostnames: [a]}, {ip: 10.0.0.1, hostnames: [b]}]}`, `[{ip: 10.0.0.2, hostnames: [a]}, {ip: 10.0.0.1, hostnames: [b]}]`}, {`{}`, `null`}}},
	"dnsPolicy":         {podPath + ".dnsPolicy", []podStep{{`{dnsPolicy: Default}`, `Default`}, {`{dnsPolicy: None, dnsConfig: {nameservers: [10.0.0.1]}}`, `None`}, {`{}`, `ClusterFirst`}}},
	"dnsConfig":         {podPath + ".dnsConfig", []podStep{{`{dnsConfig: {nameservers: [10.0.0.1], options: [{name: a, value: b}]}}`, `{nameservers: [10.0.0.1], options: [{name: a, value: b}]}`}, {`{dnsConfig: {searches: [a]}}`, `{searches: [a]}`}, {`{}`, `null`}}},
	"podLabels":         {templatePath + ".metadata.labels.tier", []podStep{{`{podLabels: {tier: a}}`, `a`}, {`{podLabels: {tier: b}, commonLabels: {tier: c}}`, `b`}, {`{}`, `null`}}},
	"podAnnotations":    {templatePath + ".metadata.annotations", []podStep{{`{podAnnotations: {a: b}}`, `{a: b}`}, {`{podAnnotations: {a: ""}, commonAnnotations: {c: d}}`, `{a: "", c: d}`}, {`{}`, `null`}}},
	"commonLabels":      {templatePath + ".metadata.labels.team", []podStep{{`{commonLabels: {team: a}}`, `a`}, {`{commonLabels: {team: b}}`, `b`}, {`{}`, `null`}}},
	"commonAnnotations": {".metadata.annotations.note", []podStep{{`{commonAnnotations: {note: a}}`, `a`}, {`{commonAnnotations: {note: b}}`, `b`}, {`{}`, `null`}}},
	"podTemplate": {podPath + "['shareProcessNamespace', 'enableServiceLinks']", []podStep{
		{`{podTemplate: {spec: {shareProcessNamespace: true, enableServiceLinks: false}}}`, `[true, false]`},
		{`{podTemplate: {spec: {shareProcessNamespace: false}}}`, `false`},
		{`{}`, `null`},
	}},
	"podTemplate with a volume": {podPath + ".volumes", []podStep{
		{`{podTemplate: {spec: {volumes: [{name: v, downwardAPI: {items: [{path: p, fieldRef: {fieldPath: metadata.name}}]}}]}}}`, `[{name: v, downwardAPI: {defaultMode: 420, items: [{path: p, fieldRef: {apiVersion: v1, fieldPath: metadata.name}}]}}]`},
		{`{podTemplate: {spec: {volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]}}}`, `[{name: v, ephemeral: {volumeClaimTemplate: {metadata: {}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, volumeMode: Filesystem}}}}]`},
		{`{volumes: [{name: v, emptyDir: {}}]}`, `[{name: v, emptyDir: {}}]`},
		{`{}`, `null`},
	}},
	"podTemplate with a container": {podPath + ".containers[*]['name', 'tty']", []podStep{
		{`{podTemplate: {spec: {containers: [{name: more, image: i, tty: true}]}}}`, `[more, app, true]`},
		{`{podTemplate: {spec: {containers: [{name: app, tty: true}]}}}`, `[app, true]`},
		{`{}`, `app`},
	}},
	"defaults": {containerPath + ".securityContext", []podStep{
		{`{defaults: {security: Restricted}}`, `{allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}`},
		{`{}`, `null`},
		{`{defaults: null}`, `{allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}`},
		{`{defaults: null, securityContext: {allowPrivilegeEscalation: true}}`, `{allowPrivilegeEscalation: true, capabilities: {drop: [ALL]}}`},
	}},
	"defaults of the Pod": {podPath + ".securityContext", []podStep{
		{`{defaults: {security: Restricted}}`, `{runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}`},
		{`{defaults: {security: Restricted}, podSecurityContext: {seccompProfile: {type: Localhost, localhostProfile: a}}}`, `{runAsNonRoot: true, seccompProfile: {type: Localhost, localhostProfile: a}}`},
		{`{}`, `{}`},
	}},
	"defaults of the spread": {podPath + ".topologySpreadConstraints[*]['topologyKey', 'whenUnsatisfiable', 'maxSkew']", []podStep{
		{`{defaults: {topologySpread: Spread}}`, `[topology.kubernetes.io/zone, kubernetes.io/hostname, ScheduleAnyway, ScheduleAnyway, 1, 1]`},
		{`{defaults: {topologySpread: Spread}, topologySpreadConstraints: [{maxSkew: 2, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}`, `[a, DoNotSchedule, 2]`},
		{`{}`, `null`},
	}},
	"serviceAccount": {podPath + "['serviceAccountName', 'automountServiceAccountToken']", []podStep{
		{`{serviceAccount: {name: a}}`, `a`}, {`{serviceAccount: {name: b, automount: false}}`, `[b, false]`}, {`{serviceAccount: {create: true}}`, `APP`}, {`{}`, `null`},
	}},
}

// probe is a probe as it is seen.
func probe(handler string) string {
	return `{` + handler + `, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3}`
}

// probeSteps take a probe from one kind of check to another.
func probeSteps(field string) []podStep {
	return []podStep{
		{`{` + field + `: {httpGet: {port: 80}}}`, probe(`httpGet: {port: 80, path: /, scheme: HTTP}`)},
		{`{` + field + `: {exec: {command: [a]}}}`, probe(`exec: {command: [a]}`)},
		{`{` + field + `: {tcpSocket: {port: 80}}}`, probe(`tcpSocket: {port: 80}`)},
		{`{}`, `null`},
	}
}

// moreProbeSteps take it through the checks that have values of their own.
func moreProbeSteps(field string) []podStep {
	return []podStep{
		{`{` + field + `: {grpc: {port: 80}}}`, probe(`grpc: {port: 80, service: ""}`)},
		{`{` + field + `: {httpGet: {port: 80, path: /a, scheme: HTTPS, httpHeaders: [{name: h, value: v}]}}}`, probe(`httpGet: {port: 80, path: /a, scheme: HTTPS, httpHeaders: [{name: h, value: v}]}`)},
		{`{` + field + `: {grpc: {port: 81, service: s}}}`, probe(`grpc: {port: 81, service: s}`)},
		{`{` + field + `: {exec: {command: [a]}, periodSeconds: 3}}`, `{exec: {command: [a]}, timeoutSeconds: 1, periodSeconds: 3, successThreshold: 1, failureThreshold: 3}`},
	}
}

func volume(asked, seen string) podStep {
	return podStep{`{volumes: [{name: v, ` + asked + `}]}`, `[{name: v, ` + seen + `}]`}
}

// elsewhere are the fields of an App that shape other children than its Deployment.
var elsewhere = []string{"autoscaling", "podDisruptionBudget", "service", "ingress", "httpRoute", "networkPolicy", "conflictPolicy", "suspend"}

var _ = Describe("The Pods of an App", func() {
	It("have a row in the table for each of the spec's fields", func() {
		given := map[string]bool{}
		for _, field := range workloadFields {
			for _, s := range field.steps {
				var spec map[string]any
				Expect(yaml.Unmarshal([]byte(s.spec), &spec)).To(Succeed())
				for name := range spec {
					given[name] = true
				}
			}
		}
		for f := range reflect.TypeFor[quellv1alpha1.AppSpec]().Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			Expect(given[name]).NotTo(Equal(slices.Contains(elsewhere, name)), name)
		}
	})

	It("follow each field when it is set, changed and removed, and then cost no write, not even of a new process", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		rows, rounds := map[string]string{}, 0
		for i, row := range slices.Sorted(maps.Keys(workloadFields)) {
			a := newApp(ns, rowName(row))
			a.Spec = specOf(`{}`)
			if i%2 == 0 { // half of them ask for it at once
				a.Spec = specOf(workloadFields[row].steps[0].spec)
			}
			rows[create(ctx, a).Name], rounds = row, max(rounds, len(workloadFields[row].steps))
		}
		for round := range rounds {
			for name, row := range rows {
				if steps := workloadFields[row].steps; round < len(steps) {
					change(ctx, newApp(ns, name), func(a *quellv1alpha1.App) { a.Spec = specOf(steps[round].spec) })
				}
			}
			Eventually(ctx, func(g Gomega) { expectSeen(ctx, g, ns, rows, round) }).WithPolling(5 * pollEach).Should(Succeed())
			awaitIdle(ctx)
			since, done := mark(), reconciles()
			manager.restart()
			Eventually(ctx, reconciles).Should(BeNumerically(">=", done+len(rows)))
			awaitIdle(ctx)
			Expect(manager.writes(since, ns)).To(BeEmpty())
		}
	})

	It("are not replaced when the first release's Deployments come under this one", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := foundationApp(ns)
		var before *appsv1.Deployment
		var first map[string]types.UID
		withoutOperator(func() {
			create(ctx, a)
			applyFoundation(ctx, a)
			Eventually(ctx, func(g Gomega) { before = deployment(ctx, g, a); g.Expect(isRolledOut(before)).To(BeTrue()) }).Should(Succeed())
			first = replicaSets(ctx, ns)
			Expect(first).To(HaveLen(1))
		})

		converge(ctx, a)
		after := deployment(ctx, Default, a)
		Expect(after.Spec.Template).To(Equal(before.Spec.Template))
		Expect(after.Annotations).NotTo(HaveKey(app.AnnotationRendering))
		Expect(a.Status.Rendering).To(BeEquivalentTo(1))
		expectNoWrite(ctx, ns, a)
		Expect(replicaSets(ctx, ns)).To(Equal(first))

		By("keeping that rendering when they change")
		change(ctx, a, func(a *quellv1alpha1.App) { a.Spec.Image, a.Spec.ReadinessProbe = image+"2", nil })
		converge(ctx, a)
		d := deployment(ctx, Default, a)
		Expect(d.Spec.Template.Spec.Containers[0].SecurityContext).To(BeNil())
		Expect(d.Spec.Template.Spec.TopologySpreadConstraints).To(BeEmpty())

		By("filling the defaults in when asked")
		change(ctx, a, func(a *quellv1alpha1.App) {
			a.Spec.Defaults = &quellv1alpha1.AppDefaults{Security: quellv1alpha1.SecurityRestricted}
		})
		converge(ctx, a)
		d = deployment(ctx, Default, a)
		Expect(d.Spec.Template.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation).To(HaveValue(BeFalse()))
		Expect(d.Spec.Template.Spec.TopologySpreadConstraints).To(BeEmpty())
	})

	It("get strategy Recreate from the first release's Deployment, whose rollingUpdate nobody owns", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := foundationApp(ns)
		a.Spec.Strategy = &appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		withoutOperator(func() {
			create(ctx, a)
			applyFoundation(ctx, a)
		})
		converge(ctx, a)
		// First the operator becomes the owner of what is there, only then can it be replaced.
		Eventually(ctx, func() appsv1.DeploymentStrategy { return deployment(ctx, Default, a).Spec.Strategy }).Should(Equal(*a.Spec.Strategy))
		converge(ctx, a)
		expectNoWrite(ctx, ns, a)
		Expect(replicaSets(ctx, ns)).To(HaveLen(1))
	})

	It("are not replaced when somebody removes the note of their rendering", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		a := createReady(ctx, newApp(ns, "shop"))
		Expect(a.Status.Rendering).To(BeEquivalentTo(2))
		first := replicaSets(ctx, ns)
		kubectl("--namespace", ns, "annotate", "deployment", "shop", app.AnnotationRendering+"-")
		Eventually(ctx, func(g Gomega) {
			g.Expect(deployment(ctx, g, a).Annotations).To(HaveKeyWithValue(app.AnnotationRendering, "2"))
		}).Should(Succeed())
		expectNoWrite(ctx, ns, a)
		Expect(replicaSets(ctx, ns)).To(Equal(first))
	})

	It("run in a namespace that enforces the restricted Pod Security Standard", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		kubectl("label", "namespace", ns, "pod-security.kubernetes.io/enforce=restricted")
		a := newApp(ns, "shop", func(s *quellv1alpha1.AppSpec) {
			s.InitContainers = []quellv1alpha1.AppContainer{{Name: "first", Image: image}}
			s.Sidecars = []quellv1alpha1.AppContainer{{Name: "proxy", Image: image}}
			s.PodTemplate = specOf(`{podTemplate: {spec: {containers: [{name: more, image: i}]}}}`).PodTemplate
		})
		createReady(ctx, a)

		bare := create(ctx, newApp(ns, "bare", func(s *quellv1alpha1.AppSpec) {
			s.Defaults = &quellv1alpha1.AppDefaults{Security: quellv1alpha1.SecurityNone}
		}))
		Eventually(ctx, func(g Gomega) {
			g.Expect(deployment(ctx, g, bare).Status.Conditions).To(ContainElement(HaveField("Message", ContainSubstring("violates PodSecurity"))))
		}).Should(Succeed())
	})

	It("stay as they are while the overlay is bad, and the status says where", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		bad := map[string]string{
			`{podTemplate: {spec: {contaners: []}}}`:                                                             `unknown field "spec.podTemplate.spec.contaners"`,
			`{podTemplate: {spec: {hostNetwork: "yes"}}}`:                                                        `spec.podTemplate.spec.hostNetwork: must be true or false, is string`,
			`{podTemplate: {metadata: {labels: {app.kubernetes.io/name: x}}}}`:                                   `spec.podTemplate.metadata.labels: app.kubernetes.io/name is set by the operator`,
			`{podTemplate: {metadata: {name: x}}}`:                                                               `unknown field "spec.podTemplate.metadata.name"`,
			`{podTemplate: {spec: {restartPolicy: Never}}}`:                                                      `spec.template.spec.restartPolicy: Unsupported value: "Never"`,
			`{affinity: {nodeAffinty: {}}}`:                                                                      `unknown field "spec.affinity.nodeAffinty"`,
			`{sidecars: [{name: s, image: i}], podTemplate: {spec: {containers: [{name: s, image: i}]}}}`:        `spec.sidecars and spec.podTemplate.spec.containers would both be container "s"`,
			`{volumeMounts: [{name: f, mountPath: /f/}], configFiles: [{name: f, mountPath: /f, configMap: c}]}`: `would both be mounted at /f`,
		}
		apps := map[string]*quellv1alpha1.App{}
		for i, spec := range slices.Sorted(maps.Keys(bad)) {
			a := newApp(ns, named("shop", len(bad))[i])
			a.Spec = specOf(`{}`)
			apps[spec] = create(ctx, a)
		}
		before := map[string]int64{}
		for spec, a := range apps {
			Eventually(ctx, func(g Gomega) { before[spec] = deployment(ctx, g, a).Generation }).Should(Succeed())
			change(ctx, a, func(a *quellv1alpha1.App) { a.Spec = specOf(spec) })
		}
		for spec, a := range apps {
			Expect(eventuallyCondition(ctx, a, quellv1alpha1.ConditionStalled, "Rejected")).To(ContainSubstring(bad[spec]))
		}
		expectNoWrite(ctx, ns, slices.Collect(maps.Values(apps))...)
		for spec, a := range apps {
			Expect(deployment(ctx, Default, a).Generation).To(Equal(before[spec]), spec)
			change(ctx, a, func(a *quellv1alpha1.App) { a.Spec = specOf(`{podTemplate: {spec: {hostNetwork: true}}}`) })
		}
		for _, a := range apps {
			eventuallyPhase(ctx, a, quellv1alpha1.PhaseRunning)
		}
	})
})

// specOf is podBase with a spec over it.
func specOf(spec string) quellv1alpha1.AppSpec {
	GinkgoHelper()
	var s quellv1alpha1.AppSpec
	Expect(yaml.UnmarshalStrict([]byte(podBase), &s)).To(Succeed())
	Expect(yaml.UnmarshalStrict([]byte(spec), &s)).To(Succeed())
	return s
}

// rowName makes the name of an App of a few words.
func rowName(words string) string {
	return strings.ToLower(strings.NewReplacer(" ", "-", ",", "").Replace(words))
}

// expectSeen wants each App's Deployment as its last step so far asks, and its status to say so.
func expectSeen(ctx context.Context, g Gomega, ns string, rows map[string]string, round int) {
	var apps quellv1alpha1.AppList
	g.Expect(admin.List(ctx, &apps, client.InNamespace(ns))).To(Succeed())
	deployments := &unstructured.UnstructuredList{}
	deployments.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DeploymentList"))
	g.Expect(admin.List(ctx, deployments, client.InNamespace(ns))).To(Succeed())
	live := map[string]map[string]any{}
	for _, d := range deployments.Items {
		live[d.GetName()] = d.Object
	}
	var missing []string
	for _, a := range apps.Items {
		row := workloadFields[rows[a.Name]]
		s := row.steps[min(round, len(row.steps)-1)]
		want, got := strings.ReplaceAll(s.want, "APP", a.Name), see(g, live[a.Name], row.path)
		same, err := MatchYAML(want).Match(got)
		g.Expect(err).NotTo(HaveOccurred(), "%s: %s", a.Name, got)
		if !same || !isReady(&a) || !slices.Contains(a.Status.Images, a.Spec.Image) {
			missing = append(missing, fmt.Sprintf("%s %s: want %s, is %s, conditions %v", a.Name, s.spec, want, got, a.Status.Conditions))
		}
	}
	g.Expect(missing).To(BeEmpty())
}

// see is what kubectl get -o jsonpath shows, in JSON: null for nothing, a list for several values.
func see(g Gomega, object map[string]any, path string) string {
	j := jsonpath.New("").AllowMissingKeys(true)
	g.Expect(j.Parse("{" + path + "}")).To(Succeed())
	found, err := j.FindResults(object)
	g.Expect(err).NotTo(HaveOccurred())
	var values []any
	for _, v := range found[0] {
		if v.IsValid() && v.CanInterface() && v.Interface() != nil {
			values = append(values, v.Interface())
		}
	}
	var value any = values
	if len(values) == 1 {
		value = values[0]
	}
	raw, err := json.Marshal(value)
	g.Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

// expectNoWrite wakes the operator for Apps that have converged, and wants it to change no object. Events may follow what was
// written before, and what was refused is asked again after a pause.
func expectNoWrite(ctx context.Context, ns string, apps ...*quellv1alpha1.App) {
	GinkgoHelper()
	awaitIdle(ctx)
	since := mark()
	for _, a := range apps {
		touch(ctx, a)
	}
	awaitIdle(ctx)
	writes := slices.DeleteFunc(manager.writes(since, ns), func(r localcluster.Request) bool {
		return r.Resource == "events" || r.Code >= http.StatusBadRequest
	})
	Expect(writes).To(BeEmpty(), localcluster.Summary(writes))
}

// replicaSets are the UIDs of the ReplicaSets in a namespace, by name: a Pod template that is another makes a new one.
func replicaSets(ctx context.Context, ns string) map[string]types.UID {
	GinkgoHelper()
	var list appsv1.ReplicaSetList
	Expect(admin.List(ctx, &list, client.InNamespace(ns))).To(Succeed())
	found := map[string]types.UID{}
	for _, s := range list.Items {
		found[s.Name] = s.UID
	}
	return found
}

// withoutOperator stops the operator while f runs.
func withoutOperator(f func()) {
	GinkgoHelper()
	manager.stop()
	defer manager.start()
	f()
}

// foundation is the folder of an App of the first release and what that release applied for it.
const foundation = "../../../controller/app/testdata/foundation"

func foundationApp(ns string) *quellv1alpha1.App {
	GinkgoHelper()
	raw, err := os.ReadFile(filepath.Join(foundation, "app.yaml"))
	Expect(err).NotTo(HaveOccurred())
	a := &quellv1alpha1.App{}
	Expect(yaml.UnmarshalStrict(raw, a)).To(Succeed())
	a.Namespace, a.UID = ns, ""
	return a
}

// applyFoundation applies what the first release applied for an App, as the operator.
func applyFoundation(ctx context.Context, a *quellv1alpha1.App) {
	GinkgoHelper()
	raw, err := os.ReadFile(filepath.Join(foundation, "deployment.yaml"))
	Expect(err).NotTo(HaveOccurred())
	d := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal(raw, &d.Object)).To(Succeed())
	d.SetNamespace(a.Namespace)
	owners := d.GetOwnerReferences()
	owners[0].UID = a.UID
	d.SetOwnerReferences(owners)
	Expect(admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(d), client.FieldOwner(app.ChildManager), client.ForceOwnership)).To(Succeed())
}
