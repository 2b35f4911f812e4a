{{- define "agentd.name" -}}
{{- if contains "agentd" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-agentd" (.Release.Name | trunc 43 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "agentd.selector" -}}
app.kubernetes.io/name: agentd
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "agentd.labels" -}}
{{ include "agentd.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}

{{- /* Seconds of a duration such as 90s, 2m or 1m30s; list of: the duration, its key. */ -}}
{{- define "agentd.seconds" -}}
{{- $d := index . 0 | toString }}
{{- if not (regexMatch "^([0-9]+m)?([0-9]+s)?$" $d) }}{{ fail (printf "config.agentd: %s is %q: the chart reads 90s, 2m or 1m30s, to know how long a pod may take to end" (index . 1) $d) }}{{ end }}
{{- $m := regexFind "[0-9]+m" $d | trimSuffix "m" | default "0" | int }}
{{- $s := regexFind "[0-9]+s" $d | trimSuffix "s" | default "0" | int }}
{{- add (mul $m 60) $s }}
{{- end }}

{{- /* How long a pod may take to end: it goes on while others take notice, lets requests finish, lets calls under way
finish (with Temporal its workers first, then the node), says goodbye. */ -}}
{{- define "agentd.grace" -}}
{{- $c := fromYaml .Values.config.agentd }}
{{- if hasKey $c "Error" }}{{ fail (printf "config.agentd is no YAML: %s" $c.Error) }}{{ end }}
{{- $http := get $c "http" | default dict }}
{{- $delay := include "agentd.seconds" (list (get $http "shutdown_delay" | default "0s") "http.shutdown_delay") | int }}
{{- $grace := include "agentd.seconds" (list (get $http "shutdown_grace" | default "10s") "http.shutdown_grace") | int }}
{{- $drain := include "agentd.seconds" (list (get (get $c "cluster" | default dict) "drain_timeout" | default "30s") "cluster.drain_timeout") | int }}
{{- add $delay $grace (mul 2 $drain) 15 }}
{{- end }}

{{- /* A pod; dict of: root, role (api or worker), values (of the role), args. */ -}}
{{- define "agentd.pod" -}}
{{- $root := .root }}
metadata:
  labels:
    {{- include "agentd.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .role }}
  annotations:
    # Nodes read their configuration when they start.
    checksum/config: {{ include (print $root.Template.BasePath "/configmap.yaml") $root | sha256sum }}
    {{- with .values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "agentd.name" $root }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ include "agentd.grace" $root }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    seccompProfile: {type: RuntimeDefault}
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: agentd
      image: "{{ $root.Values.image.repository }}:{{ $root.Values.image.tag | default $root.Chart.AppVersion }}"
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args: {{ toJson .args }}
      workingDir: /srv/agentd
      env:
        - name: AGENTD_STORE
          valueFrom:
            secretKeyRef: {name: {{ $root.Values.store.existingSecret | quote }}, key: {{ $root.Values.store.key | quote }}}
        {{- with $root.Values.env }}{{ toYaml . | nindent 8 }}{{ end }}
      {{- with $root.Values.secretEnv }}
      envFrom:
        {{- range . }}
        - secretRef: {name: {{ . | quote }}}
        {{- end }}
      {{- end }}
      ports:
        - {name: http, containerPort: {{ .port }}}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      resources: {{- toYaml .values.resources | nindent 8 }}
      # Asked as localhost, which is a name that agentd answers to whatever agentd.yaml's hosts says.
      startupProbe:
        httpGet: {path: /healthz, port: http, scheme: {{ $root.Values.probeScheme }}, httpHeaders: [{name: Host, value: localhost}]}
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /healthz, port: http, scheme: {{ $root.Values.probeScheme }}, httpHeaders: [{name: Host, value: localhost}]}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: http, scheme: {{ $root.Values.probeScheme }}, httpHeaders: [{name: Host, value: localhost}]}
        periodSeconds: 3
        timeoutSeconds: 3
        failureThreshold: 2
      volumeMounts:
        - {name: config, mountPath: /srv/agentd/configs, readOnly: true}
        {{- if $root.Values.workspace }}
        - {name: workspace, mountPath: /srv/agentd/workspace}
        {{- end }}
        {{- with $root.Values.extraVolumeMounts }}{{ toYaml . | nindent 8 }}{{ end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "agentd.name" $root }}
        items:
          - {key: agentd.yaml, path: agentd.yaml}
          - {key: servers.yaml, path: mcp/servers.yaml}
          {{- range $name, $text := $root.Values.config.agents }}
          - {key: {{ printf "agent.%s.yaml" $name | quote }}, path: {{ printf "agents/%s.yaml" $name | quote }}}
          {{- end }}
    {{- with $root.Values.workspace }}
    - name: workspace
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with $root.Values.extraVolumes }}{{ toYaml . | nindent 4 }}{{ end }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "agentd.selector" $root | nindent 10 }}
          app.kubernetes.io/component: {{ .role }}
  {{- with .values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- /* What a role has besides its pods: deployment, disruption budget, autoscaler. The same dict. */ -}}
{{- define "agentd.role" -}}
{{- $root := .root }}
{{- $name := printf "%s-%s" (include "agentd.name" $root) .role }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  labels:
    {{- include "agentd.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .role }}
spec:
  {{- if not .values.autoscaling.enabled }}
  replicas: {{ .values.replicas }}
  {{- end }}
  revisionHistoryLimit: 5
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  selector:
    matchLabels:
      {{- include "agentd.selector" $root | nindent 6 }}
      app.kubernetes.io/component: {{ .role }}
  template:
    {{- include "agentd.pod" . | nindent 4 }}
{{- if .values.podDisruptionBudget.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  labels: {{- include "agentd.labels" $root | nindent 4 }}
spec:
  {{- $least := get .values.podDisruptionBudget "minAvailable" | toString }}
  {{- $most := get .values.podDisruptionBudget "maxUnavailable" | toString }}
  {{- if and $least $most }}{{ fail (printf "%s.podDisruptionBudget: minAvailable and maxUnavailable are both set: choose one" .role) }}{{ end }}
  {{- if $least }}
  minAvailable: {{ $least }}
  {{- else }}
  maxUnavailable: {{ $most | default "1" }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "agentd.selector" $root | nindent 6 }}
      app.kubernetes.io/component: {{ .role }}
{{- end }}
{{- if .values.autoscaling.enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ $name }}
  labels: {{- include "agentd.labels" $root | nindent 4 }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: {{ $name }}}
  minReplicas: {{ .values.autoscaling.minReplicas }}
  maxReplicas: {{ .values.autoscaling.maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: {type: Utilization, averageUtilization: {{ .values.autoscaling.targetCPUUtilizationPercentage }}}
  behavior:
    # A pod that ends hands over what it drives; not all at once.
    scaleDown: {stabilizationWindowSeconds: 300, policies: [{type: Pods, value: 1, periodSeconds: 60}]}
{{- end }}
{{- end }}
