{{- /* What is wrong with the values, each as a line; nothing when all is well. A schema could refuse it too, but not in words that help. `helm lint` of the untouched chart only warns, because `fail` does not end it. */}}
{{- define "rds-csi.problems" -}}
{{- $problems := list }}
{{- if and (not .Values.router.address) (not .Values.config.routers) (not .Values.simulator.enabled) }}
{{- $problems = append $problems "router.address is required: the address of the router's SSH service" }}
{{- end }}
{{- if and .Values.router.address .Values.config.routers }}
{{- $problems = append $problems "router.address has to be empty because config.routers lists the routers" }}
{{- end }}
{{- $problems = concat $problems (include "rds-csi.addressProblems" (list "router.address" .Values.router.address) | fromJsonArray) }}
{{- $problems = concat $problems (include "rds-csi.addressProblems" (list "router.nvmeAddress" .Values.router.nvmeAddress) | fromJsonArray) }}
{{- $problems = concat $problems (include "rds-csi.profileProblems" (list "router.profile" .Values.router.profile) | fromJsonArray) }}
{{- range $at, $router := .Values.config.routers }}
{{- range list "address" "nvmeAddress" }}
{{- $problems = concat $problems (include "rds-csi.addressProblems" (list (printf "config.routers[%d].%s" $at .) (get $router .)) | fromJsonArray) }}
{{- end }}
{{- $problems = concat $problems (include "rds-csi.profileProblems" (list (printf "config.routers[%d].profile" $at) $router.profile) | fromJsonArray) }}
{{- end }}
{{- if .Values.directory.enabled }}
{{- $problems = concat $problems (include "rds-csi.addressProblems" (list "directory.router.address" .Values.directory.router.address) | fromJsonArray) }}
{{- end }}
{{- if regexMatch ":[^/]*$|@" .Values.image.repository }}
{{- $problems = append $problems (printf "image.repository %q has a tag or a digest: put it into image.tag or image.digest" .Values.image.repository) }}
{{- end }}
{{- $problems = concat $problems (include "rds-csi.classProblems" . | fromJsonArray) }}
{{- with .Values.node.fstrimInterval }}
{{- if lt (include "rds-csi.seconds" . | float64) 60.0 }}
{{- if ne (include "rds-csi.seconds" . | float64) 0.0 }}
{{- $problems = append $problems (printf "node.fstrimInterval %q is below the minimum: use at least 1m, or leave it empty for never" .) }}
{{- end }}
{{- end }}
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
{{- range $name, $port := $others }}
{{- with get $ports (toString $port) }}
{{- $problems = append $problems (printf "%s is %d, as %s is: they are ports of the same host, and have to differ" $name $port .) }}
{{- end }}
{{- $_ := set $ports (toString $port) $name }}
{{- end }}
{{- $folders := concat (list "/var/lib/kubelet" "/var/lib/k0s/kubelet" "/var/snap/microk8s/common/var/lib/kubelet") .Values.allowFolders }}
{{- if not (has .Values.kubeletPath $folders) }}
{{- $problems = append $problems (printf "kubeletPath %q is a folder that the executable may not use: build the image with ALLOW_FOLDERS=%s, and name the folder in allowFolders" .Values.kubeletPath .Values.kubeletPath) }}
{{- end }}
{{- toJson $problems }}
{{- end }}

{{- /* Call with (list name addresses): one or several hosts, separated by commas. */}}
{{- define "rds-csi.addressProblems" -}}
{{- $problems := list }}
{{- $name := index . 0 }}
{{- range splitList "," (default "" (index . 1)) }}
{{- if regexMatch "\\s" . }}
{{- $problems = append $problems (printf "%s has a blank in %q: separate several by commas alone" $name .) }}
{{- else if contains "://" . }}
{{- $problems = append $problems (printf "%s %q has a scheme: use the host alone" $name .) }}
{{- else if regexMatch "^[^:]*:[0-9]*$|\\]" . }}
{{- $problems = append $problems (printf "%s %q has a port or brackets: use the host alone, and the value of its own for the port" $name .) }}
{{- else if and . (not (regexMatch "^[A-Za-z0-9._-]+$|^[0-9A-Fa-f:.]+(%[A-Za-z0-9]+)?$" .)) }}
{{- $problems = append $problems (printf "%s %q is neither a name nor an address" $name .) }}
{{- end }}
{{- end }}
{{- toJson $problems }}
{{- end }}

