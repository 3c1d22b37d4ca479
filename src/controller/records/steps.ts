import type { StoredVolume } from "../../volume/model/inventory.ts";
import { type OwnedVolume, rewritten, type VolumeRecord } from "../../volume/model/record.ts";
import type { VolumeChange } from "../../volume/ports/store.ts";
import { VolumeError } from "../../volume/errors.ts";
import { exportedCounter, nqnOf, raisedRecord, withdrawnRecord } from "../../volume/rules/publish.ts";
import { isToBeKeptUnmounted } from "../../volume/rules/router_uses.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";
import { commentWith } from "./comment.ts";
import type { StepKind } from "./confirmations.ts";
import type { View } from "./view.ts";

/** One change on the router. It names what is to be; guards, retries and late commands are not its business. */
export interface Step {
  readonly kind: Exclude<StepKind, "add" | "mark" | "release" | "remove">;
  readonly volume: OwnedVolume;
  readonly record: VolumeRecord;
  /** What changes besides the record. */
  readonly change: Omit<VolumeChange, "comment">;
  /** What has to be read back besides the comment. */
  readonly isDone: (after: StoredVolume) => boolean;
  /** What it promises of a pool. */
  readonly room?: Room;
  /** Puts right what may be left of it where it failed, after a read, also when its caller has gone. Throws nothing. */
  readonly mend?: () => Promise<void>;
}

/** Room of a pool that is promised from the time when a step is sent, and given back only if it was certainly not. */
export interface Room {
  readonly mountPoint: string;
  readonly bytes: bigint;
  /**
   * Whether there is enough of it; undefined where the rule has read every disk.
   *
   * @param uncounted what is not counted yet. @default {0}
   */
  readonly isAmple?: (uncounted?: bigint) => boolean;
}

/** A disk is added, goes, becomes a volume or ceases to be one: that carries how it is sent. */
export interface Change<Answer> {
  readonly kind: Exclude<StepKind, Step["kind"]>;
  /** Whose last withdrawal it may have to wait for; undefined where there is none. */
  readonly volume: OwnedVolume | undefined;
  /** Undefined where it takes none. */
  readonly room?: Room | undefined;
  /**
   * Sends it, by a view that was read, or by one that the router confirms. Where that came to nothing it returns whether the
   * router may still do it.
   */
  readonly send: (call: ControllerCall, verb: string, view: View) => Promise<Came<Answer> | NotDone>;
}

/** What a change came to: the answer, or what was read back of the volume; without either, the volume has to be read. */
export type Came<Answer> = { readonly answer: Answer } | { readonly view?: View };

/** What a change that came to nothing may still come to: nothing, as it was certainly not sent, or all, as it may come late. */
export type NotDone = "never" | "perhaps";

/** The answer by what was read back of a volume, or its view, by which the rule is asked again. */
export function cameTo<Answer>(answer: Answer | "again", view: View, volume: StoredVolume): Came<Answer> {
  if (answer !== "again") return { answer };
  // What else was claimed of it is still to be read.
  return view.isAssumed ? {} : { view: { ...view, volume } };
}

/**
 * The export goes off, and no node holds the volume any more, with the time of the withdrawal.
 *
 * @param knownCounter of the latest epoch that the cluster knows: the next one will be later
 */
export function withdrawal(call: ControllerCall, volume: OwnedVolume, knownCounter = 0): Step {
  const ended = withdrawnRecord(volume.record, call.clock.now());
  const record = raisedRecord(ended, Math.max(knownCounter, exportedCounter(volume)), call.random);
  // The present comment may have a confirmed time since when its export is off; that time is not of this withdrawal. One with
  // holders is another text anyway.
  const isKnown = volume.record.holders.length === 0 && commentWith(volume, record) === volume.stored.comment;
  return {
    kind: "withdraw",
    volume,
    record: isKnown ? rewritten(record) : record,
    change: { export: false },
    isDone: (after) => !after.exported,
  };
}

/** Whether a volume is exported as before. */
export function isExportedAs(
  { exported, exportNqn, exportPort }: StoredVolume,
): (after: StoredVolume) => boolean {
  return (after) =>
    after.exported === exported &&
    (!exported || after.exportNqn === exportNqn && after.exportPort === exportPort);
}

/** How a volume is to be exported. */
export interface Export {
  readonly record: VolumeRecord;
  readonly port: number;
}

/** The export of the record's epoch is on, and the router itself does nothing with the disk. */
export function exported(
  call: ControllerCall,
  kind: "begin" | "continue",
  volume: OwnedVolume,
  { record, port }: Export,
  isAssumed = false,
): Step {
  const { stored } = volume;
  const nqn = recordNqn(call, volume, record);
  // What was not read may be mounted at any time.
  const unmounted = isAssumed || isToBeKeptUnmounted(stored);
  const isDone = (after: StoredVolume) =>
    after.exported && after.exportNqn === nqn && after.exportPort === port &&
    after.routerUses === undefined && !(unmounted && after.mayBeMounted) &&
    // A router that forgot a growth would give the node less than the volume holds.
    (!isAssumed || after.sizeBytes === stored.sizeBytes);
  const mount = unmounted ? { neverMounted: true } as const : {};
  return { kind, volume, record, change: { export: { nqn, port }, ...mount }, isDone };
}

/**
 * The disk is larger; where the router shows that of an export after a toggle only, the export is on again under its name. The
 * record changes too: a command that runs late, after a larger growth, must find nothing to shrink.
 */
export function growth({ settings }: ControllerDeps, volume: OwnedVolume, sizeBytes: bigint): Step {
  const { exported, exportNqn } = volume.stored;
  const toggles = exported && settings.growth === "after-toggle";
  return {
    kind: toggles ? "toggle" : "grow",
    volume,
    record: rewritten(volume.record),
    change: toggles ? { sizeBytes, bounce: true } : { sizeBytes },
    isDone: (after) => !toggles || after.exported && after.exportNqn === exportNqn,
  };
}

/**
 * The NQN of the export of a volume in the epoch of that record.
 *
 * @throws {VolumeError} internal when it has none
 */
export function recordNqn(deps: ControllerDeps, volume: OwnedVolume, record: VolumeRecord): string {
  if (record.epoch === undefined) {
    const { id } = volume.stored;
    throw new VolumeError("internal", `Cannot name the export of a volume without an epoch: volume=${id}`);
  }
  return nqnOf(volume, record.epoch, deps.settings.nqnPrefix);
}
