#!/bin/sh
# Makes the root file system of the image: the pinned Debian packages, unpacked beside each other. Nothing of them runs,
# so it makes that of any architecture. The one way to make it: of the Dockerfile, of `make image` and of the tests.
# usage: make-root.sh amd64|arm64 LOCK ROOT [CACHE]      ROOT is made; packages are kept in CACHE.
# Needs dpkg-deb, and apt's helper for packages that are not in CACHE yet. DEBIAN_MIRROR is where the archive is.
set -eu
architecture=$1 lock=$2 root=$3 cache=${4:-}
umask 022
if [ -z "$cache" ]; then
  cache=$(mktemp -d)
  trap 'rm -rf "$cache"' EXIT
fi
mkdir -p "$cache"
grep "^$architecture " "$lock" >"$cache/list.$$" || { echo "no package of $architecture is in $lock" >&2; exit 1; }

# What is missing, in one call: URI, file and digest of each.
set --
while read -r _ digest path; do
  [ -f "$cache/$digest.deb" ] ||
    set -- "$@" "${DEBIAN_MIRROR:-http://deb.debian.org}/$path" "$cache/$digest.$$" "SHA256:$digest"
done <"$cache/list.$$"
if [ $# -gt 0 ]; then
  # As another user apt could not write into the cache.
  /usr/lib/apt/apt-helper -qq -o APT::Sandbox::User= -o Acquire::Retries=3 download-file "$@" || {
    rm -f "$cache"/*."$$"
    echo "Cannot download the pinned packages: the mirror has dropped what it has a successor of. Run make image/pins." >&2
    exit 1
  }
fi

mkdir -p "$root/usr"
# Debian has merged these into /usr: packages of before write through the links.
for name in bin sbin lib lib64; do
  mkdir "$root/usr/$name"
  ln -s "usr/$name" "$root/$name"
done
mkdir -p "$root/var/lib/dpkg/status.d"
while read -r _ digest path; do
  deb=$cache/$digest.deb
  [ ! -f "$cache/$digest.$$" ] || mv "$cache/$digest.$$" "$deb"
  echo "$digest  $deb" | sha256sum --check --status || { echo "$deb is damaged: remove it" >&2; exit 1; }
  dpkg-deb --fsys-tarfile "$deb" >"$cache/tar.$$"
  tar --extract --file="$cache/tar.$$" --keep-directory-symlink --no-same-owner --preserve-permissions --directory="$root"
  # By these, scanners know what is inside; the database of dpkg itself would need dpkg.
  dpkg-deb --field "$deb" >"$root/var/lib/dpkg/status.d/$(dpkg-deb --field "$deb" Package)"
done <"$cache/list.$$"
rm -f "$cache/list.$$" "$cache/tar.$$"

# What nothing in a container reads. Of the documentation, the licences stay.
cd "$root"
rm -rf usr/share/man usr/share/locale usr/share/info usr/share/bash-completion usr/share/zsh usr/share/lintian \
  usr/share/bug usr/share/base-files usr/share/polkit-1 usr/share/initramfs-tools usr/lib/*/gconv usr/lib/systemd \
  usr/lib/udev usr/lib/tmpfiles.d usr/lib/dracut etc/cron* etc/init.d etc/default etc/rc*.d etc/update-motd.d \
  etc/pam.d etc/systemd etc/logrotate.d
# Services of NFS before version 4, and of Kerberos: a node only mounts.
rm -rf usr/sbin/rpc.* usr/sbin/blkmapd usr/sbin/sm-notify usr/sbin/start-statd usr/sbin/showmount etc/request-key.d
find usr/share/doc -type f ! -name copyright -delete
find usr/share/doc -type d -empty -delete
# Nobody in the container may become somebody else.
find . -type f -perm /6000 -exec chmod ug-s {} +

# What maintainer scripts would have made, as far as anything here reads it.
cat >etc/passwd <<END
root:x:0:0:root:/root:/usr/sbin/nologin
rds-csi:x:65532:65532:rds-csi:/:/usr/sbin/nologin
END
printf 'root:x:0:\nrds-csi:x:65532:\n' >etc/group
printf 'passwd: files\ngroup: files\nhosts: files dns\n' >etc/nsswitch.conf
# Where a container is given folders, and the executable: a read-only root file system has room for both.
mkdir -p csi etc/rds-csi var/lib/kubelet usr/lib/modules proc sys dev tmp run
ln -s /run var/run
: >usr/bin/rds-csi
