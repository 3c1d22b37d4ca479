import type { CsiClients } from "../../../src/csi/server/client.ts";
import { codeOf } from "../../../src/csi/server/client.ts";
import type { VolumeCapability } from "../../../src/csi/generated/csi.ts";
import type { Sent } from "../../../src/csi/server/proto.ts";

/** What is done with a volume. */
export type VolumeUse = "ext4" | "xfs" | "block" | "shared block";

/** Codes after which an orchestrator calls again. */
const passing = [
  "ABORTED",
  "UNAVAILABLE",
  "DEADLINE_EXCEEDED",
  "CANCELLED",
  "RESOURCE_EXHAUSTED",
];
const callMs = 60_000;

/** A volume that a suite takes through its life, like an orchestrator. */
export class GuestVolume {
  readonly id: string;
  readonly use: VolumeUse;
  readonly staging: string;
  readonly target: string;
  /** Of its stages. */
  secrets: Readonly<Record<string, string>> = {};
  #controller: CsiClients["controller"];
  readonly #context: Record<string, string>;
  readonly #published = new Map<string, Record<string, string>>();

  private constructor(
    controller: CsiClients["controller"],
    use: VolumeUse,
    id: string,
    context: Record<string, string>,
  ) {
    this.#controller = controller;
    this.use = use;
    this.id = id;
    this.#context = context;
    this.staging = `/var/lib/kubelet/plugins/kubernetes.io/csi/${id}`;
    this.target = `/var/lib/kubelet/pods/${id}/target`;
  }

  /** Makes one of exactly that size. @param parameters of its StorageClass @param snapshotId its source */
  static async create(
    controller: CsiClients["controller"],
    name: string,
    use: VolumeUse,
    sizeBytes: number,
    parameters: Readonly<Record<string, string>> = {},
    snapshotId?: string,
  ): Promise<GuestVolume> {
    const { volume } = await controller.call("CreateVolume", {
      name,
      capacityRange: { requiredBytes: `${sizeBytes}`, limitBytes: `${sizeBytes}` },
      volumeCapabilities: [capabilityOf(use)],
      parameters,
      ...(snapshotId === undefined ? {} : { volumeContentSource: { snapshot: { snapshotId } } }),
    });
    return new GuestVolume(controller, use, volume!.volumeId, volume!.volumeContext);
  }

  /** Continues with another controller: after a restart, the clients of the earlier one are closed. */
  goOnWith(controller: CsiClients["controller"]): void {
    this.#controller = controller;
  }

  /** The NQN under which it was last published to that node. */
  nqn(nodeId: string): string {
    return this.publishContext(nodeId)["nqn"] ?? "";
  }

  /** The publish context from its last publish to that node. */
  publishContext(nodeId: string): Readonly<Record<string, string>> {
    return this.#published.get(nodeId) ?? {};
  }

  async publish(nodeId: string): Promise<void> {
    const { publishContext } = await this.#controller.call("ControllerPublishVolume", {
      volumeId: this.id,
      nodeId,
      volumeCapability: capabilityOf(this.use),
      readonly: false,
      volumeContext: this.#context,
    }, callMs);
    this.#published.set(nodeId, publishContext);
  }

  async unpublish(nodeId: string, timeoutMs = callMs): Promise<void> {
    await this.#controller.call("ControllerUnpublishVolume", { volumeId: this.id, nodeId }, timeoutMs);
  }

  /** Stages it on a node and publishes it there. */
  async attach(node: CsiClients["node"], nodeId: string): Promise<void> {
    await untilOk(() => this.stage(node, nodeId));
    const request = { ...this.#stageRequest(nodeId), targetPath: this.target, readonly: false };
    await untilOk(() => node.call("NodePublishVolume", request, callMs));
  }

  /** Unpublishes it on a node and unstages it there. */
  async detach(node: CsiClients["node"]): Promise<void> {
    await untilOk(() => this.unpublishOn(node));
    await untilOk(() => this.unstage(node));
  }

  /** Unpublishes it on a node, with one call. */
  async unpublishOn(node: CsiClients["node"]): Promise<void> {
    await node.call("NodeUnpublishVolume", { volumeId: this.id, targetPath: this.target }, callMs);
  }

  /** Stages it on a node, with one call. */
  async stage(node: CsiClients["node"], nodeId: string): Promise<void> {
    await node.call("NodeStageVolume", this.#stageRequest(nodeId), callMs);
  }

  /** Unstages it on a node, with one call. */
  async unstage(node: CsiClients["node"]): Promise<void> {
    await node.call("NodeUnstageVolume", { volumeId: this.id, stagingTargetPath: this.staging }, callMs);
  }

  #stageRequest(nodeId: string) {
    return {
      volumeId: this.id,
      publishContext: this.publishContext(nodeId),
      stagingTargetPath: this.staging,
      volumeCapability: capabilityOf(this.use),
      volumeContext: this.#context,
      secrets: this.secrets,
    };
  }
}

/** Repeats a call after temporary failures, like an orchestrator, for at most two minutes; returns the call's result. */
export async function untilOk<T>(call: () => Promise<T>): Promise<T> {
  const untilMs = performance.now() + 120_000;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const code = codeOf(error) ?? "";
      if (!passing.includes(code) || performance.now() > untilMs) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}

function capabilityOf(use: VolumeUse): Sent<VolumeCapability> {
  if (use === "ext4" || use === "xfs") {
    return { mount: { fsType: use }, accessMode: { mode: "SINGLE_NODE_WRITER" } };
  }
  const mode = use === "block" ? "SINGLE_NODE_WRITER" : "MULTI_NODE_MULTI_WRITER";
  return { block: {}, accessMode: { mode } };
}
