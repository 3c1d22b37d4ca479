import type { ClusterAttachment, ReconciledCluster } from "../../volume/ports/cluster_view.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import type { HardwareFinding } from "../../volume/model/health/hardware.ts";
import type { HealthProblem } from "../../volume/model/health/health.ts";
import { withHardware } from "../../volume/rules/health/health.ts";
import { overdueMigration } from "../../volume/rules/migration_pairs.ts";
import { parseVolumeContext } from "../../volume/model/parameters.ts";
import { poolOf } from "../../volume/model/ids/ids.ts";
import type { Inventory } from "../../volume/model/inventory.ts";
import type { OwnedVolume } from "../../volume/model/record.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { runLimited } from "../../async/deadline.ts";
import { untilDone } from "../until_done.ts";
import { readVolumeHealth } from "../volumes/health.ts";
import { RouterBoots } from "./boots.ts";
import { Reconciler, type ReconcileSettings } from "./reconciler.ts";
import { readInventory, type VolumeInventory } from "../inventory.ts";
import { NamePlateWriter } from "../names/name_plates.ts";
import { migrateAll } from "../legacy/migrate_all.ts";
import { judgeOwnership } from "../../volume/rules/ownership.ts";
import type { ControllerDeps } from "../deps.ts";

/** What an operator sets for the loops. */
export interface ReconcileLoopSettings {
  /** How long the loops rest between two rounds, in milliseconds. */
  readonly intervalMs: number;
  readonly reconcile: ReconcileSettings;
  /** Whether the router is to show what people call volumes, see `NamePlateWriter`. */
  readonly namesOnRouter: boolean;
}

/** How long a round may take, in milliseconds. */
const cycleMs = 5 * 60_000;

/**
 * How long the loop rests at most while a round after a boot is still to come, or the router may still bring disks back with
 * older records, in milliseconds.
 */
const soonMs = 10_000;

/** In how many rounds the health of all volumes is looked at once: it takes several commands. */
const cyclesPerHealth = 5;

/** The most volumes in use for which the fault of an array or a drive is reported; the alert is about all. */
const maxEndangered = 50;
/** In how many rounds the name plates are looked at once. */
const cyclesPerNames = 10;

/** What was told of a volume that is not well: the reasons, and the faults of drives among them. */
interface ToldHealth {
  readonly reasons: string;
  readonly faults: readonly HardwareFinding[];
}

/** What a controller does on and on while it is the one that leads: one round after the other, each of one look. */
export class ReconcileLoop {
  readonly #deps: ControllerDeps;
  readonly #cluster: ReconciledCluster;
  readonly #settings: ReconcileLoopSettings;
  readonly #reconciler: Reconciler;
  readonly #boots: RouterBoots;
  readonly #names: NamePlateWriter;
  /** Whether the last round has seen a router that shows everything it has. */
  #isSettled = true;
  /** What was told of each volume that is not well. */
  #unwell: ReadonlyMap<string, ToldHealth> = new Map();
  /** The volumes in use above an array or a drive with a fault, of those that are told of it. */
  #endangered: ReadonlySet<string> = new Set();
  /** Volumes that wait for a node without the driver, by volume and node: in how many rounds each was seen. */
  #waiting: ReadonlyMap<string, number> = new Map();
  /** The last boot after which nothing was left that could be taken over. */
  #tookOverAfter = 0;
  #count = 0;
  /** Of the last round, where the name plates are to be compared with it. */
  #plated: Inventory | undefined;
  #complaint: string | undefined;

  /** @param boots of the router that `deps` asks without waiting for rounds */
  constructor(
    deps: ControllerDeps,
    cluster: ReconciledCluster,
    settings: ReconcileLoopSettings,
    boots: RouterBoots = new RouterBoots(deps.clock),
  ) {
    this.#deps = deps;
    this.#boots = boots;
    this.#cluster = cluster;
    this.#settings = settings;
    this.#reconciler = new Reconciler(deps, cluster, settings.reconcile);
    this.#names = new NamePlateWriter(deps, cluster, settings.namesOnRouter);
  }

