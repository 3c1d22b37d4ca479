#!/bin/sh
# Writes deploy/image/packages.lock anew: what deploy/image/packages comes to in Debian's archive today, a line for each
# file. Needs apt and Debian's keyring, not root. DEBIAN_MIRROR is where the archive is.
set -eu
cd "$(dirname "$0")/../../deploy/image"
# And what Debian is, for scanners; and a shell, by which people send signals to the driver.
packages="base-files dash $(cat packages)"
mirror=${DEBIAN_MIRROR:-http://deb.debian.org}
signed="[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/lists/partial" "$scratch/cache/archives/partial"
cat >"$scratch/sources.list" <<END
deb $signed $mirror/debian bookworm main
deb $signed $mirror/debian bookworm-updates main
deb $signed $mirror/debian-security bookworm-security main
END

# Depended on only by maintainer scripts, which do not run, by logins, of which there are none, by xfs_scrub, which the driver
# does not run, and by services and plugins of NFS, of which mounting needs none. apt takes them for installed.
left_out='adduser debconf dpkg init-system-helpers keyutils libicu72 libldap-2.5-0 login logsave lsb-base mawk passwd \
python3 rpcbind sysvinit-utils tar ucf usr-is-merged uuid-runtime'

echo '# Written by `make image/pins`: architecture, SHA-256, and where the mirror has the package.' >"$scratch/lock"
for architecture in amd64 arm64; do
  for name in $left_out; do
    printf 'Package: %s\nStatus: install ok installed\nVersion: 9:9999\nMulti-Arch: allowed\nArchitecture: %s\n' "$name" "$architecture"
    case $name in
      mawk) echo 'Provides: awk' ;;
      debconf) echo 'Provides: debconf-2.0' ;;
    esac
    echo
  done >"$scratch/status"
  apt_get() {
    apt-get -qq -o Dir::Etc::SourceList="$scratch/sources.list" -o Dir::Etc::SourceParts=/dev/null \
      -o Dir::State::Lists="$scratch/lists" -o Dir::State::status="$scratch/status" -o Dir::Cache="$scratch/cache" \
      -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o Acquire::Languages=none \
      -o Acquire::ForceHash=SHA256 -o APT::Sandbox::User= "$@"
  }
  apt_get update
  # Each line is 'URI' FILE SIZE SHA256:DIGEST.
  # shellcheck disable=SC2086
  apt_get --yes --no-install-recommends --print-uris install $packages >"$scratch/uris"
  sed "s,^'$mirror/\([^']*\)' [^ ]* [0-9]* SHA256:\([0-9a-f]*\)\$,$architecture \2 \1," "$scratch/uris" | LC_ALL=C sort -k 3 >>"$scratch/lock"
done
cat "$scratch/lock" >packages.lock
