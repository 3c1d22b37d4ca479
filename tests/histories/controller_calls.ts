import { publishVolume } from "../../src/controller/attachments/publish.ts";
import { unpublishVolume } from "../../src/controller/attachments/unpublish.ts";
import type { ControllerDeps } from "../../src/controller/deps.ts";
import { importVolume } from "../../src/controller/import/import.ts";
import { adoptVolume } from "../../src/controller/legacy/adopt.ts";
import { createSnapshot } from "../../src/controller/snapshots/create.ts";
import { deleteSnapshot } from "../../src/controller/snapshots/delete.ts";
import { listSnapshots } from "../../src/controller/snapshots/list.ts";
import { createVolume } from "../../src/controller/volumes/create.ts";
import { deleteVolume } from "../../src/controller/volumes/delete.ts";
import { expandVolume } from "../../src/controller/volumes/expand.ts";
import type { CreateRequest } from "../../src/volume/rules/provision.ts";
import type { PublishRequest } from "../../src/volume/rules/publish.ts";
import { claimOf } from "../../src/volume/rules/legacy_migration.ts";
import type { SourceRef } from "../../src/volume/model/sources.ts";
import type { CallContext } from "../../src/volume/ports/system.ts";
import { aClusterVolume, anAttachment } from "../fakes/cluster_view.ts";
import {
  aCreate,
  aPublish,
  gibibyte,
  sharedBlock,
  testParameters,
  writer,
} from "../fakes/controller_deps.ts";
import { aSnapshotId } from "../fakes/records.ts";
import type { HistoryEvent } from "./events.ts";
import type { NodeStep } from "./node_calls.ts";
import { type CallStep, idOf, type Setting, snapshotNames, volumeNames } from "./schedule.ts";

/** A step that the controller is called for. */
export type ControllerStep = Exclude<CallStep["step"], NodeStep | PersonsStep>;
/** A step of a person, who runs a command. */
export type PersonsStep = "import" | "adopt";
/** A call of the controller, and what sends it. */
export type ControllerCall = Omit<Extract<HistoryEvent, { kind: "call" }>, "kind" | "call"> & {
  readonly send: (deps: ControllerDeps, context: CallContext) => Promise<unknown>;
};
/** What a publish answers. */
export interface Published {
  readonly publishContext?: Readonly<Record<string, string>>;
}

/** The ids of the volumes; all but the first are clones. */
export function volumeIdsOf(setting: Pick<Setting, "origin">): [string, string] {
  return volumeNames.map((name) => idOf(name, setting)) as [string, string];
}
/** The ids of their snapshots, which are all of the first volume. */
export const snapshotIds: readonly string[] = snapshotNames.map((name) => aSnapshotId(name));

const list: ControllerCall = {
  verb: "list",
  of: "",
  send: async (deps, context) => {
    const snapshots = await listSnapshots(deps, { id: "", source: "" }, context);
    return { listed: snapshots.map(({ id }) => id) };
  },
};

/** The calls of the controller, with their arguments. A clone is made of the same source each time. */
export class ControllerCalls {
  readonly #hasImage: (id: string) => boolean;
  readonly #sources = new Map<string, SourceRef>();

  readonly #shared: boolean;
  readonly #isStatic: boolean;
  readonly #toggles: boolean;
  readonly #cloneBytes: bigint;
  readonly #volumeIds: readonly [string, string];

  /** @param hasImage whether a snapshot exists on the router */
  constructor(
    hasImage: (id: string) => boolean,
    setting: Pick<Setting, "shared" | "cloneGib" | "origin" | "toggles">,
  ) {
    this.#hasImage = hasImage;
    this.#shared = setting.shared;
    this.#isStatic = setting.origin === "imported";
    this.#toggles = setting.toggles;
    this.#cloneBytes = BigInt(setting.cloneGib) * gibibyte;
    this.#volumeIds = volumeIdsOf(setting);
  }

