import type { ServiceClient } from "../../src/csi/server/client.ts";
import type { ControllerRpcs, IdentityRpcs, NodeRpcs } from "../../src/csi/generated/csi.ts";

/** What calls a driver, be it once or until it is answered. */
export interface Callers {
  readonly identity: Pick<ServiceClient<IdentityRpcs>, "call">;
  readonly controller: Pick<ServiceClient<ControllerRpcs>, "call">;
  readonly node: Pick<ServiceClient<NodeRpcs>, "call">;
}

/** Who is called, and where a node may stage. */
export interface LivesOptions {
  readonly clients: Callers;
  readonly nodeId: string;
  /** Folder for staging and target paths; undefined leaves the node's half out. */
  readonly nodeFolder: string | undefined;
}

/** Of so many lives one is staged on the node too: that runs tools, and takes ten times as long. */
const stagedEvery = 20;

const gibibyte = 1n << 30n;
const capability = { mount: { fsType: "ext4" }, accessMode: { mode: "SINGLE_NODE_WRITER" } } as const;

/** Takes volumes through their lives, one after the other, with the calls that a cluster makes beside them. */
export class Lives {
  readonly #options: LivesOptions;
  #calls = 0;
  #lives = 0;

  constructor(options: LivesOptions) {
    this.#options = options;
  }

  /** Calls that were answered. */
  get calls(): number {
    return this.#calls;
  }

  /** Begins another life until `isEnough`. */
  async run(isEnough: () => boolean): Promise<void> {
    while (!isEnough()) await this.#live(this.#lives++);
  }

  async #live(number: number): Promise<void> {
    const { clients: { identity, controller }, nodeId, nodeFolder } = this.#options;
    const name = `soak-${number}`;
    await this.#count(identity.call("Probe", {}));
    const request = {
      name,
      capacityRange: { requiredBytes: String(gibibyte) },
      volumeCapabilities: [capability],
    };
    const { volume } = await this.#count(controller.call("CreateVolume", request));
    const { volumeId, volumeContext } = volume!;
    const publish = { volumeId, nodeId, volumeCapability: capability, volumeContext };
    const { publishContext } = await this.#count(controller.call("ControllerPublishVolume", publish));
    await this.#count(controller.call("ListVolumes", {}));
    await this.#count(controller.call("ControllerPublishVolume", publish));
    await this.#count(controller.call("GetCapacity", {}));
    if (nodeFolder !== undefined && number % stagedEvery === 0) {
      await this.#stage(`${nodeFolder}/${number}`, { volumeId, volumeContext, publishContext });
    }
    await this.#count(controller.call("ControllerGetVolume", { volumeId }));
    await this.#refused(controller.call("DeleteVolume", { volumeId }));
    await this.#count(controller.call("ControllerUnpublishVolume", { volumeId, nodeId }));
    await this.#count(controller.call("DeleteVolume", { volumeId }));
    await this.#count(controller.call("DeleteVolume", { volumeId }));
  }

  async #stage(
    folder: string,
    volume: {
      volumeId: string;
      volumeContext: Record<string, string>;
      publishContext: Record<string, string>;
    },
  ): Promise<void> {
    const { node } = this.#options.clients;
    const [staging, target] = [`${folder}/staging`, `${folder}/target`];
    const { volumeId } = volume;
    const common = { ...volume, stagingTargetPath: staging, volumeCapability: capability };
    await Deno.mkdir(staging, { recursive: true });
    await this.#count(node.call("NodeStageVolume", common));
    await this.#count(node.call("NodePublishVolume", { ...common, targetPath: target }));
    await this.#count(node.call("NodeGetVolumeStats", { volumeId, volumePath: target }));
    await this.#count(node.call("NodeUnpublishVolume", { volumeId, targetPath: target }));
    await this.#count(node.call("NodeUnstageVolume", { volumeId, stagingTargetPath: staging }));
    await Deno.remove(folder, { recursive: true });
  }

  async #count<Answer>(call: Promise<Answer>): Promise<Answer> {
    const answer = await call;
    this.#calls++;
    return answer;
  }

  /** What is refused makes errors, which keep a stack. */
  async #refused(call: Promise<unknown>): Promise<void> {
    const isRefused = await call.then(() => false, () => true);
    if (!isRefused) throw new Error("a volume in use was deleted");
    this.#calls++;
  }
}
