#!/bin/sh
# Prints the path of a Helm that renders the chart: of exactly this version from the cache, where --build puts it by way
# of the Go module proxy (minutes, once), else a Helm 3 of the PATH. Prints nothing when there is none. helm-docs, which
# writes the chart's README, is built beside it, and printed instead with --docs.
set -eu
version=v3.22.0
docs_version=v1.14.2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rds-csi/helm-$version
if [ "${1:-}" = --build ] && command -v go >/dev/null; then
  mkdir -p "$cache"
  [ -x "$cache/helm" ] ||
    (cd "$cache" && GOBIN=$cache nice -n 15 go install "helm.sh/helm/v3/cmd/helm@$version" >&2)
  [ -x "$cache/helm-docs" ] ||
    (cd "$cache" && GOBIN=$cache nice -n 15 go install "github.com/norwoodj/helm-docs/cmd/helm-docs@$docs_version" >&2)
fi
if [ "${1:-}" = --docs ]; then
  [ ! -x "$cache/helm-docs" ] || echo "$cache/helm-docs"
  exit
fi
if [ -x "$cache/helm" ]; then
  echo "$cache/helm"
  exit
fi
helm=$(command -v helm || true)
case $([ -z "$helm" ] || "$helm" version --short 2>/dev/null) in
  v3.*) echo "$helm" ;;
esac
