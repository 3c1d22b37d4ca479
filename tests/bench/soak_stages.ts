import type { CsiClients } from "../../src/csi/server/client.ts";

const gibibyte = 1n << 30n;
const volumeCapability = { mount: { fsType: "ext4" }, accessMode: { mode: "SINGLE_NODE_WRITER" } } as const;

/** What a node is asked with about a volume that is published to it. */
type StageRequest = Parameters<typeof stage>[1];

/** Stages and unstages published volumes again and again: file systems on loop devices. */
export class Stages {
  readonly #clients: CsiClients;
  readonly #requests: readonly StageRequest[];
  #stages = 0;

  private constructor(clients: CsiClients, requests: readonly StageRequest[]) {
    this.#clients = clients;
    this.#requests = requests;
  }

  /** Makes volumes and publishes them. @param folder where they are staged, one in each of its folders */
  static async open(clients: CsiClients, nodeId: string, folder: string, volumes: number): Promise<Stages> {
    const requests: StageRequest[] = [];
    for (let number = 0; number < volumes; number++) {
      const { volume } = await clients.controller.call("CreateVolume", {
        name: `stages-${number}`,
        capacityRange: { requiredBytes: String(gibibyte) },
        volumeCapabilities: [volumeCapability],
      });
      const { volumeId, volumeContext } = volume!;
      const publish = { volumeId, nodeId, volumeCapability, volumeContext };
      const { publishContext } = await clients.controller.call("ControllerPublishVolume", publish);
      const stagingTargetPath = `${folder}/${number}`;
      await Deno.mkdir(stagingTargetPath, { recursive: true });
      requests.push({ volumeId, volumeContext, publishContext, stagingTargetPath, volumeCapability });
    }
    return new Stages(clients, requests);
  }

  /** Stages that were undone again. */
  get stages(): number {
    return this.#stages;
  }

  /** Goes on, with all volumes at the same time, until there were so many stages in all. */
  async run(until: number): Promise<void> {
    await Promise.all(this.#requests.map(async (request) => {
      while (this.#stages < until) {
        await stage(this.#clients, request);
        const { volumeId, stagingTargetPath } = request;
        await this.#clients.node.call("NodeUnstageVolume", { volumeId, stagingTargetPath });
        this.#stages++;
      }
    }));
  }
}

function stage(
  { node }: CsiClients,
  request: {
    readonly volumeId: string;
    readonly volumeContext: Record<string, string>;
    readonly publishContext: Record<string, string>;
    readonly stagingTargetPath: string;
    readonly volumeCapability: typeof volumeCapability;
  },
): Promise<unknown> {
  return node.call("NodeStageVolume", request);
}
