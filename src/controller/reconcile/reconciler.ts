import type { ClusterAttachment, ReconciledCluster } from "../../volume/ports/cluster_view.ts";
import { VolumeError } from "../../volume/errors.ts";
import { nodeIdsOf, type OwnedVolume, unfencedNode } from "../../volume/model/record.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { howToWithdraw } from "../../volume/rules/used_elsewhere.ts";
import {
  isStillUnwanted,
  isStillUnwantedOn,
  keyOf,
  latestEpoch as latestEpochOf,
  reconcile,
  type ReconcileRules,
  type ReconcileStep,
  type ReconcileView,
  type Reconciliation,
  servedCounter,
  type Unwanted,
} from "../../volume/rules/reconcile.ts";
import { readOwned } from "../reads.ts";
import type { VolumeInventory } from "../inventory.ts";
import { takeFrom } from "../attachments/unpublish.ts";
import type { ControllerDeps } from "../deps.ts";
import { restoreExport } from "./restore.ts";
import { withdrawUnwanted } from "./withdraw.ts";

/** How the router is compared with the cluster. */
export interface ReconcileSettings {
  /** Whether that is done, or only told. A volume whose record is older than the cluster is always withdrawn. */
  readonly mode: "off" | "dry-run" | "on";
  /** How long a volume has to be unwanted before it is withdrawn, in milliseconds. */
  readonly graceMs: number;
}

/** The most volumes that are withdrawn in a pass. */
export const maxWithdrawals = 3;

/** Of how many held-back volumes a pass asks the cluster whether nodes have given them up: each takes several requests. */
const maxAsked = 10;

/** The most volumes that a message names. */
const maxNamed = 5;

/**
 * Compares, pass by pass, what the router exports with what the cluster wants: exports that nodes have lost are turned on
 * again, and those that nobody wants for long are withdrawn, a few at a time.
 */
export class Reconciler {
  readonly #deps: ControllerDeps;
  readonly #cluster: ReconciledCluster;
  readonly #settings: ReconcileSettings;
  #unwantedSinceMs: ReadonlyMap<string, number> = new Map();
  /** Where the next pass begins to ask. */
  #asked = 0;

  constructor(deps: ControllerDeps, cluster: ReconciledCluster, settings: ReconcileSettings) {
    this.#deps = deps;
    this.#cluster = cluster;
    this.#settings = settings;
  }

