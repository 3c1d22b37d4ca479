import type { VolumeCapability } from "../../csi/generated/csi.ts";
import { codeOf, type CsiClients } from "../../csi/server/client.ts";
import type { Sent } from "../../csi/server/proto.ts";
import { parsePublishContext } from "../../volume/model/parse_context.ts";
import type { PublishContext } from "../../volume/model/publish_context.ts";
import { assertHolds } from "./step.ts";
import type { LifeKind } from "./names.ts";

/** What volumes are used through. */
export interface VolumeUser {
  readonly clients: CsiClients;
  /** The node that the clients serve, and one that the controller knows and has to refuse. */
  readonly nodeId: string;
  readonly otherNodeId: string;
  /** Folder for staging and target paths. */
  readonly directory: string;
}

const gibibyte = 1n << 30n;
/** The sizes of a volume before and after its growth. */
export const smallBytes = gibibyte;
export const grownBytes = 2n * gibibyte;

/** One volume of a run, and how far it is attached. */
export class TestVolume {
  readonly name: string;
  readonly #user: VolumeUser;
  readonly #kind: LifeKind;
  #id = "";
  #volumeContext: Record<string, string> = {};
  #publishContext: Record<string, string> = {};
  /** How far it is attached, as far as is known: a call that failed may have done its work. */
  #mayBeMounted = false;
  #mayBePublished = false;

  constructor(user: VolumeUser, name: string, kind: LifeKind) {
    this.#user = user;
    this.name = name;
    this.#kind = kind;
  }

  /** "" while there is none. */
  get id(): string {
    return this.#id;
  }

  /** How it is published. */
  get published(): PublishContext {
    return parsePublishContext(this.#publishContext, this.#id);
  }

  /** Where data is written: the device of a block volume, a file of any other. */
  get dataPath(): string {
    return this.#kind === "block" ? this.#target : `${this.#target}/data`;
  }

  get #staging(): string {
    return `${this.#user.directory}/${this.name}/staging`;
  }

