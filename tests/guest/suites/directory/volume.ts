import type { NodeRpcs } from "../../../../src/csi/generated/csi.ts";
import { codeOf, type CsiClients } from "../../../../src/csi/server/client.ts";
import type { Guest } from "../../kit/guest.ts";

/** The driver's folder of shares on a node. */
const sharesFolder = "/var/lib/kubelet/plugins/rds-directory.csi.srvlab.io/state/mounts";

const callMs = 100_000;

/** How long a kubelet's call may fail before the test does. */
const retryMs = 180_000;

/** Makes a call again and again, as a kubelet does, while a busy machine takes too long for it. */
export async function patiently(call: () => Promise<void>): Promise<void> {
  const until = performance.now() + retryMs;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const passes = ["ABORTED", "DEADLINE_EXCEEDED", "UNAVAILABLE"].includes(codeOf(error) ?? "");
      if (!passes || performance.now() > until) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}

/** A shared directory on one node, as a kubelet uses it. */
export class DirectoryVolume {
  readonly id: string;
  readonly target: string;
  readonly #context: Readonly<Record<string, string>>;

  /** @param context the volume context without the address */
  constructor(id: string, context: Readonly<Record<string, string>>) {
    this.id = id;
    this.target = `/var/lib/kubelet/pods/${id}/mount`;
    this.#context = context;
  }

  async publish({ node }: CsiClients, readonly = false, targetPath = this.target): Promise<void> {
    await node.call("NodePublishVolume", { ...this.#request(), targetPath, readonly }, callMs);
  }

  async unpublish({ node }: CsiClients, targetPath = this.target): Promise<void> {
    await node.call("NodeUnpublishVolume", { volumeId: this.id, targetPath }, callMs);
  }

  async stats({ node }: CsiClients): Promise<NodeRpcs["NodeGetVolumeStats"]["response"]> {
    return await node.call("NodeGetVolumeStats", { volumeId: this.id, volumePath: this.target }, callMs);
  }

  /** The reasons of its problems. */
  async problems({ node }: CsiClients): Promise<readonly string[]> {
    const request = { volumeId: this.id, volumePublishPath: this.target };
    const { volumeHealth } = await node.call("NodeGetVolumeHealth", request, callMs);
    return volumeHealth!.healthStatuses.map(({ reason }) => reason);
  }

  #request() {
    return {
      volumeId: this.id,
      volumeContext: this.#context,
      volumeCapability: {
        mount: { fsType: "", mountFlags: [] },
        accessMode: { mode: "MULTI_NODE_MULTI_WRITER" as const },
      },
    };
  }
}

/**
 * The NFS mounts of a guest. A folder that is bound over itself, as the kubelet's, shows everything in it twice.
 */
export async function nfsMounts(guest: Guest): Promise<readonly (readonly [source: string, path: string])[]> {
  const text = await guest.sh(
    `sed -n 's/^[^ ]* [^ ]* [^ ]* [^ ]* \\([^ ]*\\) .* - nfs4 \\([^ ]*\\) .*/\\2 \\1/p' /proc/self/mountinfo`,
  );
  const lines = new Set(text.split("\n").filter((line) => line !== ""));
  return [...lines].map((line) => line.split(" ") as [string, string]);
}

/** The sources of the mounted shares. */
export async function shares(guest: Guest): Promise<readonly string[]> {
  const mounts = await nfsMounts(guest);
  return mounts.filter(([, path]) => path.startsWith(`${sharesFolder}/`)).map(([source]) => source);
}
