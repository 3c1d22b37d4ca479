{{- /* The routers, and what names them: their addresses, Secrets, folders and topologies. Each problem as a line, like rds-csi.problems. */}}
{{- define "rds-csi.routerProblems" -}}
{{- $problems := list }}
{{- $several := .Values.config.routers }}
{{- if and (not .Values.router.address) (not $several) (not .Values.simulator.enabled) }}
{{- $problems = append $problems "router.address is required: the address of the router's SSH service" }}
{{- end }}
{{- if $several }}
{{- range list "address" "nvmeAddress" "profile" }}
{{- if get $.Values.router . }}
{{- $problems = append $problems (printf "router.%s has to be empty because config.routers lists the routers" .) }}
{{- end }}
{{- end }}
{{- else if not (or .Values.router.secretKeys.privateKey .Values.router.secretKeys.password) }}
{{- $problems = append $problems "router.secretKeys names no entry to log in with: set privateKey or password" }}
{{- else if and .Values.router.secretKeys.password (not (has .Values.router.secretKeys.privateKey (list "" "rds-private-key"))) }}
{{- $problems = append $problems "router.secretKeys has both privateKey and password: leave one of them out" }}
{{- end }}
{{- $names := list }}
{{- $defaults := list }}
{{- $topologies := list }}
{{- $folders := list }}
{{- $pathsOf := dict }}
{{- range $at, $router := default (list (dict "only" true "address" .Values.router.address "port" .Values.router.port "nvmeAddress" .Values.router.nvmeAddress "profile" .Values.router.profile "basePaths" .Values.router.basePaths)) $several }}
{{- $where := ternary "router" (printf "config.routers[%d]" $at) (hasKey $router "only") }}
{{- range $key, $count := dict "address" "one" "nvmeAddress" "several" }}
{{- $problems = concat $problems (include "rds-csi.addressProblems" (list (printf "%s.%s" $where $key) (get $router $key) $count) | fromJsonArray) }}
{{- end }}
{{- $problems = concat $problems (include "rds-csi.profileProblems" (list (printf "%s.profile" $where) $router.profile) | fromJsonArray) }}
{{- $paths := default (list "/storage-pool/metal-csi") $router.basePaths }}
{{- $_ := set $pathsOf (default "" $router.name) $paths }}
{{- if $router.default }}
{{- $_ := set $pathsOf "" $paths }}
{{- end }}
{{- range $paths }}
{{- $own := dict "address" (printf "%v port %v" $router.address (default 22 $router.port)) "path" . "where" $where }}
{{- range $folders }}
{{- if and (eq .address $own.address) (or (hasPrefix (print .path "/") (print $own.path "/")) (hasPrefix (print $own.path "/") (print .path "/"))) }}
{{- $problems = append $problems (printf "%s.basePaths has %s, and %s.basePaths has %s of the same router: use folders apart from each other" $where $own.path .where .path) }}
{{- end }}
{{- end }}
{{- $folders = append $folders $own }}
{{- end }}
{{- range $key, $most := dict "settleTime" 3600 "unexportGrace" 300 }}
{{- if gt (include "rds-csi.seconds" (default "" (get $router $key)) | float64) (float64 $most) }}
{{- $problems = append $problems (printf "%s.%s %q is above the maximum: use at most %dm" $where $key (get $router $key) (div $most 60)) }}
{{- end }}
{{- end }}
{{- if not (hasKey $router "only") }}
{{- $names = append $names $router.name }}
{{- if $router.default }}
{{- $defaults = append $defaults $router.name }}
{{- end }}
{{- $problems = concat $problems (include "rds-csi.topologyProblems" (list $where $router.topology) | fromJsonArray) }}
{{- $topologies = append $topologies (default dict $router.topology | keys | sortAlpha | join ", ") }}
{{- $keys := include "rds-csi.secretKeys" (list $ $router) | fromYaml }}
{{- $given := default dict $router.secretKeys }}
{{- if and $router.keyFile $router.passwordFile }}
{{- $problems = append $problems (printf "%s has both keyFile and passwordFile: leave one of them out" $where) }}
{{- else if and $given.privateKey $given.password }}
{{- $problems = append $problems (printf "%s.secretKeys has both privateKey and password: leave one of them out" $where) }}
{{- else if not (or $router.keyFile $router.passwordFile $router.existingSecret) }}
{{- $problems = append $problems (printf "%s has nothing to log in with: set existingSecret, or else keyFile or passwordFile" $where) }}
{{- else if not (or $router.keyFile $router.passwordFile $keys.privateKey $keys.password) }}
{{- $problems = append $problems (printf "%s.secretKeys names no entry to log in with: set privateKey or password" $where) }}
{{- end }}
{{- if not (or $router.hostKeys $router.existingSecret) }}
{{- $problems = append $problems (printf "%s has no host key: set existingSecret, or else hostKeys" $where) }}
{{- end }}
{{- end }}
{{- end }}
{{- if ne (len $names) (len (uniq $names)) }}
{{- $problems = append $problems (printf "config.routers has two routers of one name: %s" (join ", " $names)) }}
{{- end }}
{{- if gt (len $defaults) 1 }}
{{- $problems = append $problems (printf "only one router of config.routers can be the default: %s" (join ", " $defaults)) }}
{{- end }}
{{- if gt (len (uniq $topologies)) 1 }}
{{- $problems = append $problems "the routers of config.routers have different topologies: once one has any, each needs one with the same keys" }}
{{- end }}
{{- /* Where routers have a topology, it decides for a class without a router. */}}
{{- if without $topologies "" }}
{{- $all := list }}
{{- range $folders }}
{{- $all = append $all .path }}
{{- end }}
{{- $_ := set $pathsOf "" (uniq $all) }}
{{- end }}
{{- $problems = concat $problems (include "rds-csi.backendProblems" (list $ $names $pathsOf) | fromJsonArray) }}
{{- if .Values.directory.enabled }}
{{- $problems = concat $problems (include "rds-csi.addressProblems" (list "directory.router.address" .Values.directory.router.address "one") | fromJsonArray) }}
{{- $address := printf "%v port %v" (default .Values.router.address .Values.directory.router.address) (default .Values.router.port .Values.directory.router.port) }}
{{- $shares := list }}
{{- range .Values.directory.basePaths }}
{{- $path := . }}
{{- $share := index (splitList "/" .) 1 }}
{{- range $.Values.directory.basePaths }}
{{- if and (ne . $path) (hasPrefix (print $path "/") .) }}
{{- $problems = append $problems (printf "directory.basePaths has %s inside %s: use folders apart from each other" . $path) }}
{{- end }}
{{- end }}
{{- $shares = append $shares $share }}
{{- range $folders }}
{{- if and (eq .address $address) (eq (index (splitList "/" .path) 1) $share) }}
{{- $problems = append $problems (printf "directory.basePaths has %s, on the pool of %s in %s.basePaths: whoever reaches the NFS server could write to volumes, so share a pool of its own" $path .path .where) }}
{{- end }}
{{- end }}
{{- end }}
{{- if gt (len (uniq $shares)) 1 }}
{{- $problems = append $problems (printf "directory.basePaths has folders of several shares, and may have those of one: %s" (join ", " (uniq $shares))) }}
{{- end }}
{{- end }}
{{- $groups := list }}
{{- $selectors := list }}
{{- range .Values.node.groups }}
{{- if has .name $groups }}
{{- $problems = append $problems (printf "node.groups has two groups of one name: %s" .name) }}
{{- else if has (toJson .nodeSelector) $selectors }}
{{- $problems = append $problems (printf "node.groups has two groups with the nodeSelector of %s: a node would run the driver twice" .name) }}
{{- end }}
{{- $problems = concat $problems (include "rds-csi.topologyProblems" (list (printf "the group %s of node.groups" .name) .topology) | fromJsonArray) }}
{{- $groups = append $groups .name }}
{{- $selectors = append $selectors (toJson .nodeSelector) }}
{{- end }}
{{- toJson $problems }}
{{- end }}

