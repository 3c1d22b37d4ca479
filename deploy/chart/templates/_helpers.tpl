{{- define "rds-csi.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 48 | trimSuffix "-" }}
{{- end }}

{{- /* As charts usually do: the release's name, with the chart's behind it where that is not in it. */}}
{{- define "rds-csi.fullname" -}}
{{- $name := include "rds-csi.name" . }}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) }}
{{- default $full .Values.fullnameOverride | trunc 48 | trimSuffix "-" }}
{{- end }}

{{- define "rds-csi.selector" -}}
app.kubernetes.io/name: {{ include "rds-csi.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "rds-csi.labels" -}}
{{ include "rds-csi.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with omit .Values.commonLabels "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/version" "app.kubernetes.io/managed-by" "app.kubernetes.io/component" }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The service account of a component: call with (list $ component values). */}}
{{- define "rds-csi.serviceAccount" -}}
{{- $account := (index . 2).serviceAccount }}
{{- $own := printf "%s-%s" (include "rds-csi.fullname" (index . 0)) (index . 1) }}
{{- default (ternary $own "default" $account.create) $account.name }}
{{- end }}

{{- /* An image from the mirror of global.imageRegistry, if there is one: call with (list $ image). Its first part is a registry if it has a dot or a colon. */}}
{{- define "rds-csi.mirrored" -}}
{{- $image := index . 1 }}
{{- with (default dict (index . 0).Values.global).imageRegistry }}
{{- $image = printf "%s/%s" . (regexReplaceAll "^(localhost|[^/]*[.:][^/]*)/" $image "") }}
{{- end }}
{{- $image }}
{{- end }}

{{- define "rds-csi.image" -}}
{{- with .Values.image.registry }}{{ . }}/{{ $.Values.image.repository }}{{ else }}{{ include "rds-csi.mirrored" (list $ .Values.image.repository) }}{{ end }}:{{ default .Chart.AppVersion .Values.image.tag }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- /* The metadata of the pods of a workload: call with (list $ component values annotations). What selects them wins. */}}
{{- define "rds-csi.podMetadata" -}}
{{- $root := index . 0 }}
{{- $values := index . 2 }}
{{- $own := dict "app.kubernetes.io/component" (index . 1) -}}
labels:
  {{- toYaml (mergeOverwrite (deepCopy $values.podLabels) (include "rds-csi.labels" $root | fromYaml) $own) | nindent 2 }}
{{- with mergeOverwrite (deepCopy $values.podAnnotations) (index . 3) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* The address of the host at which nodes serve metrics. In brackets, because it may be one of IPv6. */}}
{{- define "rds-csi.nodeMetricsAddress" -}}
{{- $address := .Values.node.metricsAddress | default (ternary "$(HOST_IP)" "127.0.0.1" .Values.monitoring.service.enabled) }}
{{- eq $address "$(HOST_IP)" | ternary "[$(HOST_IP)]" $address }}
{{- end }}

{{- /* The status page for the node itself, where its metrics are served at one address only. Call with (list $address $port). */}}
{{- define "rds-csi.nodeStatusFlag" -}}
{{- if eq (index . 0) "[$(HOST_IP)]" -}}
- --status-address=127.0.0.1:{{ index . 1 }}
{{- end }}
{{- end }}

{{- /* The probes. Liveness, at the port `liveness`: whether the process has to be restarted. Readiness: whether it takes calls. `host` is the address if it is not the pod's. */}}
{{- define "rds-csi.probes" -}}
startupProbe:
  httpGet:
    path: /healthz
    port: metrics
    {{- with .host }}
    host: {{ . }}
    {{- end }}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 60
livenessProbe:
  httpGet:
    path: /healthz
    port: {{ .liveness }}
    {{- if eq .liveness "metrics" }}
    {{- with .host }}
    host: {{ . }}
    {{- end }}
    {{- end }}
  periodSeconds: 15
  timeoutSeconds: 10
  failureThreshold: 4
readinessProbe:
  httpGet:
    path: /readyz
    port: metrics
    {{- with .host }}
    host: {{ . }}
    {{- end }}
  periodSeconds: 10
  timeoutSeconds: 5
{{- end }}

{{- /* The entries of a router's Secret, as YAML: its own names win over those of router.secretKeys, and a key over the password there. Call with (list $ router). */}}
{{- define "rds-csi.secretKeys" -}}
{{- $own := default dict (index . 1).secretKeys }}
{{- $common := (index . 0).Values.router.secretKeys }}
{{- toYaml (merge (dict) $own (ternary (omit $common "password") $common (not (empty $own.privateKey)))) }}
{{- end }}

{{- /* What is taken from a router's Secret, as YAML: entries by the key in the file of --config that names them. Call with (list $ router). */}}
{{- define "rds-csi.routerEntries" -}}
{{- $router := index . 1 }}
{{- $keys := include "rds-csi.secretKeys" . | fromYaml }}
{{- $entries := dict }}
{{- if $router.existingSecret }}
{{- if not (or $router.keyFile $router.passwordFile) }}
{{- if $keys.password }}
{{- $_ := set $entries "passwordFile" $keys.password }}
{{- else }}
{{- $_ := set $entries "keyFile" $keys.privateKey }}
{{- end }}
{{- end }}
{{- if not $router.hostKeys }}
{{- $_ := set $entries "hostKeys" $keys.hostKey }}
{{- end }}
{{- end }}
{{- toYaml $entries }}
{{- end }}

{{- /* The file of --config. */}}
{{- define "rds-csi.config" -}}
{{- $routers := list }}
{{- range $given := .Values.config.routers }}
{{- $router := omit $given "existingSecret" "secretKeys" "profile" }}
{{- if $given.profile }}
{{- $_ := set $router "routerProfile" (printf "/etc/rds-csi/profiles/%s.json" $given.name) }}
{{- end }}
{{- range $key, $entry := include "rds-csi.routerEntries" (list $ $given) | fromYaml }}
{{- $path := printf "/etc/rds-csi/routers/%s/%s" $given.name $entry }}
{{- $_ := set $router $key (ternary (list $path) $path (eq $key "hostKeys")) }}
{{- end }}
{{- $routers = append $routers $router }}
{{- end }}
{{- toYaml (dict "routers" $routers) }}
{{- end }}

{{- /* What is confined as the controller is, but has to open the node's socket, which is root's. */}}
{{- define "rds-csi.confinedRoot" -}}
securityContext:
  runAsUser: 0
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: ["ALL"]
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- /* Nothing that a process without privileges does not need. */}}
{{- define "rds-csi.confined" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: ["ALL"]
{{- end }}

{{- /* Call with (list $ name specification arguments). No --leader-election: a sidecar does nothing before the driver beside it leads, and an election of its own could give it a lead that this driver has not. */}}
{{- define "rds-csi.sidecar" -}}
{{- $root := index . 0 }}
{{- $spec := index . 2 -}}
- name: {{ index . 1 }}
  image: {{ include "rds-csi.mirrored" (list $root $spec.image) }}
  imagePullPolicy: {{ $root.Values.sidecars.pullPolicy }}
  args:
    - --csi-address=/csi/csi.sock
    - --timeout={{ $root.Values.sidecars.timeout }}
    - --retry-interval-max={{ $root.Values.sidecars.retryIntervalMax }}
    - --v={{ $root.Values.sidecars.logLevel }}
    - --kube-api-qps={{ $root.Values.sidecars.kubeApiQps }}
    - --kube-api-burst={{ $root.Values.sidecars.kubeApiBurst }}
    {{- range index . 3 }}
    - {{ . }}
    {{- end }}
    {{- range $spec.extraArgs }}
    - {{ . | quote }}
    {{- end }}
  {{- if gt (len .) 4 }}
  env:
    {{- range $name, $path := index . 4 }}
    - name: {{ $name }}
      valueFrom:
        fieldRef:
          fieldPath: {{ $path }}
    {{- end }}
  {{- end }}
  {{- include "rds-csi.confined" $root | nindent 2 }}
  resources:
    {{- toYaml $spec.resources | nindent 4 }}
  volumeMounts:
    - name: socket
      mountPath: /csi
{{- end }}

{{- /* What is known about each router, as YAML: texts by the names of files. */}}
{{- define "rds-csi.profiles" -}}
{{- $profiles := dict }}
{{- if .Values.config.routers }}
{{- range .Values.config.routers }}
{{- if .profile }}
{{- $_ := set $profiles (printf "%s.json" .name) .profile }}
{{- end }}
{{- end }}
{{- else }}
{{- with .Values.router.profile }}
{{- $_ := set $profiles "router.json" . }}
{{- end }}
{{- end }}
{{- toYaml $profiles }}
{{- end }}

{{- /* The ConfigMap with these files, as a source of a projected volume. */}}
{{- define "rds-csi.profilesSource" -}}
name: {{ include "rds-csi.fullname" . }}-router-profiles
items:
  {{- range $file, $_ := include "rds-csi.profiles" . | fromYaml }}
  - key: {{ $file }}
    path: profiles/{{ $file }}
  {{- end }}
{{- end }}

{{- /* Which router, which cluster, which driver, as the variables that commands read, as YAML. */}}
{{- define "rds-csi.routerVariables" -}}
{{- $variables := dict "RDS_DRIVER_NAME" .Values.driverName }}
{{- with .Values.clusterId }}
{{- $_ := set $variables "RDS_CLUSTER_ID" . }}
{{- end }}
{{- if .Values.config.routers }}
{{- $_ := set $variables "RDS_CONFIG" "/etc/rds-csi/config.yaml" }}
{{- else }}
{{- $router := include "rds-csi.router" . | fromYaml }}
{{- $keys := $router.secretKeys }}
{{- $_ := set $variables "RDS_ADDRESS" $router.address }}
{{- $_ := set $variables "RDS_PORT" (toString $router.port) }}
{{- $_ := set $variables "RDS_USER" $router.user }}
{{- if $keys.password }}
{{- $_ := set $variables "RDS_PASSWORD_FILE" (printf "/etc/rds-csi/%s" $keys.password) }}
{{- else }}
{{- $_ := set $variables "RDS_KEY" (printf "/etc/rds-csi/%s" $keys.privateKey) }}
{{- end }}
{{- $_ := set $variables "RDS_HOST_KEY" (printf "/etc/rds-csi/%s" $keys.hostKey) }}
{{- $_ := set $variables "RDS_BASE_PATH" (join "," $router.basePaths) }}
{{- with $router.nvmeAddress }}
{{- $_ := set $variables "RDS_NVME_ADDRESS" . }}
{{- end }}
{{- end }}
{{- toYaml $variables }}
{{- end }}

{{- define "rds-csi.simulatorName" -}}
{{- include "rds-csi.fullname" . }}-simulator
{{- end }}

{{- /* The port of its SSH service: above 1023, so it needs no privileges. */}}
{{- define "rds-csi.simulatorPort" -}}
2222
{{- end }}

{{- /* The only router, as YAML: that of the values, or the simulated one in its place. */}}
{{- define "rds-csi.router" -}}
{{- $router := deepCopy .Values.router }}
{{- if .Values.simulator.enabled }}
{{- $_ := set $router "address" (printf "%s.%s.svc" (include "rds-csi.simulatorName" .) .Release.Namespace) }}
{{- $_ := set $router "port" (include "rds-csi.simulatorPort" . | int) }}
{{- end }}
{{- toYaml $router }}
{{- end }}

{{- /* A StorageClass: call with (list $ class driverName). */}}
{{- define "rds-csi.storageClass" }}
{{- $root := index . 0 }}
{{- $class := index . 1 }}
{{- if $class.encryptionSecret }}
{{- $parameters := default dict $class.parameters }}
{{- /* Of a key that is there twice the last one counts: an encrypted="false" would quietly make plain volumes. */}}
{{- range $key, $_ := $parameters }}
{{- if regexMatch "^(encrypted|csi\\.storage\\.k8s\\.io/node-(stage|publish)-secret-name(space)?)$" $key }}
{{- fail (printf "the StorageClass %s has an encryptionSecret, which sets the parameter %s: leave that out" $class.name $key) }}
{{- end }}
{{- end }}
{{- if eq (toString $parameters.deviceLayer) "multipath" }}
{{- fail (printf "the StorageClass %s has an encryptionSecret: encrypted volumes have no device layer, so leave deviceLayer out" $class.name) }}
{{- end }}
{{- end }}
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: {{ $class.name }}
  labels:
    {{- include "rds-csi.labels" $root | nindent 4 }}
  {{- if or $class.default $class.annotations }}
  annotations:
    {{- if $class.default }}
    storageclass.kubernetes.io/is-default-class: "true"
    {{- end }}
    {{- with $class.annotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
provisioner: {{ index . 2 }}
reclaimPolicy: {{ default "Delete" $class.reclaimPolicy }}
volumeBindingMode: {{ default "Immediate" $class.volumeBindingMode }}
allowVolumeExpansion: {{ hasKey $class "allowVolumeExpansion" | ternary $class.allowVolumeExpansion true }}
{{- with $class.mountOptions }}
mountOptions:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if or $class.fsType $class.parameters $class.encryptionSecret }}
parameters:
  {{- with $class.fsType }}
  csi.storage.k8s.io/fstype: {{ . }}
  {{- end }}
  {{- with $class.encryptionSecret }}
  encrypted: "true"
  {{- /* A node whose device has died opens the next one when it publishes. */}}
  {{- range $call := list "stage" "publish" }}
  csi.storage.k8s.io/node-{{ $call }}-secret-name: {{ $class.encryptionSecret.name | quote }}
  csi.storage.k8s.io/node-{{ $call }}-secret-namespace: {{ $class.encryptionSecret.namespace | quote }}
  {{- end }}
  {{- end }}
  {{- range $key, $value := $class.parameters }}
  {{ $key }}: {{ $value | quote }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* The router of shared directories, as YAML: the only router, with what the values say differently. */}}
{{- define "rds-csi.directoryRouter" -}}
{{- $router := include "rds-csi.router" . | fromYaml }}
{{- range $key, $value := .Values.directory.router }}
{{- if $value }}
{{- $_ := set $router $key $value }}
{{- end }}
{{- end }}
{{- if not $router.address }}
{{- fail "directory.router.address is required with config.routers: the router that shares the pool for directories" }}
{{- end }}
{{- toYaml $router }}
{{- end }}
