{{- /* What is wrong with the values, each as a line; nothing when all is well. A schema could refuse it too, but not in words that help. `helm lint` of the untouched chart only warns, because `fail` does not end it. */}}
{{- define "rds-csi.problems" -}}
{{- $problems := list }}
{{- $problems = concat $problems (include "rds-csi.routerProblems" . | fromJsonArray) }}
{{- $problems = concat $problems (include "rds-csi.argumentProblems" . | fromJsonArray) }}
{{- if contains "://" .Values.image.repository }}
{{- $problems = append $problems (printf "image.repository %q has a scheme: leave it out" .Values.image.repository) }}
{{- else if regexMatch ":[^/]*$|@" .Values.image.repository }}
{{- $problems = append $problems (printf "image.repository %q has a tag or a digest: put it into image.tag or image.digest" .Values.image.repository) }}
{{- else if not (regexMatch "^([A-Za-z0-9-]+([.][A-Za-z0-9-]+)+(:[0-9]+)?/|[A-Za-z0-9-]+:[0-9]+/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$" .Values.image.repository) }}
{{- $problems = append $problems (printf "image.repository %q is no name of a repository, such as registry.example.net/rds-csi in small letters" .Values.image.repository) }}
{{- end }}
{{- range $name, $registry := dict "image.registry" .Values.image.registry "global.imageRegistry" .Values.global.imageRegistry }}
{{- if contains "://" (default "" $registry) }}
{{- $problems = append $problems (printf "%s %q has a scheme: leave it out" $name $registry) }}
{{- end }}
{{- end }}
{{- $images := dict "test.image" .Values.test.image "node.sidecars.livenessProbe.image" .Values.node.sidecars.livenessProbe.image }}
{{- range list "provisioner" "attacher" "resizer" "snapshotter" }}
{{- $_ := set $images (printf "sidecars.%s.image" .) (get $.Values.sidecars .).image }}
{{- end }}
{{- range $name, $image := $images }}
{{- if contains "://" $image }}
{{- $problems = append $problems (printf "%s %q has a scheme: leave it out" $name $image) }}
{{- else if not (regexMatch "^([A-Za-z0-9-]+([.][A-Za-z0-9-]+)+(:[0-9]+)?/|[A-Za-z0-9-]+:[0-9]+/)?[a-z0-9]+([._/-]+[a-z0-9]+)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[0-9a-f]{64})?|@sha256:[0-9a-f]{64})$" $image) }}
{{- $problems = append $problems (printf "%s %q has to be NAME:TAG, NAME:TAG@sha256:… or NAME@sha256:…" $name $image) }}
{{- end }}
{{- end }}
{{- $problems = concat $problems (include "rds-csi.classProblems" . | fromJsonArray) }}
{{- range $name, $interval := dict "node.fstrimInterval" .Values.node.fstrimInterval "controller.healthInterval" .Values.controller.healthInterval }}
{{- $seconds := include "rds-csi.seconds" (default "" $interval) | float64 }}
{{- if and (gt $seconds 0.0) (lt $seconds 60.0) }}
{{- $problems = append $problems (printf "%s %q is below the minimum: use at least 1m, or 0s for never" $name $interval) }}
{{- end }}
{{- end }}
{{- if gt (include "rds-csi.seconds" (default "" .Values.controller.healthInterval) | float64) 3600.0 }}
{{- $problems = append $problems (printf "controller.healthInterval %q is above the maximum: use at most 1h" .Values.controller.healthInterval) }}
{{- end }}
{{- if regexMatch "^([^/]*[.])?(kubernetes|k8s)[.]io/" .Values.controller.startupTaint }}
{{- $problems = append $problems (printf "controller.startupTaint %q is a taint of Kubernetes itself: use a key of your own" .Values.controller.startupTaint) }}
{{- end }}
{{- $ports := dict (toString (int .Values.metricsPort)) "metricsPort" }}
{{- $others := dict }}
{{- if .Values.directory.enabled }}
{{- $_ := set $others "directory.metricsPort" (int .Values.directory.metricsPort) }}
{{- end }}
{{- if .Values.node.sidecars.livenessProbe.enabled }}
{{- $_ := set $others "node.sidecars.livenessProbe.port" (int .Values.node.sidecars.livenessProbe.port) }}
{{- end }}
{{- with .Values.node.statusAddress }}
{{- $everywhere := list "" "0.0.0.0" "[::]" }}
{{- $hosts := list (regexReplaceAll ":[0-9]+$" . "") (include "rds-csi.nodeMetricsAddress" $) }}
{{- if or (has (first $hosts) $everywhere) (has (last $hosts) $everywhere) (eq (first $hosts) (last $hosts)) }}
{{- $_ := set $others "node.statusAddress" (regexFind "[0-9]+$" . | int) }}
{{- end }}
{{- end }}
{{- if eq (regexFind "[0-9]+$" (default "" .Values.controller.statusAddress)) (toString (int .Values.metricsPort)) }}
{{- $problems = append $problems (printf "controller.statusAddress %q has the port of metricsPort, at which the controller listens already" .Values.controller.statusAddress) }}
{{- end }}
{{- range $name, $port := $others }}
{{- with get $ports (toString $port) }}
{{- $problems = append $problems (printf "%s is %d, as %s is: they are ports of the same host, and have to differ" $name $port .) }}
{{- end }}
{{- $_ := set $ports (toString $port) $name }}
{{- end }}
{{- $folders := concat (list "/var/lib/kubelet" "/var/lib/k0s/kubelet" "/var/snap/microk8s/common/var/lib/kubelet") .Values.allowFolders }}
{{- $allowed := false }}
{{- range $folders }}
{{- if or (eq . $.Values.kubeletPath) (and (has . $.Values.allowFolders) (hasPrefix (printf "%s/" .) $.Values.kubeletPath)) }}
{{- $allowed = true }}
{{- end }}
{{- end }}
{{- if or (not $allowed) (contains "/.." .Values.kubeletPath) }}
{{- $problems = append $problems (printf "kubeletPath %q is a folder that the executable may not use: build the image with ALLOW_FOLDERS=%s, and name the folder in allowFolders" .Values.kubeletPath .Values.kubeletPath) }}
{{- end }}
{{- toJson $problems }}
{{- end }}

{{- /* A duration of Go, such as 1h30m, in seconds; 0 for one that is none, which the schema refuses. */}}
{{- define "rds-csi.seconds" -}}
{{- $sum := 0.0 }}
{{- range regexFindAll "[0-9]+(ms|h|m|s)" . -1 }}
{{- $count := regexFind "^[0-9]+" . | float64 }}
{{- $unit := regexFind "[a-z]+$" . }}
{{- $sum = addf $sum (mulf $count (get (dict "h" 3600.0 "m" 60.0 "s" 1.0 "ms" 0.001) $unit)) }}
{{- end }}
{{- $sum }}
{{- end }}

{{- /* Whether snapshots can be made: where they are wanted, and the cluster knows their kinds. */}}
{{- define "rds-csi.snapshots" -}}
{{- if and .Values.sidecars.snapshotter.enabled (.Capabilities.APIVersions.Has "snapshot.storage.k8s.io/v1") }}true{{ end }}
{{- end }}
