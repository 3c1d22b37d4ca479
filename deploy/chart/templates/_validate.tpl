{{- /* What is wrong with the values, each as a line; nothing when all is well. A schema could refuse it too, but not in words that help. `helm lint` of the untouched chart only warns, because `fail` does not end it. */}}
{{- define "rds-csi.problems" -}}
{{- $problems := list }}
{{- if and (not .Values.router.address) (not .Values.config.routers) (not .Values.simulator.enabled) }}
{{- $problems = append $problems "router.address is required: the address of the router's SSH service" }}
{{- end }}
{{- if .Values.config.routers }}
{{- range list "address" "nvmeAddress" "profile" }}
{{- if get $.Values.router . }}
{{- $problems = append $problems (printf "router.%s has to be empty because config.routers lists the routers" .) }}
{{- end }}
{{- end }}
{{- $names := list }}
{{- $defaults := list }}
{{- range .Values.config.routers }}
{{- $names = append $names .name }}
{{- if .default }}
{{- $defaults = append $defaults .name }}
{{- end }}
{{- end }}
{{- if ne (len $names) (len (uniq $names)) }}
{{- $problems = append $problems (printf "config.routers has two routers of one name: %s" (join ", " $names)) }}
{{- end }}
{{- if gt (len $defaults) 1 }}
{{- $problems = append $problems (printf "only one router of config.routers can be the default: %s" (join ", " $defaults)) }}
{{- end }}
{{- end }}
{{- $problems = concat $problems (include "rds-csi.addressProblems" (list "router.address" .Values.router.address "one") | fromJsonArray) }}
{{- $problems = concat $problems (include "rds-csi.addressProblems" (list "router.nvmeAddress" .Values.router.nvmeAddress "several") | fromJsonArray) }}
{{- $problems = concat $problems (include "rds-csi.profileProblems" (list "router.profile" .Values.router.profile) | fromJsonArray) }}
{{- range $at, $router := .Values.config.routers }}
{{- range $key, $count := dict "address" "one" "nvmeAddress" "several" }}
{{- $problems = concat $problems (include "rds-csi.addressProblems" (list (printf "config.routers[%d].%s" $at $key) (get $router $key) $count) | fromJsonArray) }}
{{- end }}
{{- $problems = concat $problems (include "rds-csi.profileProblems" (list (printf "config.routers[%d].profile" $at) $router.profile) | fromJsonArray) }}
{{- end }}
{{- if .Values.directory.enabled }}
{{- $problems = concat $problems (include "rds-csi.addressProblems" (list "directory.router.address" .Values.directory.router.address "one") | fromJsonArray) }}
{{- end }}
{{- if contains "://" .Values.image.repository }}
{{- $problems = append $problems (printf "image.repository %q has a scheme: leave it out" .Values.image.repository) }}
{{- else if regexMatch ":[^/]*$|@" .Values.image.repository }}
{{- $problems = append $problems (printf "image.repository %q has a tag or a digest: put it into image.tag or image.digest" .Values.image.repository) }}
{{- else if not (regexMatch "^([A-Za-z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$" .Values.image.repository) }}
{{- $problems = append $problems (printf "image.repository %q is no name of a repository, such as registry.example.net/rds-csi in small letters" .Values.image.repository) }}
{{- end }}
{{- range $name, $registry := dict "image.registry" .Values.image.registry "global.imageRegistry" .Values.global.imageRegistry }}
{{- if contains "://" (default "" $registry) }}
{{- $problems = append $problems (printf "%s %q has a scheme: leave it out" $name $registry) }}
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

{{- /* Call with (list name hosts count): hosts separated by commas, count is "one" or "several". The driver takes what is accepted here. */}}
{{- define "rds-csi.addressProblems" -}}
{{- $problems := list }}
{{- $name := index . 0 }}
{{- $hosts := splitList "," (default "" (index . 1)) }}
{{- if and (eq (index . 2) "one") (gt (len $hosts) 1) }}
{{- $problems = append $problems (printf "%s %q names several hosts: a router has one" $name (index . 1)) }}
{{- else if ne (len $hosts) (len (uniq $hosts)) }}
{{- $problems = append $problems (printf "%s %q names a host twice" $name (index . 1)) }}
{{- end }}
{{- range ternary (list) $hosts (eq (join "" $hosts) "") }}
{{- if regexMatch "\\s" . }}
{{- $problems = append $problems (printf "%s has a blank in %q: separate several by commas alone" $name .) }}
{{- else if contains "://" . }}
{{- $problems = append $problems (printf "%s %q has a scheme: use the host alone" $name .) }}
{{- else if regexMatch "^[^:]*:[0-9]*$|\\]" . }}
{{- $problems = append $problems (printf "%s %q has a port or brackets: use the host alone, and the value of its own for the port" $name .) }}
{{- else if or (contains ":::" .) (not (regexMatch "^((25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])([.]|$)){4}$|^[0-9A-Fa-f]*:[0-9A-Fa-f:]*:[0-9A-Fa-f.]*$|^([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?[.])*([A-Za-z]|[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z]|[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]|[0-9]+[A-Za-z-][A-Za-z0-9-]*[A-Za-z0-9])$" .)) }}
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
{{- if not (or (has $key $known) (regexMatch "^csi\\.storage\\.k8s\\.io/(fstype|(provisioner|controller-publish|node-stage|node-publish|controller-expand|node-expand)-secret-name(space)?)$" $key)) }}
{{- $problems = append $problems (printf "the StorageClass %s of %s has the unknown parameter %s; known are %s" $class.name $group $key (join ", " $known)) }}
{{- end }}
{{- end }}
{{- $parameters := default dict .parameters }}
{{- $problems = concat $problems (include "rds-csi.addressProblems" (list (printf "the parameter nvmeAddress of the StorageClass %s" .name) (get $parameters "nvmeAddress" | toString) "several") | fromJsonArray) }}
{{- if not (has (get $parameters "encrypted" | toString) (list "" "true" "false")) }}
{{- $problems = append $problems (printf "the StorageClass %s has the parameter encrypted: %v, which can be true or false" .name .parameters.encrypted) }}
{{- end }}
{{- $secret := "csi.storage.k8s.io/node-stage-secret-" }}
{{- if and (eq (toString (get $parameters "encrypted")) "true") (not .encryptionSecret) (not (and (get $parameters (print $secret "name")) (get $parameters (print $secret "namespace")))) }}
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