  /** Goes on until the signal ends it. */
  async run(signal: AbortSignal): Promise<void> {
    const end = this.#boots.begin();
    try {
      while (!signal.aborted) {
        this.#boots.roundBegins();
        await this.#tryCycle(signal);
        this.#beginNames(signal);
        const { intervalMs } = this.#settings;
        const isSoon = !this.#boots.isCompared || !this.#isSettled;
        await this.#boots.rest(isSoon ? Math.min(intervalMs, soonMs) : intervalMs, signal);
      }
    } finally {
      end();
      await this.#names.ended();
    }
  }

  /** After the round, which must not wait for what people read. */
  #beginNames(signal: AbortSignal): void {
    if (this.#plated !== undefined) this.#names.begin(this.#plated, signal);
    this.#plated = undefined;
  }

  async #tryCycle(signal: AbortSignal): Promise<void> {
    const about = { name: "round", timeoutMs: cycleMs, signal };
    try {
      await runLimited(this.#deps.clock, about, (context) => this.#round(context));
      this.#complaint = undefined;
    } catch (error) {
      if (signal.aborted) return;
      const reason = messageOf(error);
      if (reason !== this.#complaint) {
        this.#deps.notes.warn("cannot compare the router with the cluster; retrying", { reason });
      }
      this.#complaint = reason;
    }
  }

