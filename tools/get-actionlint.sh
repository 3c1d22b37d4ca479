#!/bin/sh
# Prints the path of actionlint, of exactly this version from the cache, where the Go module proxy brings it once. Prints
# nothing where there is neither it nor Go.
set -eu
version=v1.7.7
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rds-csi/actionlint-$version
if [ ! -x "$cache/actionlint" ] && command -v go >/dev/null; then
  mkdir -p "$cache"
  GOBIN=$cache nice -n 15 go install "github.com/rhysd/actionlint/cmd/actionlint@$version" >&2 || true
fi
[ ! -x "$cache/actionlint" ] || echo "$cache/actionlint"
