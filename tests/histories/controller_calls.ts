import { publishVolume } from "../../src/controller/attachments/publish.ts";
import { unpublishVolume } from "../../src/controller/attachments/unpublish.ts";
import type { ControllerDeps } from "../../src/controller/deps.ts";
import { createSnapshot } from "../../src/controller/snapshots/create.ts";
import { deleteSnapshot } from "../../src/controller/snapshots/delete.ts";
import { listSnapshots } from "../../src/controller/snapshots/list.ts";
import { createVolume } from "../../src/controller/volumes/create.ts";
import { deleteVolume } from "../../src/controller/volumes/delete.ts";
import { expandVolume } from "../../src/controller/volumes/expand.ts";
import type { CreateRequest } from "../../src/volume/rules/provision.ts";
import { volumeIdFor } from "../../src/volume/model/ids.ts";
import type { SourceRef } from "../../src/volume/model/sources.ts";
import type { CallContext } from "../../src/volume/ports/system.ts";
import { aCreate, aPublish, gibibyte, sharedBlock, testParameters } from "../fakes/controller_deps.ts";
import { aSnapshotId } from "../fakes/records.ts";
import type { HistoryEvent } from "./events.ts";
import type { NodeStep } from "./node_calls.ts";
import { type CallStep, type Setting, snapshotNames, volumeNames } from "./schedule.ts";

/** A step that the controller is called for. */
export type ControllerStep = Exclude<CallStep["step"], NodeStep>;
/** A call of the controller, and what sends it. */
export type ControllerCall = Omit<Extract<HistoryEvent, { kind: "call" }>, "kind" | "call"> & {
  readonly send: (deps: ControllerDeps, context: CallContext) => Promise<unknown>;
};
/** What a publish answers. */
export interface Published {
  readonly publishContext?: Readonly<Record<string, string>>;
}

/** The ids of the volumes; all but the first are clones. */
export const volumeIds = volumeNames.map((name) => volumeIdFor(name)) as [string, string];
/** The ids of their snapshots, which are all of the first volume. */
export const snapshotIds: readonly string[] = snapshotNames.map((name) => aSnapshotId(name));

const list: ControllerCall = {
  verb: "list",
  of: volumeIds[0],
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
  readonly #cloneBytes: bigint;

  /**
   * @param hasImage whether a snapshot exists on the router
   * @param shared whether the volumes are raw blocks for two nodes at once
   */
  constructor(hasImage: (id: string) => boolean, { shared, cloneGib }: Pick<Setting, "shared" | "cloneGib">) {
    this.#hasImage = hasImage;
    this.#shared = shared;
    this.#cloneBytes = BigInt(cloneGib) * gibibyte;
  }

  #create(name: string, over: Partial<CreateRequest> = {}): CreateRequest {
    const capabilities = { kind: { access: "block" } as const, modes: [sharedBlock.mode] };
    return aCreate(name, { ...this.#shared ? { capabilities } : {}, ...over });
  }

  /** Returns the controller call of a step, with its arguments. */
  of(step: ControllerStep, id: string, node: string): ControllerCall {
    const [first] = volumeIds;
    const name = snapshotNames[volumeIds.indexOf(id)]!;
    const snapshotId = aSnapshotId(name);
    const use = this.#shared ? { capability: sharedBlock } : {};
    const [attachment, twice] = [{ of: id, node }, 2n * gibibyte];
    const calls: Record<ControllerStep, () => ControllerCall> = {
      create: () => ({
        verb: "create",
        of: first,
        bytes: gibibyte,
        send: (deps, context) => createVolume(deps, this.#create(volumeNames[0]!), context),
      }),
      clone: () => this.#clone(),
      delete: () => ({ verb: "delete", of: id, send: (deps, context) => deleteVolume(deps, id, context) }),
      publish: () => ({
        verb: "publish",
        ...attachment,
        send: async (deps, context) => {
          const answer = await publishVolume(deps, id, aPublish(node, use), testParameters, context);
          return { nqn: answer.nqn!, publishContext: { ...answer } };
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
        bytes: twice,
        send: (deps, context) =>
          expandVolume(deps, id, { ...aCreate("").range, requiredBytes: twice }, context),
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

  #clone(): ControllerCall {
    const [, clone] = volumeIds;
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
    return snapshot === undefined ? { kind: "volume", id: volumeIds[0] } : { kind: "snapshot", id: snapshot };
  }
}
