#!/bin/sh
# Checks .github/workflows by actionlint.
set -eu
cd "$(dirname "$0")/.."
actionlint=$(tools/get-actionlint.sh || true)
if [ -z "$actionlint" ]; then
  echo "SKIPPED: the workflows need actionlint, and there is neither it nor Go with its module proxy"
  exit 0
fi
exec "$actionlint" -shellcheck= -pyflakes= .github/workflows/*.yml