  /**
   * One pass. What fails is told and left to the next one.
   *
   * @param look at the router, from before the attachments were read
   * @param compared called once what has a record older than the cluster is withdrawn, with whether that is all: a call that
   *   has a volume's lock compares that one itself
   */
  async pass(
    { inventory, volumes }: VolumeInventory,
    attachments: readonly ClusterAttachment[],
    context: CallContext,
    compared: (isComplete: boolean) => void = () => {},
  ): Promise<void> {
    const { clock, settings } = this.#deps;
    const view = {
      volumes,
      attachments,
      unwantedSinceMs: this.#unwantedSinceMs,
      nowMs: clock.now(),
      monotonicMs: clock.monotonicMs(),
      isNamed: (id: string) => this.#cluster.volumeContext(id) !== undefined,
      isGivenUp: () => false,
      settled: inventory.upMs >= settings.settleMs,
    };
    const first = reconcile(view, this.#rules);
    // A node that was shut out may have its export back: nothing is more urgent, and no setting keeps it from being withdrawn.
    compared(await this.#trySteps(first.steps.filter(isOlder), attachments, context));
    if (this.#settings.mode === "off") return;
    this.#unwantedSinceMs = first.unwantedSinceMs;
    // No node that has lost its export waits for what is asked only because of a withdrawal.
    const restores = first.steps.filter((step) => !isOlder(step) && !isWithdrawal(step));
    await this.#trySteps(restores, attachments, context);
    const asked = await this.#askNodes(first.mayBeGivenUp, view, context);
    const second = asked === view ? first : reconcile(asked, this.#rules);
    const { steps, heldBack, heldBackReason } = await this.#withoutOthers(second, asked, context);
    this.#reportHeldBack(heldBack, heldBackReason);
    await this.#trySteps(steps.filter(isWithdrawal), attachments, context);
  }

  #reportHeldBack(heldBack: readonly Unwanted[], reason: string | undefined): void {
    const { notes, events } = this.#deps;
    const ids = [...new Set(heldBack.map(({ volume }) => volume.stored.id))];
    if (ids.length === 0) return;
    const next = `${howToWithdraw("VOLUME")} ends it for a volume that no node uses any more`;
    const fields = { reason, count: ids.length, volumes: ids.slice(0, maxNamed), next };
    notes.warn("left on exports that no VolumeAttachment wants", fields);
    for (const { volume, nodeId } of heldBack) {
      if (nodeId === undefined) events.occurred(unwantedEvent(volume, false));
    }
  }

  /**
   * The view with what kubelets say of some volumes that their nodes may have given up. The next pass asks about the next
   * ones.
   */
  async #askNodes(
    mayBeGivenUp: readonly Unwanted[],
    view: ReconcileView,
    context: CallContext,
  ): Promise<ReconcileView> {
    if (mayBeGivenUp.length === 0) return view;
    const start = this.#asked % mayBeGivenUp.length;
    const next = [...mayBeGivenUp.slice(start), ...mayBeGivenUp.slice(0, start)].slice(0, maxAsked);
    this.#asked = start + next.length;
    const givenUp = new Set<string>();
    for (const one of next) if (await this.#isGivenUp(one, context)) givenUp.add(keyOf(one));
    return { ...view, isGivenUp: (one) => givenUp.has(keyOf(one)) };
  }

  async #isGivenUp({ volume, holders }: Unwanted, { signal }: CallContext): Promise<boolean> {
    const volumeId = volume.stored.id;
    for (const holder of holders) {
      const node = { ...unfencedNode(holder), volumeId };
      if (await this.#deps.detachedNodes.reasonAgainst(node, signal) !== undefined) return false;
    }
    return holders.length > 0;
  }

  get #rules(): ReconcileRules {
    return { graceMs: this.#settings.graceMs, maxWithdrawals };
  }

  /**
   * Where any volume would be withdrawn, compares once more without the volumes that a driver of another name has objects
   * of: its VolumeAttachments are not among those that were read.
   *
   * @throws {VolumeError} unavailable when those cannot be read
   */
  async #withoutOthers(
    first: Reconciliation,
    view: ReconcileView,
    context: CallContext,
  ): Promise<Reconciliation> {
    if (!first.steps.some(isWithdrawal)) return first;
    const others = await this.#cluster.othersHandles(context);
    return reconcile({ ...view, isNamed: (id) => view.isNamed(id) && !others.has(id) }, this.#rules);
  }

  /** Whether no call has kept it from a step. */
  async #trySteps(
    steps: readonly ReconcileStep[],
    attachments: readonly ClusterAttachment[],
    context: CallContext,
  ): Promise<boolean> {
    let areAllTried = true;
    for (const step of steps) {
      context.signal.throwIfAborted();
      if (!await this.#tryStep(step, attachments, context)) areAllTried = false;
    }
    return areAllTried;
  }

  /** False when a call has the volume's lock. */
  async #tryStep(
    step: ReconcileStep,
    attachments: readonly ClusterAttachment[],
    context: CallContext,
  ): Promise<boolean> {
    const { notes, locks } = this.#deps;
    const { id } = step.volume.stored;
    const fields = { volume: id, step: step.action };
    if (this.#settings.mode === "dry-run" && !isOlder(step)) {
      notes.warn("reconciling would change a volume (--reconcile dry-run)", fields);
      return true;
    }
    // A call that changes the volume knows better; the next pass looks again.
    const release = locks.tryTake([id], "reconcile");
    if (release === undefined) return false;
    try {
      await this.#step(step, attachments, context);
    } catch (error) {
      context.signal.throwIfAborted();
      if (!VolumeError.is(error)) throw error;
      notes.warn("cannot reconcile a volume with the cluster; retrying", {
        ...fields,
        reason: error.message,
      });
    } finally {
      release();
    }
    return true;
  }

  async #step(
    step: ReconcileStep,
    attachments: readonly ClusterAttachment[],
    context: CallContext,
  ): Promise<void> {
    const { volume } = step;
    const { events } = this.#deps;
    const volumeId = volume.stored.id;
    const nodeIds = holdersOf(volume);
    const own = attachments.filter((one) => one.volumeId === volumeId);
    if (step.action === "restore") {
      const done = await restoreExport({ ...this.#deps, context }, volume, own);
      if (done) events.occurred({ kind: "export-restored", volumeId, nodeIds });
    } else if (step.action === "leave") {
      await this.#leave(volume, step.nodeId, context);
    } else if (step.action === "withdraw") {
      const isUnwanted = (now: readonly ClusterAttachment[]) => isStillUnwanted(volume, now);
      if (await this.#withdraw(volume, isUnwanted, context)) events.occurred(unwantedEvent(volume, true));
    } else {
      const { known } = step;
      // Attachments are read after the router: one that was published in between is no older than they are.
      const now = await readOwned({ ...this.#deps, context }, volumeId, "reconcile");
      if (now.volume?.stored.comment !== volume.stored.comment) return;
      const recorded = servedCounter(volume);
      const isStillOlder = (now: readonly ClusterAttachment[]) =>
        latestEpochOf(now.filter((one) => one.volumeId === volumeId)) > recorded;
      const done = await this.#withdraw(volume, isStillOlder, context);
      const withdrawn = volume.stored.exported && done;
      events.occurred({ kind: "older-epoch", volumeId, recorded, known, withdrawn });
    }
  }

  /** Takes a volume from one of its holders, if the cluster still wants it on others only. */
  async #leave(seen: OwnedVolume, nodeId: string, context: CallContext): Promise<void> {
    const { id, comment } = seen.stored;
    if (!isStillUnwantedOn(seen, nodeId, await this.#cluster.allAttachments(context))) return;
    const call = { ...this.#deps, context };
    const { view, volume } = await readOwned(call, id, "reconcile");
    if (volume === undefined || volume.stored.comment !== comment) return;
    await takeFrom(call, view, nodeId);
    const fields = { volume: id, node: nodeId };
    this.#deps.notes.warn("took a volume from a node that no VolumeAttachment names", fields);
  }

  /**
   * Withdraws a volume that is still as it was when that was decided, if the cluster still says so: nobody who has been
   * answered meanwhile that it is published may lose it.
   */
  async #withdraw(
    seen: OwnedVolume,
    isStillSo: (attachments: readonly ClusterAttachment[]) => boolean,
    context: CallContext,
  ): Promise<boolean> {
    const { id } = seen.stored;
    const attachments = await this.#cluster.allAttachments(context);
    if (!isStillSo(attachments)) return false;
    const known = latestEpochOf(attachments.filter(({ volumeId }) => volumeId === id));
    if (!await withdrawUnwanted({ ...this.#deps, context }, seen, known)) return false;
    const fields = { volume: id, holders: holdersOf(seen) };
    this.#deps.notes.warn("withdrew an export that no VolumeAttachment wants", fields);
    return true;
  }
}

function isOlder({ action }: ReconcileStep): boolean {
  return action === "older-epoch";
}

function isWithdrawal({ action }: ReconcileStep): boolean {
  return action === "withdraw" || action === "leave";
}

function holdersOf({ record }: OwnedVolume): string[] {
  return nodeIdsOf(record.holders);
}

function unwantedEvent(volume: OwnedVolume, withdrawn: boolean) {
  const { id } = volume.stored;
  return { kind: "export-unwanted", volumeId: id, nodeIds: holdersOf(volume), withdrawn } as const;
}