{{- /* Call with (list name text). */}}
{{- define "rds-csi.profileProblems" -}}
{{- $problems := list }}
{{- with index . 1 }}
{{- if ne (dig "format" "" (fromJson . | default dict) | toString) "rds-csi-router-profile/1" }}
{{- $problems = append $problems (printf "%s is no profile that `rds-csi doctor --probe` wrote: give its file by --set-file" (index $ 0)) }}
{{- end }}
{{- end }}
{{- toJson $problems }}
{{- end }}

{{- /* The classes of all kinds: names, defaults, parameters. */}}
{{- define "rds-csi.classProblems" -}}
{{- $problems := list }}
{{- $own := list "backend" "volumePath" "nvmePort" "nvmeAddress" "migrationTimeoutSeconds" "encrypted" "fsType" "fsLabel" "ctrlLossTmo" "reconnectDelay" "keepAliveTmo" "nrIoQueues" "fsckMode" "mkfsOptions" "deviceLayer" "fastIoFailTmo" "hdrDigest" "dataDigest" "allowDiscards" "pbkdfMemory" "pbkdfTime" "rdsAddress" "sshPort" "nqnPrefix" }}
{{- $ofDirectories := list "addresses" "path" "pathType" "directoryMode" "uid" "gid" "mntPath" }}
{{- $directories := ternary .Values.directory.storageClasses list .Values.directory.enabled }}
{{- $groups := list (list "storageClasses" .Values.storageClasses $own) (list "directory.storageClasses" $directories $ofDirectories) }}
{{- $names := list }}
{{- $defaults := list }}
{{- range $groups }}
{{- $known := index . 2 }}
{{- $group := index . 0 }}
{{- range index . 1 }}
{{- $class := . }}
{{- if has .name $names }}
{{- $problems = append $problems (printf "two StorageClasses are called %s" .name) }}
{{- end }}
{{- $names = append $names .name }}
{{- if .default }}
{{- $defaults = append $defaults .name }}
{{- end }}
{{- range $key, $value := .parameters }}
{{- if not (or (has $key $known) (hasPrefix "csi.storage.k8s.io/" $key)) }}
{{- $problems = append $problems (printf "the StorageClass %s of %s has the unknown parameter %s; known are %s" $class.name $group $key (join ", " $known)) }}
{{- end }}
{{- end }}
{{- $parameters := default dict .parameters }}
{{- if and (eq (toString (get $parameters "encrypted")) "true") (not .encryptionSecret) (not (hasKey $parameters "csi.storage.k8s.io/node-stage-secret-name")) }}
{{- $problems = append $problems (printf "the StorageClass %s is encrypted and has no Secret with a passphrase: set encryptionSecret in place of the parameter" .name) }}
{{- end }}
{{- end }}
{{- end }}
{{- if gt (len $defaults) 1 }}
{{- $problems = append $problems (printf "only one StorageClass can be the default: %s" (join ", " $defaults)) }}
{{- end }}
{{- $names = list }}
{{- $defaults = list }}
{{- range .Values.volumeSnapshotClasses }}
{{- if has .name $names }}
{{- $problems = append $problems (printf "two VolumeSnapshotClasses are called %s" .name) }}
{{- end }}
{{- $names = append $names .name }}
{{- if .default }}
{{- $defaults = append $defaults .name }}
{{- end }}
{{- end }}
{{- if gt (len $defaults) 1 }}
{{- $problems = append $problems (printf "only one VolumeSnapshotClass can be the default: %s" (join ", " $defaults)) }}
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
