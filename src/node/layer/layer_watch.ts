import { Semaphore } from "../../async/semaphore.ts";
import { withDeadline } from "../../async/deadline.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import { nqnOfMapUuid } from "../../volume/model/device_layer.ts";
import { parseExportNqn } from "../../volume/model/nqn.ts";
import {
  type ConnectionSettings,
  type StagingState,
  withUniqueId,
} from "../../volume/model/staging/state.ts";
import type { DeviceMap } from "../../volume/ports/device_maps.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { NodeDeps, VolumeLock } from "../deps.ts";
import { DoubtfulConnections } from "../connections/doubtful_connections.ts";
import type { Fencing } from "../fencing/fencing.ts";
import type { OfferedReads } from "../fencing/offered_reads.ts";
import { type Restored, restorePath, type WaitingMap } from "./restore_path.ts";

/** From one check to the next: I/O that waits for a router goes on within seconds. */
const intervalMs = 1_000;
/** The longest pause between two attempts to bring a device back, in milliseconds. */
const maxPauseMs = 3_000;
/** How long the check of one volume may take. */
const volumeMs = 60_000;
/** How long it may take to give up a volume whose check did not finish, in milliseconds. */
const giveUpMs = 30_000;
/** How many volumes are worked on at once. */
const maxAtOnce = 8;
/** The default of the kernel's initiator. */
const defaultCtrlLossTmo = 1800;

/** Options of {@linkcode LayerWatch}. */
export interface LayerWatchOptions {
  readonly deps: NodeDeps;
  readonly fencing: Fencing;
  /** The locks of the calls that change volumes. */
  readonly lock: VolumeLock;
}

/** What is known of a map in trouble, from one check to the next. */
interface Trouble {
  /** When the trouble was seen first, by the monotonic clock. */
  readonly sinceMs: number;
  /** When the map was worked on last, by the same clock; undefined before the first time. */
  attendedMs?: number;
  /** The last text that was logged about it. */
  said?: string;
}

/** What a check has seen of a map. */
interface Seen {
  readonly isLive: boolean;
  /** Whether its I/O goes on now. */
  readonly goesOn: boolean;
  /** Whether it made no progress, or was away. */
  readonly isStalled: boolean;
}

/**
 * Checks this driver's maps every second, and puts each map whose device is gone onto the device that came back. While
 * all is well it reads only /sys. It gives up a volume that waits too long: see `ctrlLossTmo`.
 *
 * It does not wait for a volume's lock: the call that holds the lock may wait for the very device.
 */
export class LayerWatch {
  readonly #options: LayerWatchOptions;
  readonly #stop = new AbortController();
  readonly #working = new Set<string>();
  readonly #troubles = new Map<string, Trouble>();
  /** The progress of each map at the last check, by UUID. */
  readonly #progress = new Map<string, string>();
  /** UUIDs of maps whose state file names the device that they are on. */
  readonly #settled = new Set<string>();
  /** UUIDs of maps whose path was made to fail when its connection was not live: it has to be loaded again. */
  readonly #wasAway = new Set<string>();
  /** UUIDs of maps whose path was made to fail since they were last seen live, or put onto their device. */
  readonly #failed = new Set<string>();
  /** UUIDs of maps that had no state file at the last check, which has been reported. */
  readonly #unknown = new Set<string>();
  /** UUIDs of maps that no longer queue. */
  readonly #ended = new Set<string>();
  readonly #doubtful: DoubtfulConnections;
  readonly #atOnce = new Semaphore(maxAtOnce);
  #running: Promise<void> = Promise.resolve();

  constructor(options: LayerWatchOptions) {
    this.#options = options;
    this.#doubtful = new DoubtfulConnections(options.deps, options.lock);
  }

