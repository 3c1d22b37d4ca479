import type { Guest } from "./guest.ts";

/** How long a client that is gone keeps its locks, in seconds. */
const leaseSeconds = 10;
/** How long a server that has rebooted waits for clients that claim their locks, in seconds: half of the usual. */
export const rebootGraceSeconds = 45;

/** Folder of the guest that clients see as /pool. */
export const poolFolder = "/srv/pool";

/**
 * Makes the guest an NFSv4 server of the kernel with one disk, like a router: it exports the disk as /pool below a root
 * that has nothing else. After a power cut it is started again in the same way.
 *
 * @param disk its device; an empty one gets a file system
 * @param graceSeconds how long it waits for clients of an earlier boot that claim their locks
 */
export async function startNfsServer(guest: Guest, disk: string, graceSeconds = leaseSeconds): Promise<void> {
  await guest.sh(
    `set -e
    mkdir -p ${poolFolder}
    blkid -p "$disk" > /tmp/found || mkfs.ext4 -q "$disk"
    mount "$disk" ${poolFolder}
    # What the server remembers of its clients over a reboot.
    mkdir -p ${poolFolder}/.clients /var/lib/nfs
    ln -sfn ${poolFolder}/.clients /var/lib/nfs/v4recovery`,
    { env: { disk } },
  );
  await serveNfs(guest, [
    "/srv *(rw,no_root_squash,fsid=0,no_subtree_check,insecure)",
    `${poolFolder} *(rw,no_root_squash,fsid=11,no_subtree_check,insecure,sync)`,
  ], graceSeconds);
}

/** Starts the kernel's NFSv4 server with these lines of exports(5); one of them has the root, `fsid=0`. */
export async function serveNfs(
  guest: Guest,
  exports: readonly string[],
  graceSeconds = leaseSeconds,
): Promise<void> {
  await guest.sh(
    `set -e
    modprobe nfsd
    mkdir -p /var/lib/nfs
    [ -e /var/lib/nfs/v4recovery ] || mkdir /var/lib/nfs/v4recovery
    mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
    echo ${leaseSeconds} > /proc/fs/nfsd/nfsv4leasetime
    echo ${graceSeconds} > /proc/fs/nfsd/nfsv4gracetime
    printf '%s\n' "$exports" > /etc/exports
    touch /var/lib/nfs/etab /var/lib/nfs/rmtab
    rpc.mountd -N 2 -N 3 > /dev/null 2>&1 < /dev/null
    exportfs -ra
    rpc.nfsd -N 3 4`,
    { env: { exports: exports.join("\n") } },
  );
}

/** The clients that the server knows, as the kernel describes them. */
export async function nfsClients(guest: Guest): Promise<readonly string[]> {
  const text = await guest.sh(
    `for file in /proc/fs/nfsd/clients/*/info; do sed -n 's/^name: //p' $file; done`,
  );
  return text.split("\n").filter((line) => line !== "");
}
