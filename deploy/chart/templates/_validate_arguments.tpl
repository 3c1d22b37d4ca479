{{- /* The flags that extraArgs add: each has to be one of the command's, on one line with its value, and not the chart's own. */}}
{{- define "rds-csi.argumentProblems" -}}
{{- $problems := list }}
{{- $serve := list "add_dir_header" "alsologtostderr" "attachment-grace-period" "attachment-reconcile-interval" "audit-interval" "backend" "base-path" "cluster-id" "config" "connector" "controller" "device-layer" "driver-name" "enable-orphan-reconciler" "enable-vmi-serialization" "endpoint" "fence-interval" "fence-settle-time" "fstrim-interval" "health-interval" "kind" "known-node" "kubeconfig" "kubelet-endpoint" "kubelet-path" "kubernetes" "leader-election" "lease-identity" "lease-namespace" "log-format" "log-level" "log_backtrace_at" "log_dir" "log_file" "log_file_max_size" "logtostderr" "loop-backing" "max-volumes-per-node" "metrics-address" "migration-pairs" "mode" "names-on-router" "node" "node-id" "nqn-prefix" "nvme-address" "nvme-port" "one_output" "orphan-check-interval" "orphan-delete-older-than" "orphan-dry-run" "orphan-grace-period" "overcommit" "rds-address" "rds-host-key" "rds-insecure-skip-verify" "rds-key" "rds-key-file" "rds-password-file" "rds-port" "rds-user" "rds-volume-base-path" "reconcile" "reconcile-grace" "reconcile-interval" "register" "router-profile" "settle-time" "skip_headers" "skip_log_headers" "startup-taint" "state-dir" "status-address" "stderrthreshold" "topology" "unexport-grace" "v" "vmi-cache-ttl" "vmodule" "volume-metrics" }}
{{- $simulator := list "authorized-key" "backing" "base-path" "behaviour" "cluster-hash" "control-listen" "control-port" "exporter" "host-key" "json" "listen" "nvme-listen" "nvme-port" "nvmet-folder" "password" "pool" "profile" "replay" "seed-disks" "ssh-port" "timing-scale" "user" }}
{{- $ofRouters := list "base-path" "nvme-address" "nvme-port" "overcommit" "rds-address" "rds-host-key" "rds-key" "rds-key-file" "rds-password-file" "rds-port" "rds-user" "rds-volume-base-path" "router-profile" "settle-time" "unexport-grace" }}
{{- $chartOwn := list "mode" "kind" "controller" "node" "endpoint" "driver-name" "register" "kubelet-path" "state-dir" "metrics-address" "config" "kubernetes" "leader-election" }}
{{- $directories := .Values.directory.enabled }}
{{- $groups := list (list "controller.extraArgs" "rds-csi serve" $serve .Values.controller.extraArgs) (list "node.extraArgs" "rds-csi serve" $serve .Values.node.extraArgs) }}
{{- $groups = append $groups (list "directory.controllerArgs" "rds-csi serve" $serve (ternary .Values.directory.controllerArgs list $directories)) }}
{{- $groups = append $groups (list "directory.nodeArgs" "rds-csi serve" $serve (ternary .Values.directory.nodeArgs list $directories)) }}
{{- $groups = append $groups (list "simulator.extraArgs" "rds-csi simulator" $simulator (ternary .Values.simulator.extraArgs list .Values.simulator.enabled)) }}
{{- range $groups }}
{{- $where := index . 0 }}
{{- $command := index . 1 }}
{{- $known := index . 2 }}
{{- range index . 3 }}
{{- $name := regexReplaceAll "^--?([^=]*)(?s:.*)$" . "${1}" }}
{{- if regexMatch "\\s" $name }}
{{- $problems = append $problems (printf "%s has %q: write a flag with its value behind =, such as --log-level=debug" $where .) }}
{{- else if not (has $name $known) }}
{{- $problems = append $problems (printf "%s has %q, which is no flag of %s: `%s --help` lists them" $where . $command $command) }}
{{- else if and (eq $command "rds-csi serve") (has $name $chartOwn) }}
{{- $problems = append $problems (printf "%s has %q, which the chart sets: leave it out" $where .) }}
{{- else if and (eq $where "controller.extraArgs") $.Values.config.routers (has $name $ofRouters) }}
{{- $problems = append $problems (printf "%s has %q, which belongs to each router: set it in config.routers" $where .) }}
{{- end }}
{{- end }}
{{- end }}
{{- toJson $problems }}
{{- end }}