  /** The look at the router has gone out of memory when the health of all volumes is read: that is another one. */
  async #round(context: CallContext): Promise<void> {
    const { inventory } = await this.#compare(context);
    const count = this.#count++;
    if (count % cyclesPerNames === 0) this.#plated = inventory;
    if (count % cyclesPerHealth === 0) await this.#readHealth(context);
  }

  async #compare(context: CallContext): Promise<VolumeInventory> {
    // The router first: what is held by then, and wanted by nobody afterwards, has been let go.
    const { reading, boot } = await this.#readRouter(context);
    const attachments = await this.#readCluster(context);
    this.#deps.projection.showAll(reading.turn, reading.volumes);
    for (const volume of reading.volumes) this.#reportOverdue(volume);
    this.#endangered = this.#chooseEndangered(reading.volumes);
    this.#reportWaiting(attachments);
    const compared = (isComplete: boolean) => this.#boots.compared(boot, isComplete);
    await this.#reconciler.pass(reading, attachments, context, compared);
    return await this.#takeOver(reading, boot, context) ? await this.#compare(context) : reading;
  }

  /** A look during which a boot was noticed may be from before it. */
  async #readRouter(
    context: CallContext,
  ): Promise<{ readonly reading: VolumeInventory; readonly boot: number }> {
    for (;;) {
      const boot = this.#boots.count;
      const reading = await readInventory(this.#deps, context);
      this.#isSettled = reading.inventory.upMs >= this.#deps.settings.settleMs;
      if (boot === this.#boots.count) return { reading, boot };
    }
  }

  /**
   * Takes over what a router that went back in time shows again as the legacy driver has left it: nodes may have been given
   * epochs since, and the node that was shut out has its export back. Returns whether anything was taken over.
   */
  async #takeOver({ inventory }: VolumeInventory, boot: number, context: CallContext): Promise<boolean> {
    const { cluster } = this.#deps.settings;
    if (this.#tookOverAfter === boot || !this.#isSettled) return false;
    const isLeft = inventory.volumes.some((stored) =>
      judgeOwnership(stored, cluster).state === "earlier-driver"
    );
    const { taken, mayTakeMore } = isLeft
      ? await migrateAll(this.#deps, context)
      : { taken: 0, mayTakeMore: false };
    if (!mayTakeMore) this.#tookOverAfter = boot;
    return taken > 0;
  }

  /** Without an API server calls go on as if there were no cluster to compare with. */
  async #readCluster(context: CallContext): Promise<readonly ClusterAttachment[]> {
    try {
      return await this.#cluster.allAttachments(context);
    } catch (error) {
      this.#boots.release();
      throw error;
    }
  }

  #reportOverdue(volume: OwnedVolume): void {
    const { clock, events } = this.#deps;
    if (volume.record.holders.length < 2) return;
    const overdue = overdueMigration(volume, this.#migrationTimeout(volume.stored.id), clock.now());
    if (overdue !== undefined) events.occurred({ kind: "migration-overdue", ...overdue });
  }

  /** In the second round that sees it, once: the attacher needs a moment to note whom it attaches to. */
  #reportWaiting(attachments: readonly ClusterAttachment[]): void {
    const waiting = new Map<string, number>();
    for (const { volumeId, nodeName, nodeId, attached, deleting } of attachments) {
      if (volumeId === undefined || nodeId !== undefined || attached || deleting) continue;
      const key = `${volumeId} ${nodeName}`;
      const rounds = (this.#waiting.get(key) ?? 0) + 1;
      waiting.set(key, rounds);
      if (rounds === 2) this.#deps.events.occurred({ kind: "node-without-driver", volumeId, nodeName });
    }
    this.#waiting = waiting;
  }

  /** In seconds. One volume whose context cannot be used must not keep the round from all others. */
  #migrationTimeout(id: string): number {
    const { settings } = this.#deps;
    try {
      return parseVolumeContext(this.#cluster.volumeContext(id) ?? {}, settings).migrationTimeoutSeconds;
    } catch (error) {
      if (!VolumeError.is(error, "invalid")) throw error;
      return parseVolumeContext({}, settings).migrationTimeoutSeconds;
    }
  }

  /** Whoever was told stays among them: nobody else is to be told that such a volume is healthy again. */
  #chooseEndangered(volumes: readonly OwnedVolume[]): ReadonlySet<string> {
    if (!this.#deps.hardware.isKnown) return this.#endangered;
    const above = volumes.filter(({ stored, record }) =>
      (record.holders.length > 0 || this.#endangered.has(stored.id)) &&
      this.#deps.hardware.faultsBelow(poolOf(stored.imagePath)).length > 0
    ).map(({ stored }) => stored.id);
    const isKnown = (id: string) => this.#endangered.has(id);
    return new Set([...above.filter(isKnown), ...above.filter((id) => !isKnown(id))].slice(0, maxEndangered));
  }

  /** Tells of what is other than the last time. While drives are unknown, what was told of them may still be so. */
  async #readHealth(context: CallContext): Promise<void> {
    const { events, hardware } = this.#deps;
    const report = (volumeId: string, problems: readonly HealthProblem[]) =>
      events.occurred({ kind: "health", volumeId, problems });
    const volumes = await readVolumeHealth(this.#deps, context);
    const unwell = new Map<string, ToldHealth>();
    for (const { id, problems: own, faults: now } of volumes) {
      const told = this.#unwell.get(id) ?? { reasons: "", faults: [] };
      const faults = !hardware.isKnown ? told.faults : this.#endangered.has(id) ? now : [];
      const problems = withHardware(own, faults);
      const reasons = problems.map(({ reason }) => reason).join();
      if (reasons !== told.reasons) report(id, problems);
      if (problems.length > 0) unwell.set(id, { reasons, faults });
    }
    const ids = new Set(volumes.map(({ id }) => id));
    for (const id of this.#unwell.keys()) if (!ids.has(id)) report(id, []);
    this.#unwell = unwell;
  }
}

/** How long a look may take, in milliseconds. */
const readMs = 60_000;

/**
 * Shows once who holds which volume, for whatever changed while no controller was there to show it. Tries again until the
 * router and the cluster have answered; ends early with the signal.
 *
 * @param readObjects reads the cluster's objects, so that only those that differ are written
 */
export async function showAtStart(
  deps: ControllerDeps,
  readObjects: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const complaint = "cannot show the holders of volumes yet";
  await untilDone(deps, { name: "show-at-start", timeoutMs: readMs, complaint }, signal, async (context) => {
    await readObjects(context.signal);
    const { turn, volumes } = await readInventory(deps, context);
    deps.projection.showAll(turn, volumes);
  });
}
