#!/bin/sh
# Compares proto/csi.proto (or FILE) with the published definition, which comes as a Go module and is not kept here.
# usage: verify.sh [FILE]
set -eu
if ! command -v go >/dev/null; then
  echo "SKIPPED: Go is not here, so csi.proto was NOT compared with the published definition" >&2
  exit 0
fi
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
ours=${1:-$here/../../proto/csi.proto}
ours=$(CDPATH= cd -- "$(dirname -- "$ours")" && pwd)/$(basename -- "$ours")
cd "$here/verify"
module=github.com/container-storage-interface/spec
go mod download "$module"
exec go run . -ours "$ours" -published "$(go list -m -f '{{.Dir}}' "$module")/csi.proto"