{{- /* Call with (list name topology). */}}
{{- define "rds-csi.topologyProblems" -}}
{{- $problems := list }}
{{- range $key, $value := index . 1 }}
{{- if not (and (regexMatch "^([a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$" $key) (regexMatch "^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$" $value)) }}
{{- $problems = append $problems (printf "the topology of %s has %q: %q, which is no label of Kubernetes" (index $ 0) $key $value) }}
{{- end }}
{{- end }}
{{- toJson $problems }}
{{- end }}

{{- /* The classes whose router or folder there is not: call with (list $ names pathsOf), the folders by the router's name, and by "" those of the default one. */}}
{{- define "rds-csi.backendProblems" -}}
{{- $root := index . 0 }}
{{- $problems := list }}
{{- $names := index . 1 }}
{{- $pathsOf := index . 2 }}
{{- if not $names }}
{{- $names = list "default" }}
{{- range $root.Values.controller.extraArgs }}
{{- if regexMatch "^--?backend=" . }}
{{- $names = list (regexReplaceAll "^--?backend=" . "") }}
{{- else if regexMatch "^--?(base-path|rds-volume-base-path)=" . }}
{{- $_ := set $pathsOf "" (append (get $pathsOf "") (regexReplaceAll "^[^=]*=" . "")) }}
{{- end }}
{{- end }}
{{- $_ := set $pathsOf (first $names) (get $pathsOf "") }}
{{- end }}
{{- range $root.Values.storageClasses }}
{{- $backend := get (default dict .parameters) "backend" | toString }}
{{- $folder := get (default dict .parameters) "volumePath" | toString }}
{{- if and (not $backend) (not (hasKey $pathsOf "")) }}
{{- $problems = append $problems (printf "the StorageClass %s names no router, and none of config.routers is the default: set the parameter backend, or default: true on a router" .name) }}
{{- else if and $backend (not (has $backend $names)) }}
{{- $problems = append $problems (printf "the StorageClass %s has the parameter backend: %s, and the routers are %s" .name $backend (join ", " $names)) }}
{{- else if and $folder (not (has $folder (get $pathsOf $backend))) }}
{{- $problems = append $problems (printf "the StorageClass %s has the parameter volumePath: %s, and the router's basePaths are %s" .name $folder (join ", " (get $pathsOf $backend))) }}
{{- end }}
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