  /** Starts checking, and returns at once. */
  start(): void {
    if (this.#options.deps.maps !== undefined) this.#running = this.#run();
  }

  /** Resolves when no check is running. */
  async stop(): Promise<void> {
    this.#stop.abort(new VolumeError("cancelled", "The driver stops"));
    await this.#running;
  }

  /** Checks all maps once. It never fails: a failure is logged, and the next check tries again. */
  async check(): Promise<void> {
    await this.#doubtful.check(this.#stop.signal);
    const all = await this.#options.deps.maps!.list();
    this.#forgetOthers(new Set(all.map(({ uuid }) => uuid)));
    if (all.length === 0) return;
    const { deps, fencing } = this.#options;
    const whole = { requestId: "layer", signal: this.#stop.signal };
    const [live, reads] = [await deps.connector.live(whole), fencing.newReads()];
    await Promise.all(all.map((map) => this.#checkOne(map, live, reads)));
  }

  /** Starts each check without waiting for the one before, so that a volume that hangs delays no other. */
  async #run(): Promise<void> {
    const { deps } = this.#options;
    const { signal } = this.#stop;
    const looks = new Set<Promise<void>>();
    while (!signal.aborted) {
      const look: Promise<void> = this.check()
        .catch((error) => deps.notes?.warn("cannot check maps", { reason: messageOf(error) }))
        .finally(() => looks.delete(look));
      looks.add(look);
      await deps.clock.sleep(intervalMs, signal).catch(() => {
        // `stop()` was called.
      });
    }
    await Promise.all(looks);
  }

  async #checkOne(map: DeviceMap, live: ReadonlySet<string>, reads: OfferedReads): Promise<void> {
    const { uuid } = map;
    if (this.#working.has(uuid)) return;
    const isStalled = this.#isStalled(map);
    const isLive = live.has(this.#names(map).nqn);
    if (!isLive) this.#wasAway.add(uuid);
    else this.#failed.delete(uuid);
    const goesOn = isLive && map.on !== undefined && !isStalled;
    const isWell = goesOn && !this.#wasAway.has(uuid);
    if (isWell && this.#settled.has(uuid)) {
      this.#recovered(map);
      return;
    }
    // A stage may have made a new map of the same UUID, which queues: only its table shows that.
    const isOver = this.#ended.has(uuid) && !isLive;
    const isNewOutage = !isLive && !this.#failed.has(uuid);
    if (!isWell && (isOver || (!isNewOutage && this.#isTooSoon(uuid)))) return;
    this.#working.add(uuid);
    this.#settled.delete(uuid);
    this.#ended.delete(uuid);
    const { deps } = this.#options;
    const { clock } = deps;
    const whole = { requestId: `layer-${map.name}`, signal: this.#stop.signal };
    try {
      await withDeadline(clock, whole, volumeMs, `look at the map ${map.name}`, async (context) => {
        const seen = { isLive, goesOn, isStalled: isStalled || this.#wasAway.has(uuid) };
        await this.#atOnce.run(context.signal, () => this.#attend(map, seen, reads, context));
      });
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      this.#say(map, messageOf(error));
      await this.#endIfOverdue(map, whole);
    } finally {
      this.#working.delete(uuid);
    }
  }

  /** Whether I/O waits in the map and none has completed since the last check: its path may have failed. */
  #isStalled({ uuid, pending, completed }: DeviceMap): boolean {
    const before = this.#progress.get(uuid);
    const now = pending === 0 ? "" : String(completed);
    this.#progress.set(uuid, now);
    return now !== "" && before === now;
  }

  async #attend(
    map: DeviceMap,
    { isLive, goesOn, isStalled }: Seen,
    reads: OfferedReads,
    context: CallContext,
  ): Promise<void> {
    const { deps } = this.#options;
    const stagingState = await this.#stateOf(map);
    if (stagingState === undefined) return await this.#attendUnknown(map, goesOn, context);
    this.#unknown.delete(map.uuid);
    // After a reconnect the kernel would send writes before it has checked which namespace is there.
    if (!isLive && !this.#failed.has(map.uuid)) {
      await deps.maps!.failPath(map, context);
      this.#failed.add(map.uuid);
    }
    const restored = await this.#tryRestore({ map, isStalled, stagingState, reads }, context);
    if (restored.state === "ready") {
      if (await this.#adopt(stagingState, restored.uniqueId)) this.#settled.add(map.uuid);
      this.#wasAway.delete(map.uuid);
      this.#failed.delete(map.uuid);
      if (!restored.isRestored) return this.#recovered(map);
      // Only the next check shows whether I/O goes on there.
      this.#say(map, "its device is back; retrying the interrupted step");
    } else this.#say(map, restored.why);
    if (restored.state === "ended") this.#waitsNoMore(map.uuid);
    else if (this.#isOverdue(map, stagingState.intent.connection)) await this.#giveUp(map, context);
  }

  /**
   * Without a state file nothing shows which device is the volume's, so nothing brings it back. What waits is reported, and
   * ended after the default time, as nothing else ever ends it. Maps of another prefix are left to whoever made them.
   */
  async #attendUnknown(map: DeviceMap, goesOn: boolean, context: CallContext): Promise<void> {
    const { maps, notes, settings: { nqnPrefix } } = this.#options.deps;
    if (!this.#unknown.has(map.uuid)) notes?.warn("left a map without a state file alone", this.#names(map));
    this.#unknown.add(map.uuid);
    // In a map without a table nothing waits: a stage is making it.
    if (goesOn || map.sizeBytes === 0n) return this.#recovered(map);
    if (parseExportNqn(nqnOfMapUuid(map.uuid, nqnPrefix), nqnPrefix) === undefined) return;
    this.#say(map, "its state file is lost or damaged, so that its device is not brought back");
    if (!this.#isOverdue(map, {})) return;
    if ((await maps!.table(map, context)).queues) await this.#giveUp(map, context);
    else this.#waitsNoMore(map.uuid);
  }

  async #giveUp(map: DeviceMap, context: CallContext): Promise<void> {
    const { deps } = this.#options;
    deps.notes?.warn("giving up a volume that waited for longer than its ctrlLossTmo", this.#names(map));
    await deps.maps!.endQueueing(map, context);
    deps.events.occurred({ kind: "wait-given-up" });
    this.#waitsNoMore(map.uuid);
  }

  /** Gives up a map that is overdue even if every attempt to work on it hangs. */
  async #endIfOverdue(map: DeviceMap, whole: CallContext): Promise<void> {
    const { clock } = this.#options.deps;
    try {
      await withDeadline(clock, whole, giveUpMs, `give up the map ${map.name}`, async (context) => {
        const stagingState = await this.#stateOf(map);
        if (this.#isOverdue(map, stagingState?.intent.connection ?? {})) await this.#giveUp(map, context);
      });
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#say(map, messageOf(error));
    }
  }

  /** Notes that the map no longer queues: writes to it fail from now on. */
  #waitsNoMore(uuid: string): void {
    this.#ended.add(uuid);
    this.#reportWaiting(uuid, false);
  }

  /** A device that is refused is treated like one that is away: I/O waits for a person until `ctrlLossTmo` is over. */
  async #tryRestore(waiting: WaitingMap, context: CallContext): Promise<Restored> {
    try {
      return await this.#restore(waiting, context);
    } catch (error) {
      context.signal.throwIfAborted();
      if (!VolumeError.is(error)) throw error;
      const isNew = this.#say(waiting.map, error.message);
      const isMismatch = VolumeError.is(error, "identity-mismatch");
      if (isNew && isMismatch) this.#options.deps.events.occurred({ kind: "identity-mismatch" });
      return { state: "waiting", why: error.message };
    }
  }

  /** An unstage may have run in between: then the connection that was made again belongs to no volume. */
  async #restore(waiting: WaitingMap, context: CallContext): Promise<Restored> {
    try {
      return await restorePath(this.#options.deps, waiting, context);
    } finally {
      await this.#doubtful.dropIfUnstaged(waiting.stagingState, context);
    }
  }

  async #stateOf({ uuid }: DeviceMap): Promise<StagingState | undefined> {
    const { nqnPrefix } = this.#options.deps.settings;
    const nqn = nqnOfMapUuid(uuid, nqnPrefix);
    const name = parseExportNqn(nqn, nqnPrefix);
    const state = name && await this.#options.deps.stagingStore.findUndamaged(name.volumeId);
    return state?.intent.nqn === nqn && state.intent.map === "multipath" ? state : undefined;
  }

  /** Records the device that replaced the earlier one; returns false while a call holds the lock. */
  async #adopt({ volumeId, intent: { stagingPath, nqn } }: StagingState, uniqueId: string): Promise<boolean> {
    const release = this.#options.lock.tryTake([volumeId, stagingPath]);
    if (release === undefined) return false;
    try {
      const state = await this.#options.deps.stagingStore.findUndamaged(volumeId);
      const device = state?.here.device;
      if (state?.intent.nqn !== nqn || device === undefined || device.uniqueId === uniqueId) return true;
      await this.#options.deps.stagingStore.write(withUniqueId(state, uniqueId));
      return true;
    } finally {
      release();
    }
  }

  #forgetOthers(uuids: ReadonlySet<string>): void {
    for (const uuid of this.#troubles.keys()) if (!uuids.has(uuid)) this.#reportWaiting(uuid, false);
    for (
      const kept of [
        ...[this.#troubles, this.#progress, this.#settled, this.#wasAway, this.#failed],
        ...[this.#unknown, this.#ended],
      ]
    ) {
      for (const uuid of kept.keys()) if (!uuids.has(uuid)) kept.delete(uuid);
    }
  }

  /** Retries less often the longer a router has been away. */
  #isTooSoon(uuid: string): boolean {
    const trouble = this.#troubles.get(uuid);
    if (trouble === undefined) return false;
    const nowMs = this.#options.deps.clock.monotonicMs();
    if (trouble.attendedMs !== undefined) {
      const pauseMs = Math.min(maxPauseMs, (trouble.attendedMs - trouble.sinceMs) / 20);
      if (nowMs - trouble.attendedMs < pauseMs) return true;
    }
    trouble.attendedMs = nowMs;
    return false;
  }

  #isOverdue(
    { uuid }: DeviceMap,
    { ctrlLossTmo = defaultCtrlLossTmo }: ConnectionSettings,
  ): boolean {
    const sinceMs = this.#troubles.get(uuid)?.sinceMs ?? Infinity;
    return ctrlLossTmo >= 0 && this.#options.deps.clock.monotonicMs() - sinceMs >= ctrlLossTmo * 1000;
  }

  /** Logs one line for each change, not for each check. Returns whether it logged one. */
  #say(map: DeviceMap, why: string): boolean {
    const { notes, clock } = this.#options.deps;
    const known = this.#troubles.get(map.uuid);
    const trouble: Trouble = known ?? { sinceMs: clock.monotonicMs() };
    this.#troubles.set(map.uuid, trouble);
    if (known === undefined) this.#reportWaiting(map.uuid, true);
    if (trouble.said === why) return false;
    trouble.said = why;
    notes?.warn("writes to a volume wait", { ...this.#names(map), why });
    return true;
  }

  #recovered(map: DeviceMap): void {
    const trouble = this.#troubles.get(map.uuid);
    if (trouble === undefined) return;
    this.#troubles.delete(map.uuid);
    this.#reportWaiting(map.uuid, false);
    const waitedMs = Math.round(this.#options.deps.clock.monotonicMs() - trouble.sinceMs);
    this.#options.deps.notes?.info("writes to a volume continue", { ...this.#names(map), waitedMs });
  }

  #reportWaiting(uuid: string, waits: boolean): void {
    const { events, settings: { nqnPrefix } } = this.#options.deps;
    const name = parseExportNqn(nqnOfMapUuid(uuid, nqnPrefix), nqnPrefix);
    if (name !== undefined) events.occurred({ kind: "waiting", volumeId: name.volumeId, waits });
  }

  #names({ name, uuid }: DeviceMap): { readonly map: string; readonly nqn: string } {
    return { map: name, nqn: nqnOfMapUuid(uuid, this.#options.deps.settings.nqnPrefix) };
  }
}