  get #target(): string {
    return `${this.#user.directory}/${this.name}/target`;
  }

  async create(
    source?: { readonly snapshotId: string } | { readonly volumeId: string },
    bytes = smallBytes,
  ): Promise<void> {
    const volumeContentSource = source === undefined
      ? undefined
      : "snapshotId" in source
      ? { snapshot: source }
      : { volume: source };
    const { volume } = await this.#user.clients.controller.call("CreateVolume", {
      name: this.name,
      capacityRange: { requiredBytes: String(bytes) },
      volumeCapabilities: [this.#capability()],
      parameters: {},
      ...volumeContentSource && { volumeContentSource },
    });
    this.#id = volume?.volumeId ?? "";
    this.#volumeContext = volume?.volumeContext ?? {};
  }

  async publish(): Promise<void> {
    this.#mayBePublished = true;
    const { publishContext } = await this.#user.clients.controller.call(
      "ControllerPublishVolume",
      this.#publishRequest(this.#user.nodeId),
    );
    this.#publishContext = publishContext;
  }

  /** @throws {VolumeError} internal when a second node gets the volume */
  async assertRefusedToOther(): Promise<void> {
    const answer = this.#user.clients.controller.call(
      "ControllerPublishVolume",
      this.#publishRequest(this.#user.otherNodeId),
    );
    const code = await answer.then(() => "OK", codeOf);
    assertHolds(code === "FAILED_PRECONDITION", "a second node was not refused the volume");
  }

  /** Makes the volume usable at its target path. */
  async mount(): Promise<void> {
    await this.stage();
    await this.bind();
  }

  /** The first half of a mount: connects the volume, and mounts what has a file system. */
  async stage(): Promise<void> {
    this.#mayBeMounted = true;
    // The kubelet makes the staging folder and the target's parent.
    await Deno.mkdir(this.#staging, { recursive: true });
    await this.#user.clients.node.call("NodeStageVolume", this.#nodeRequest());
  }

  /** The second half: shows it at the target path. */
  async bind(): Promise<void> {
    const request = { ...this.#nodeRequest(), targetPath: this.#target, readonly: false };
    await this.#user.clients.node.call("NodePublishVolume", request);
  }

  async attach(): Promise<void> {
    await this.publish();
    await this.mount();
  }

  async unmount(): Promise<void> {
    await this.unbind();
    await this.unstage();
  }

  async unbind(): Promise<void> {
    const request = { volumeId: this.#id, targetPath: this.#target };
    await this.#user.clients.node.call("NodeUnpublishVolume", request);
  }

  async unstage(): Promise<void> {
    const request = { volumeId: this.#id, stagingTargetPath: this.#staging };
    await this.#user.clients.node.call("NodeUnstageVolume", request);
    this.#mayBeMounted = false;
  }

  /** Takes the volume from this node, whatever the node does. */
  async unpublish(): Promise<void> {
    const request = { volumeId: this.#id, nodeId: this.#user.nodeId };
    await this.#user.clients.controller.call("ControllerUnpublishVolume", request);
    this.#mayBePublished = false;
  }

  async detach(): Promise<void> {
    await this.unmount();
    await this.unpublish();
  }

  /** Returns the size that it has grown to, in bytes. */
  async expand(): Promise<bigint> {
    const { capacityBytes } = await this.#user.clients.controller.call("ControllerExpandVolume", {
      volumeId: this.#id,
      capacityRange: { requiredBytes: String(grownBytes) },
      volumeCapability: this.#capability(),
    });
    assertHolds(BigInt(capacityBytes) >= grownBytes, "the volume did not grow");
    return BigInt(capacityBytes);
  }

  async expandOnNode(): Promise<void> {
    await this.#user.clients.node.call("NodeExpandVolume", {
      volumeId: this.#id,
      volumePath: this.#target,
      stagingTargetPath: this.#staging,
      capacityRange: { requiredBytes: String(grownBytes) },
      volumeCapability: this.#capability(),
    });
  }

  /** Returns the size that pods see, in bytes: nearly as much as the volume has. */
  async assertUsable(sizeBytes: bigint): Promise<bigint> {
    const request = { volumeId: this.#id, volumePath: this.#target, stagingTargetPath: this.#staging };
    const { usage } = await this.#user.clients.node.call("NodeGetVolumeStats", request);
    const bytes = BigInt(usage.find(({ unit }) => unit === "BYTES")?.total ?? 0);
    // A file system uses a part of its device itself.
    const least = this.#kind === "block" ? sizeBytes : sizeBytes * 9n / 10n;
    assertHolds(bytes >= least, `pods see ${bytes} bytes of a volume of ${sizeBytes} bytes`);
    return bytes;
  }

  async delete(): Promise<void> {
    await this.#user.clients.controller.call("DeleteVolume", { volumeId: this.#id });
    this.#id = "";
  }

  /** Detaches and deletes what may be there; returns what failed. */
  async remove(): Promise<string[]> {
    if (this.#id === "") return [];
    const failures: string[] = [];
    const steps = [
      ...this.#mayBeMounted ? [() => this.unmount()] : [],
      ...this.#mayBePublished ? [() => this.unpublish()] : [],
      () => this.delete(),
    ];
    for (const step of steps) await step().catch((error: Error) => failures.push(error.message));
    return failures;
  }

  #nodeRequest() {
    return {
      volumeId: this.#id,
      publishContext: this.#publishContext,
      stagingTargetPath: this.#staging,
      volumeCapability: this.#capability(),
      volumeContext: this.#volumeContext,
    };
  }

  #publishRequest(nodeId: string) {
    return {
      volumeId: this.#id,
      nodeId,
      volumeCapability: this.#capability(),
      readonly: false,
      volumeContext: this.#volumeContext,
    };
  }

  #capability(): Sent<VolumeCapability> {
    const accessMode = { mode: "SINGLE_NODE_WRITER" as const };
    return this.#kind === "block" ? { block: {}, accessMode } : { mount: { fsType: this.#kind }, accessMode };
  }
}
