import { basename, join } from "node:path";
import type { ControlPlane } from "../../cluster/kit/control_plane.ts";
import type { Guest, GuestOptions } from "../kit/guest.ts";
import { makeImmutable, preloaded } from "./immutable.ts";
import { kubeletPort, MachineKubelet } from "./kubelet.ts";
import { openNetwork } from "./network.ts";
import { rootBytes, rootName } from "./root_disk.ts";
import { MachineRuntime } from "./runtime.ts";

/** What a machine is: `immutable` is one whose root is read-only and lacks tools. */
export type MachineKind = "default" | "immutable";

/** How long a guest with a part in a cluster may live, in seconds: longer than any suite, which ends it. */
export const machineSeconds = 6 * 60 * 60;

/**
 * How a guest is started that becomes a node.
 *
 * @param disk of {@linkcode ensureRootDisk}
 * @param cpus one for each of several nodes: processors of one guest that the host cannot run at the same time wait for
 *   each other until the kernel reports a lockup
 */
export function machineOptions(disk: string, cpus: 1 | 2, kind: MachineKind = "default"): GuestOptions {
  return {
    memoryMiB: 4096,
    cpus,
    disks: [{ name: rootName, sizeBytes: rootBytes, copyOf: disk }],
    root: rootName,
    reachesHost: true,
    ports: [kubeletPort],
    // The kubelet has a raw block volume through a loop device; systemd would load that when it is asked for.
    modules: ["nvme-tcp", "loop", ...kind === "immutable" ? preloaded : []],
    limitSeconds: machineSeconds,
  };
}

/** A guest that is a node of a cluster, as a user's machine is: containerd, runc and a kubelet, and nothing of the driver's. */
export class MachineNode {
  readonly guest: Guest;
  readonly runtime: MachineRuntime;
  readonly kubelet: MachineKubelet;
  readonly #plane: ControlPlane;
  readonly #kind: MachineKind;

  /** @param kubelet the program, on the host */
  constructor(guest: Guest, plane: ControlPlane, kind: MachineKind, kubelet: string) {
    this.guest = guest;
    this.runtime = new MachineRuntime(guest);
    this.kubelet = new MachineKubelet(guest, plane, kubelet);
    this.#plane = plane;
    this.#kind = kind;
  }

  /** Starts all of it, after the guest was booted; the node is ready when this ends. */
  async start(signal: AbortSignal): Promise<void> {
    if (this.#kind === "immutable") await makeImmutable(this.guest);
    await openNetwork(this.guest, Number(new URL(this.#plane.api.access.url).port));
    await this.runtime.start();
    await this.kubelet.configure();
    await this.kubelet.start(signal);
  }

  /** Gives it an image out of an archive of the host. */
  async importImage(archive: string): Promise<void> {
    const shared = join(this.guest.folder, "host", basename(archive));
    await Deno.copyFile(archive, shared);
    await this.runtime.importImage(`/host/${basename(archive)}`);
    await Deno.remove(shared);
  }
}
