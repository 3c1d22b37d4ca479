import { canGrowExt4Online } from "../../src/cli/acceptance/scratch.ts";
import type { RetryingClients } from "./retries.ts";

/** Who is called, and where a node may stage. */
interface LivesOptions {
  readonly clients: RetryingClients;
  readonly nodeId: string;
  /** Folder for staging and target paths. */
  readonly nodeFolder: string;
}

/** Of so many lives one is used and grown on the node too: that runs tools, and takes ten times as long. */
const usedEvery = 8;
/** And one is copied, for which the simulator reads all of it while nobody else is answered. */
const copiedEvery = 400;

/** The least that holds an xfs. */
const firstBytes = 320n << 20n;
/** The size of what has grown, and of copies, which hold it. */
const grownBytes = 400n << 20n;
const accessMode = { mode: "SINGLE_NODE_WRITER" } as const;
/** What volumes are made for: those that are not used the first, the others each in turn. */
const capabilities = [
  { mount: { fsType: "ext4" }, accessMode },
  { mount: { fsType: "xfs" }, accessMode },
  { block: {}, accessMode },
] as const;

/** Whether this machine's kernel grows it under a pod: a mounted ext4 only with CAP_SYS_RESOURCE. */
function growsInUse(capability: Living["volumeCapability"]): boolean {
  return capability !== capabilities[0] || canGrowExt4Online();
}

/** A volume of a life. */
interface Living {
  readonly volumeId: string;
  readonly volumeContext: Record<string, string>;
  readonly volumeCapability: typeof capabilities[number];
}

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
    const isUsed = number % usedEvery === 0;
    const kind = isUsed ? number / usedEvery % capabilities.length : 0;
    await this.#count(identity.call("Probe", {}));
    const volume = await this.#create(`endurance-${number}`, capabilities[kind]!);
    const { volumeId } = volume;
    const publish = { ...volume, nodeId };
    const { publishContext } = await this.#count(controller.call("ControllerPublishVolume", publish));
    await this.#count(controller.call("ListVolumes", {}));
    await this.#count(controller.call("ControllerPublishVolume", publish));
    await this.#count(controller.call("GetCapacity", {}));
    if (isUsed) await this.#use(`${nodeFolder}/${number}`, { ...volume, publishContext });
    if (number % copiedEvery === 0) await this.#copy(volume, `endurance-${number}`);
    await this.#count(controller.call("ControllerGetVolume", { volumeId }));
    await this.#refused(controller.call("DeleteVolume", { volumeId }));
    await this.#count(controller.call("ControllerUnpublishVolume", { volumeId, nodeId }));
    await this.#delete(volumeId);
  }

  async #create(
    name: string,
    volumeCapability: Living["volumeCapability"],
    volumeContentSource?: { volume: { volumeId: string } } | { snapshot: { snapshotId: string } },
  ): Promise<Living> {
    const { volume } = await this.#count(this.#options.clients.controller.call("CreateVolume", {
      name,
      capacityRange: { requiredBytes: String(volumeContentSource === undefined ? firstBytes : grownBytes) },
      volumeCapabilities: [volumeCapability],
      volumeContentSource,
    }));
    const { volumeId, volumeContext } = volume!;
    return { volumeId, volumeContext, volumeCapability };
  }

  /** A second time too, as the sidecars do when they have not heard of the first. */
  async #delete(volumeId: string): Promise<void> {
    const { controller } = this.#options.clients;
    await this.#count(controller.call("DeleteVolume", { volumeId }));
    await this.#count(controller.call("DeleteVolume", { volumeId }));
  }

  /** Stages it, and lets it grow below a pod. */
  async #use(folder: string, volume: Living & { publishContext: Record<string, string> }): Promise<void> {
    const { controller, node } = this.#options.clients;
    const [stagingTargetPath, targetPath] = [`${folder}/staging`, `${folder}/target`];
    const { volumeId, volumeCapability } = volume;
    const capacityRange = { requiredBytes: String(grownBytes) };
    await Deno.mkdir(stagingTargetPath, { recursive: true });
    await this.#count(node.call("NodeStageVolume", { ...volume, stagingTargetPath }));
    await this.#count(node.call("NodePublishVolume", { ...volume, stagingTargetPath, targetPath }));
    await this.#count(node.call("NodeGetVolumeStats", { volumeId, volumePath: targetPath }));
    if (growsInUse(volumeCapability)) {
      const grow = { volumeId, capacityRange, volumeCapability };
      await this.#count(controller.call("ControllerExpandVolume", grow));
      const growNode = { ...grow, volumePath: targetPath, stagingTargetPath };
      await this.#count(node.call("NodeExpandVolume", growNode));
    }
    await this.#count(node.call("NodeUnpublishVolume", { volumeId, targetPath }));
    await this.#count(node.call("NodeUnstageVolume", { volumeId, stagingTargetPath }));
    await Deno.remove(folder, { recursive: true });
  }

  /** A snapshot, a volume that is restored from it, and a clone. */
  async #copy({ volumeId, volumeCapability }: Living, name: string): Promise<void> {
    const { controller } = this.#options.clients;
    const { snapshot } = await this.#count(
      controller.call("CreateSnapshot", { name: `${name}-snapshot`, sourceVolumeId: volumeId }),
    );
    const { snapshotId } = snapshot!;
    const restored = await this.#create(`${name}-restored`, volumeCapability, { snapshot: { snapshotId } });
    const cloned = await this.#create(`${name}-cloned`, volumeCapability, { volume: { volumeId } });
    await this.#count(controller.call("ListSnapshots", {}));
    for (const copy of [restored, cloned]) await this.#delete(copy.volumeId);
    await this.#count(controller.call("DeleteSnapshot", { snapshotId }));
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