  #create(name: string, over: Partial<CreateRequest> = {}): CreateRequest {
    const capabilities = { kind: { access: "block" } as const, modes: [sharedBlock.mode] };
    return aCreate(name, { ...this.#shared ? { capabilities } : {}, ...over });
  }

  /** Returns the controller call of a step, with its arguments. */
  of(
    step: ControllerStep,
    id: string,
    { node, bytes = 2n * gibibyte, otherwise }: Pick<CallStep, "node" | "bytes" | "otherwise">,
  ): ControllerCall {
    const [first] = this.#volumeIds;
    const name = snapshotNames[this.#volumeIds.indexOf(id)]!;
    const snapshotId = aSnapshotId(name);
    const attachment = { of: id, node };
    const other = otherwise ? { rawParameters: { other: "true" } } : {};
    const calls: Record<ControllerStep, () => ControllerCall> = {
      create: () => ({
        verb: "create",
        of: first,
        bytes: gibibyte,
        ...otherwise ? { otherwise } : {},
        send: (deps, context) => createVolume(deps, this.#create(volumeNames[0]!, other), context),
      }),
      clone: () => this.#clone(),
      delete: () => ({ verb: "delete", of: id, send: (deps, context) => deleteVolume(deps, id, context) }),
      publish: () => ({
        verb: "publish",
        ...attachment,
        send: async (deps, context) => {
          const request = aPublish(node, this.#useOf(id));
          // The model of a node has no device layer, and waits for its connection as if it had one.
          const { layer: _, ...answer } = await publishVolume(deps, id, request, testParameters, context);
          return { nqn: answer.nqn!, publishContext: answer };
        },
      }),
      unpublish: () => ({
        verb: "unpublish",
        ...attachment,
        send: (deps, context) => unpublishVolume(deps, id, node, context),
      }),
      expand: () => ({
        verb: "expand",
        of: id,
        bytes,
        send: (deps, context) =>
          expandVolume(deps, id, { ...aCreate("").range, requiredBytes: bytes }, context),
      }),
      snapshot: () => ({
        verb: "snapshot",
        of: snapshotId,
        source: first,
        send: (deps, context) => createSnapshot(deps, { name, source: first }, context),
      }),
      deleteSnapshot: () => ({
        verb: "deleteSnapshot",
        of: snapshotId,
        send: (deps, context) => deleteSnapshot(deps, snapshotId, context),
      }),
      list: () => list,
    };
    return calls[step]();
  }

  /** How pods use a volume. */
  #useOf(id: string): Partial<PublishRequest> {
    if (this.#shared) return { capability: sharedBlock };
    if (this.#isStatic && id === this.#volumeIds[0]) return { isStatic: true };
    return this.#toggles ? { needsLayer: true } : {};
  }

  /** A person imports a disk with a file system for one node at a time. */
  import(id: string): ControllerCall {
    const { mode, ...kind } = writer;
    const request = { id, imagePath: undefined, kind, mode, exportIsUnused: false, dryRun: false };
    return {
      verb: "import",
      of: id,
      send: (deps, context) => importVolume(deps, request, context),
    };
  }

  /** A person takes a disk over from the legacy driver, for the nodes that have it. */
  adopt(id: string, nodeIds: readonly string[]): ControllerCall {
    const attachments = nodeIds.map((nodeId) => anAttachment(id, nodeId));
    return {
      verb: "adopt",
      of: id,
      send: (deps, context) => {
        const claim = claimOf(aClusterVolume(id), attachments, deps.clock.now());
        return adoptVolume(deps, id, claim, context);
      },
    };
  }

  #clone(): ControllerCall {
    const [, clone] = this.#volumeIds;
    const source = this.#sources.get(clone) ?? this.#aSource();
    this.#sources.set(clone, source);
    const range = { ...aCreate("").range, requiredBytes: this.#cloneBytes };
    return {
      verb: "create",
      of: clone,
      bytes: this.#cloneBytes,
      source: source.id,
      send: (deps, context) => createVolume(deps, this.#create(volumeNames[1]!, { source, range }), context),
    };
  }

  #aSource(): SourceRef {
    const snapshot = snapshotIds.find((id) => this.#hasImage(id));
    return snapshot === undefined
      ? { kind: "volume", id: this.#volumeIds[0] }
      : { kind: "snapshot", id: snapshot };
  }
}
