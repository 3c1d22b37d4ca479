#!/bin/sh
# Compares the files of proto/ with the published definitions, which come as Go modules and are not kept here.
# usage: verify.sh [FILE]: only FILE, instead of proto/csi.proto
set -eu
if ! command -v go >/dev/null; then
  echo "SKIPPED: Go is not here, so the files of proto/ were NOT compared with the published definitions" >&2
  exit 0
fi
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
ours=${1:-$here/../../proto/csi.proto}
ours=$(CDPATH= cd -- "$(dirname -- "$ours")" && pwd)/$(basename -- "$ours")
cd "$here/verify"
published() {
  go mod download "$1"
  go list -m -f '{{.Dir}}' "$1"
}
spec=$(published github.com/container-storage-interface/spec)
go run . -ours "$ours" -published "$spec/csi.proto"
[ $# = 0 ] || exit 0
kubelet=$(published k8s.io/kubelet)
exec go run . -ours "$here/../../proto/pluginregistration.proto" \
  -published "$kubelet/pkg/apis/pluginregistration/v1/api.proto"
