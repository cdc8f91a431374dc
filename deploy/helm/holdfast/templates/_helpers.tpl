{{- define "holdfast.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "holdfast.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "holdfast.labels" -}}
{{ include "holdfast.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "holdfast.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* The container and its volumes, for servers, workers and administration: root, args, component, resources. */}}
{{- define "holdfast.pod" -}}
{{- $v := .root.Values }}
{{- $postgres := eq $v.store.type "postgres" }}
# Kubernetes would set HOLDFAST_PORT and others for the Service, which are no settings.
enableServiceLinks: false
automountServiceAccountToken: false
terminationGracePeriodSeconds: {{ add $v.graceSeconds 15 }}
{{- with $v.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
containers:
  - name: holdfast
    image: {{ include "holdfast.image" .root }}
    imagePullPolicy: {{ $v.image.pullPolicy }}
    args: {{ toJson .args }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL]}
    env:
      {{- if $postgres }}
      - {name: HOLDFAST_STORE, value: ""} # the image has a file here
      - {name: HOLDFAST_STORE_FILE, value: /etc/holdfast/store/url}
      {{- else }}
      - {name: HOLDFAST_STORE, value: /data/jobs.db}
      {{- end }}
      - {name: HOLDFAST_LISTEN, value: "0.0.0.0:4747"}
      - {name: HOLDFAST_AUTH, value: keys}
      - {name: HOLDFAST_GRACE, value: {{ printf "%ds" (int $v.graceSeconds) }}}
      {{- if $v.policy }}
      - {name: HOLDFAST_POLICY, value: /etc/holdfast/policy/policy.yaml}
      {{- end }}
      {{- range $name, $value := $v.env }}
      - {name: {{ $name }}, value: {{ $value | quote }}}
      {{- end }}
    {{- with $v.envFromSecrets }}
    envFrom:
      {{- range . }}
      - secretRef: {name: {{ . }}}
      {{- end }}
    {{- end }}
    {{- if ne .component "admin" }}
    ports:
      - {name: http, containerPort: 4747}
    startupProbe:
      httpGet: {path: /livez, port: http}
      periodSeconds: 2
      failureThreshold: 60
    livenessProbe:
      httpGet: {path: /livez, port: http}
      periodSeconds: 10
      timeoutSeconds: 5
      failureThreshold: 6
    readinessProbe:
      httpGet: {path: /readyz, port: http}
      periodSeconds: 5
      timeoutSeconds: 5
    {{- end }}
    {{- with .resources }}
    resources: {{- toYaml . | nindent 6 }}
    {{- end }}
    volumeMounts:
      - {name: tmp, mountPath: /tmp}
      {{- if $postgres }}
      - {name: store, mountPath: /etc/holdfast/store, readOnly: true}
      {{- else }}
      - {name: data, mountPath: /data}
      {{- end }}
      {{- if $v.policy }}
      - {name: policy, mountPath: /etc/holdfast/policy, readOnly: true}
      {{- end }}
volumes:
  - name: tmp
    emptyDir: {}
  {{- if $postgres }}
  - name: store
    secret:
      secretName: {{ required "store.postgres.existingSecret: name a Secret that has the address of the database" $v.store.postgres.existingSecret }}
      items:
        - {key: {{ $v.store.postgres.key }}, path: url}
  {{- else if eq .component "admin" }}
  - name: data
    persistentVolumeClaim: {claimName: data-{{ include "holdfast.name" .root }}-0}
  {{- end }}
  {{- if $v.policy }}
  - name: policy
    configMap: {name: {{ include "holdfast.name" .root }}}
  {{- end }}
{{- with $v.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $v.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $v.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* The metadata of pods: root, component. */}}
{{- define "holdfast.podMetadata" -}}
labels:
  {{- include "holdfast.labels" . | nindent 2 }}
  {{- with .root.Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  checksum/policy: {{ .root.Values.policy | sha256sum }}
  {{- with .root.Values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
