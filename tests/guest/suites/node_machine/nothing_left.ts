import assert from "node:assert/strict";
import { join } from "node:path";
import { driverName } from "../../../cluster/kit/driver.ts";
import { leftOnRouter } from "../../../cluster/kit/nothing_left.ts";
import { paths } from "../../../cluster/kit/objects.ts";
import { until } from "../../../cluster/kit/waiting.ts";
import type { MachineCluster } from "../../machine/cluster.ts";
import { sharedPool } from "../../machine/router.ts";

/** Longest until the kubelet has cleaned up behind pods, in seconds. */
const cleanSeconds = 180;

const kubeletFolder = "/var/lib/kubelet/plugins";

/**
 * What of volumes is on a node, a line each: mounts, connections, maps, loop devices, state of drivers and kubelet. Of a driver
 * that stages nothing, as that of shared directories, Kubernetes 1.36 leaves an empty `globalmount` of each volume behind: its
 * kubelet makes it, and skips its removal because it has not saved whose it is. What a node knows of contents stays on purpose,
 * because nobody tells it that a volume was deleted.
 */
const listing = `
grep -E 'kubernetes.io~csi|kubernetes.io/csi|pvc-' /proc/self/mountinfo
ls /sys/class/nvme
losetup --list --noheadings
dmsetup ls | grep -v '^No devices found$'
find ${kubeletFolder}/*/state -type f ! -name lock ! -path '*/known/*'
find ${kubeletFolder}/kubernetes.io/csi -mindepth 2 '(' ! -type d -o -path '*/${driverName}/*/globalmount' ')'
:`;

interface RouterState {
  readonly exports: readonly string[];
  readonly subvolumes: readonly { readonly fullname: string }[];
  readonly partial: readonly string[];
}

/** Asserts that with its claims everything of the driver's has gone: from the API, from the nodes, and from the router. */
export async function assertNothingLeft(cluster: MachineCluster, signal: AbortSignal): Promise<string> {
  for (const path of [paths.attachments, paths.volumes, paths.snapshotContents]) {
    assert.deepEqual((await cluster.api.list(path)).map(({ metadata }) => metadata.name), [], path);
  }
  for (const { guest } of cluster.nodes) {
    await until(`${guest.name} to be as it was`, async () => await guest.sh(listing) === "", {
      limitSeconds: cleanSeconds,
      everyMs: 1000,
      signal,
      state: () => guest.sh(listing),
    });
  }
  const { router } = cluster;
  assert.deepEqual(await leftOnRouter(router), []);
  const { exports, subvolumes, partial } = await router.control<RouterState>("/state");
  // The folder for volumes is one itself, and stays.
  const inside = subvolumes.map(({ fullname }) => fullname).filter((name) => name !== "metal-csi");
  assert.deepEqual({ exports, inside, partial }, { exports: [], inside: [], partial: [] });
  assert.equal(await router.servedByKernel(), "");
  assert.deepEqual(await router.violations(), [], "the driver broke a rule of the router's");
  assert.deepEqual(await cluster.fallen(), []);
  return "no attachment, mount, connection, map, state; no export, disk, file, subvolume";
}

/** Asserts that no node has a directory mounted, and that the router's share is empty. */
export async function assertNoDirectoryLeft(cluster: MachineCluster, signal: AbortSignal): Promise<string> {
  for (const { guest } of cluster.nodes) {
    const mounts = () => guest.sh("grep ' nfs4 ' /proc/mounts || :");
    await until(`${guest.name} to have no directory mounted`, async () => await mounts() === "", {
      limitSeconds: cleanSeconds,
      everyMs: 1000,
      signal,
      state: mounts,
    });
  }
  const share = join(cluster.router.backing, "files", sharedPool);
  const left = () => cluster.router.sh('find "$1" -mindepth 2', share);
  await until("the router to have removed all directories", async () => await left() === "", {
    limitSeconds: cleanSeconds,
    everyMs: 1000,
    signal,
    state: left,
  });
  return "no directory";
}
