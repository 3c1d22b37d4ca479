{{- /* The classes of all kinds: names, defaults, parameters. */}}
{{- define "rds-csi.classProblems" -}}
{{- $problems := list }}
{{- $own := list "backend" "volumePath" "nvmePort" "nvmeAddress" "migrationTimeoutSeconds" "encrypted" "fsType" "fsLabel" "ctrlLossTmo" "reconnectDelay" "keepAliveTmo" "nrIoQueues" "fsckMode" "mkfsOptions" "deviceLayer" "fastIoFailTmo" "hdrDigest" "dataDigest" "allowDiscards" "pbkdfMemory" "pbkdfTime" "rdsAddress" "sshPort" "nqnPrefix" }}
{{- $ofDirectories := list "addresses" "path" "pathType" "directoryMode" "uid" "gid" "mntPath" }}
{{- $directories := ternary .Values.directory.storageClasses list .Values.directory.enabled }}
{{- $groups := list (list "storageClasses" .Values.storageClasses $own) (list "directory.storageClasses" $directories $ofDirectories) }}
{{- /* The values that the driver takes. */}}
{{- $truth := list "true" "false" }}
{{- $fileSystems := list "ext4" "xfs" }}
{{- $choices := dict "encrypted" $truth "hdrDigest" $truth "dataDigest" $truth "allowDiscards" $truth "deviceLayer" (list "auto" "multipath" "none") "fsckMode" (list "preen" "off") "fsType" $fileSystems "csi.storage.k8s.io/fstype" $fileSystems "pathType" (list "DirectoryOrCreate" "Directory") }}
{{- $numbers := dict "nvmePort" (list 1 65535) "migrationTimeoutSeconds" (list 30 3600) "ctrlLossTmo" (list -1 86400) "reconnectDelay" (list 1 3600) "keepAliveTmo" (list 0 3600) "nrIoQueues" (list 1 256) "fastIoFailTmo" (list 1 86400) "pbkdfMemory" (list 32 1024) "pbkdfTime" (list 100 10000) }}
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
{{- range $key, $value := $parameters }}
{{- $range := get $numbers $key }}
{{- if and $range (or (not (regexMatch "^-?(0|[1-9][0-9]{0,8})$" (toString $value))) (lt (toString $value | int) (index $range 0)) (gt (toString $value | int) (index $range 1))) }}
{{- $problems = append $problems (printf "the StorageClass %s has the parameter %s: %v, which can be a whole number from %d to %d" $class.name $key $value (index $range 0) (index $range 1)) }}
{{- end }}
{{- with get $choices $key }}
{{- if not (has (toString $value) .) }}
{{- $problems = append $problems (printf "the StorageClass %s has the parameter %s: %v, which can be %s" $class.name $key $value (join " or " .)) }}
{{- end }}
{{- end }}
{{- end }}
{{- if and .fsType (hasKey $parameters "csi.storage.k8s.io/fstype") }}
{{- $problems = append $problems (printf "the StorageClass %s has fsType, which sets the parameter csi.storage.k8s.io/fstype: leave that out" .name) }}
{{- end }}
{{- $problems = concat $problems (include "rds-csi.addressProblems" (list (printf "the parameter nvmeAddress of the StorageClass %s" .name) (get $parameters "nvmeAddress" | toString) "several") | fromJsonArray) }}
{{- $unnamed := list }}
{{- range list "stage-secret-name" "stage-secret-namespace" "publish-secret-name" "publish-secret-namespace" }}
{{- if not (get $parameters (print "csi.storage.k8s.io/node-" .)) }}
{{- $unnamed = append $unnamed . }}
{{- end }}
{{- end }}
{{- if and (eq (toString (get $parameters "encrypted")) "true") (not .encryptionSecret) $unnamed }}
{{- $problems = append $problems (printf "the StorageClass %s is encrypted and has no Secret with a passphrase for stage and publish: set encryptionSecret in place of the parameter" .name) }}
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
