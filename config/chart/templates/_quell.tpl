{{/* A file of config/, copied to files/ by make chart, for the namespace of the release. Argument: list ROOT PATH. */}}
{{- define "quell.file" -}}
{{- $root := index . 0 -}}
{{- $root.Files.Get (printf "files/%s" (index . 1)) | replace "quell-system" $root.Release.Namespace | trim | trimPrefix "---" -}}
{{- end -}}

{{/* The same with further labels. Argument: list ROOT PATH LABELS; the file holds one object. */}}
{{- define "quell.labelled" -}}
{{- $object := include "quell.file" . | fromYaml -}}
{{- $_ := set $object.metadata "labels" (merge (dict) (index . 2) $object.metadata.labels) -}}
{{- toYaml $object -}}
{{- end -}}

{{- define "quell.image" -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag }}{{ end -}}
{{- end -}}

{{/* The labels by which a Deployment knows its Pods; shard is "" for the one that works on the Apps without a shard. */}}
{{- define "quell.selector" -}}
app.kubernetes.io/name: quell
{{- if . }}
app.kubernetes.io/component: shard
quell.dev/shard: {{ . | quote }}
{{- else }}
app.kubernetes.io/component: manager
{{- end }}
{{- end -}}

{{- define "quell.name" -}}
quell-manager{{ with . }}-{{ . }}{{ end }}
{{- end -}}

{{/* A Deployment of the manager. Argument: root; shard, or ""; replicas; concurrent; resources. */}}
{{- define "quell.deployment" -}}
{{- $values := .root.Values -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "quell.name" .shard }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "quell.selector" .shard | nindent 4 }}
spec:
  replicas: {{ int .replicas }}
  selector:
    matchLabels:
      {{- include "quell.selector" .shard | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "quell.selector" .shard | nindent 8 }}
        {{- with omit $values.podLabels "app.kubernetes.io/name" "app.kubernetes.io/component" "quell.dev/shard" }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        {{- merge (dict) $values.podAnnotations (dict "kubectl.kubernetes.io/default-container" "manager") | toYaml | nindent 8 }}
    spec:
      serviceAccountName: quell-manager
      {{- with $values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.priorityClassName }}
      priorityClassName: {{ . | quote }}
      {{- end }}
      terminationGracePeriodSeconds: 15
      securityContext:
        runAsNonRoot: true
        seccompProfile:
          type: RuntimeDefault
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.topologySpreadConstraints }}
      topologySpreadConstraints:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
      - name: manager
        {{- $image := $values.image }}
        image: {{ include "quell.image" (merge (dict "tag" ($image.tag | default .root.Chart.AppVersion)) $image) | quote }}
        imagePullPolicy: {{ $image.pullPolicy }}
        args:
        {{- with .shard }}
        - --shard={{ . }}
        {{- end }}
        - --leader-elect
        - --metrics-bind-address=:8443
        - --health-probe-bind-address=:8081
        {{- with .concurrent }}
        - --max-concurrent-reconciles={{ int . }}
        {{- end }}
        {{- with $values.extraArgs }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        ports:
        - name: metrics
          containerPort: 8443
        - name: health
          containerPort: 8081
        livenessProbe:
          httpGet:
            path: /healthz
            port: health
          initialDelaySeconds: 10
          periodSeconds: 20
        readinessProbe:
          httpGet:
            path: /readyz
            port: health
          periodSeconds: 5
        resources:
          {{- toYaml .resources | nindent 10 }}
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities:
            drop: [ALL]
{{- end -}}
