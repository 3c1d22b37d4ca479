#!/bin/sh
# Prints the Debian packages that are missing here, of those that the product runs (in its image) or its tests use.
# usage: get-packages.sh [--install] [test]     test: only those without which `make test` skips something
set -eu
install=
[ "${1:-}" != --install ] || { install=1; shift; }

wanted='ca-certificates make git bash dash sed coreutils diffutils procps openssl openssh-client mount util-linux dmsetup
  e2fsprogs xfsprogs btrfs-progs nvme-cli nfs-common cryptsetup-bin jq zsh fish prometheus busybox-static'
if [ "${1:-}" != test ]; then
  # Pictures of the status page; another processor's executable; guests and clusters; images.
  wanted="$wanted chromium fonts-dejavu-core qemu-user-static libgcc-s1-arm64-cross
    qemu-system-x86 binutils xz-utils zstd kmod socat iproute2 nfs-kernel-server
    skopeo buildah"
fi

missing=
for name in $wanted; do
  dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q '^install ok installed$' || missing="$missing $name"
done
[ -n "$missing" ] || exit 0
if [ -z "$install" ]; then
  echo "${missing# }"
  exit
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $missing >/dev/null
