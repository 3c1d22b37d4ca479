import type { ControllerDeps } from "../../src/controller/deps.ts";
import { distrust, forget, VolumeMemory } from "../../src/controller/records/memory.ts";
import { RouterBoots } from "../../src/controller/reconcile/boots.ts";
import { migrateAtStart } from "../../src/controller/legacy/migrate_all.ts";
import { ReconcileLoop } from "../../src/controller/reconcile/loop.ts";
import { leadMs, leaseMs } from "../../src/kubernetes/election.ts";
import { parseComment } from "../../src/volume/model/record.ts";
import type { ClusterView } from "../../src/volume/ports/cluster_view.ts";
import type { VolumeStore } from "../../src/volume/ports/store.ts";
import type { FakeClock } from "../fakes/clock.ts";
import { controllerDeps } from "../fakes/controller_deps.ts";
import type { FakeVolumeStore } from "../fakes/volume_store.ts";
import type { ClusterObjects } from "./cluster_objects.ts";
import { Process } from "./process.ts";
import type { SharedVolumes } from "./shared_volumes.ts";
import { SlowApi } from "./slow_api.ts";
import type { ApiCutStep, IsolationStep, Setting } from "./schedule.ts";

/** How often a leader compares the router with the cluster, and how long an export is unwanted before it is withdrawn. */
const [intervalMs, unwantedMs] = [60_000, 300_000];

/** How long a controller that goes on takes to read the Lease, in milliseconds. */
const readsAfterMs = 1_000;

/** A process of the controller, and what it knows. */
export interface Controller {
  readonly process: Process;
  readonly deps: ControllerDeps;
  /** The rounds that calls wait for after a boot. */
  readonly boots: RouterBoots;
}

/** A leader that cannot renew its lead. */
interface Isolation {
  /** Lets the process go on, or reach the API server again. */
  readonly end: () => void;
  /** Stops the timers of its lead and of the Lease. */
  readonly cancel: () => void;
}

/** What the processes share. */
export interface ControllersParts {
  readonly clock: FakeClock;
  readonly store: FakeVolumeStore;
  readonly setting: Pick<
    Setting,
    "seed" | "remembers" | "graceMs" | "toggles" | "rounds" | "reconciles" | "roundMs"
  >;
  /** By how much the wall clock is ahead, in milliseconds. */
  readonly wallOffsetMs: () => number;
  /** Undefined without a cluster to ask. */
  readonly cluster?: ClusterObjects | undefined;
  /** Undefined where no volume is shared. */
  readonly shared?: SharedVolumes | undefined;
  /** The router as a process reaches it without a call, with commands of that duration. */
  readonly routerOf?: ((process: Process, signal: AbortSignal, commandMs: number) => VolumeStore) | undefined;
}

/**
 * The processes of the controller. One leads; others have led before and live on.
 *
 * The Lease is a model with the times of the product: a leader that reaches the API server has just renewed. One that
 * does not may serve until its lead ends, and another process leads when the Lease has not changed for long enough.
 */
export class Controllers {
  readonly #parts: ControllersParts;
  readonly #clock: FakeClock;
  #started = 0;
  #leader: Controller;
  /** Earlier leaders, the last one first. */
  #former: readonly Controller[] = [];
  readonly #isolated = new Map<Controller, Isolation>();
  /** What ends the rounds of each controller that compares. */
  readonly #rounds = new Map<Controller, AbortController>();

  constructor(parts: ControllersParts) {
    this.#parts = parts;
    this.#clock = parts.clock;
    this.#leader = this.#start();
    parts.store.booted = () => {
      for (const { boots } of [this.#leader, ...this.#former]) boots.noticed();
    };
  }

  /** The controller that has the Lease. A new one takes over at once from a dead one. */
  get leader(): Controller {
    if (this.#leader.process.isDead) this.#takeOver();
    return this.#leader;
  }

  /** The last earlier leader that lives; without one, the leader. */
  get former(): Controller {
    return this.#former.find(({ process }) => !process.isDead) ?? this.leader;
  }

  /** Whether a process stands still, or has sent something that has not reached the router. */
  get isSlow(): boolean {
    return [this.#leader, ...this.#former].some(({ process }) =>
      !process.isDead && (process.sending > 0 || process.isFrozen)
    );
  }

  /** Whether an image is being copied. */
  get isCopying(): boolean {
    return [this.#leader, ...this.#former].some(({ process }) => !process.isDead && process.copying > 0);
  }

  /** The leader dies. */
  kill(): void {
    this.#leader.process.die();
  }

  /** The leader stands still, or does not reach the API server, for some time. */
  isolate({ step, forMs, renewedMs }: IsolationStep): void {
    const { leader } = this;
    const { process } = leader;
    if (this.#isolated.has(leader)) return;
    this.#endSlow(process);
    const leftMs = leadMs - renewedMs;
    process.lead.holdUntil(this.#clock.monotonicMs() + leftMs);
    if (step === "freeze") process.freeze();
    else process.isWithoutApi = true;
    // The answers that have come while the process stood still may be read first.
    const interrupt = () =>
      process.whenAwake(() => timers.push(this.#clock.timer(0, () => this.#interrupt(leader))));
    const timers = [
      this.#clock.timer(leftMs, interrupt),
      this.#clock.timer(leaseMs - renewedMs, () => {
        if (this.#leader === leader && !this.#parts.cluster?.isAway) this.#takeOver();
      }),
    ];
    const end = () => {
      process.thaw();
      process.isWithoutApi = false;
      timers.push(this.#clock.timer(readsAfterMs, () => this.#rejoin(leader)));
    };
    timers.push(this.#clock.timer(forMs, end));
    this.#isolated.set(leader, { end, cancel: () => timers.forEach((cancel) => cancel()) });
  }

  /** No process reaches the API server for some time. */
  cutApi(cluster: ClusterObjects, { forMs, how, renews }: ApiCutStep): void {
    const { leader: { process } } = this;
    cluster.cut(how);
    this.#endSlow(process);
    if ((how === "slow" || how === "busy") && renews && !this.#isolated.has(this.#leader)) {
      process.slowApi = new SlowApi(
        process,
        how === "busy",
        (line) => this.#parts.store.violations.push(line),
      );
    }
    this.#clock.timer(forMs, () => {
      cluster.cut(undefined);
      this.#endSlow(process);
    });
    if (!renews) this.isolate({ step: "cut-controller", afterMs: 0, forMs, renewedMs: 0 });
  }

  #endSlow(process: Process): void {
    process.slowApi?.end();
    process.slowApi = undefined;
  }

  /** The leader does not reach the router for some time. */
  cutRouter(forMs: number): void {
    const { process } = this.leader;
    process.isWithoutRouter = true;
    this.#clock.timer(forMs, () => process.isWithoutRouter = false);
  }

  /** Ends all isolation. */
  mend(): void {
    for (const { process } of [this.#leader, ...this.#former]) {
      process.isWithoutRouter = false;
      this.#endSlow(process);
    }
    this.#parts.cluster?.cut(undefined);
    for (const [controller, { end }] of this.#isolated) {
      end();
      const { lead } = controller.process;
      if (lead.refusal() !== undefined) this.#interrupt(controller);
      this.#rejoin(controller);
    }
  }

  /** The lead has run out: what runs because of it ends. */
  #interrupt(controller: Controller): void {
    controller.process.lead.interrupt();
    this.#rounds.get(controller)?.abort();
    this.#rounds.delete(controller);
  }

  /** The process reads the Lease again: it goes on to lead, or ends because another one has led. */
  #rejoin(controller: Controller): void {
    const { process: { lead }, process, deps } = controller;
    this.#isolated.get(controller)?.cancel();
    this.#isolated.delete(controller);
    if (process.isDead) return;
    if (controller !== this.#leader) {
      lead.heldBy("another");
      return process.die();
    }
    if (lead.refusal() !== undefined) forget(deps);
    lead.holdUntil(Infinity);
    this.#beginRounds(controller);
  }

  #takeOver(): void {
    this.#former = [this.#leader, ...this.#former];
    this.#leader = this.#start();
    distrust(this.#leader.deps);
  }

  /** The controller compares the router with the cluster from now on, unless it does already. */
  #beginRounds(controller: Controller): void {
    const { routerOf, cluster, setting: { rounds, reconciles, roundMs } } = this.#parts;
    if (!rounds || routerOf === undefined || cluster === undefined || this.#rounds.has(controller)) return;
    const stop = new AbortController();
    this.#rounds.set(controller, stop);
    const { process, deps, boots } = controller;
    process.onDeath(() => stop.abort());
    const own = { ...deps, store: routerOf(process, stop.signal, roundMs) };
    const mode = reconciles ? "on" : "off";
    const settings = { intervalMs, reconcile: { mode, graceMs: unwantedMs }, namesOnRouter: true } as const;
    const loop = new ReconcileLoop(own, cluster.viewFor(process), settings, boots);
    void loop.run(stop.signal);
  }

  /** Starts a process that leads and knows nothing. */
  #start(): Controller {
    const controller = this.startForPerson(this.#parts.setting.remembers);
    this.#beginRounds(controller);
    void this.#migrate(controller);
    return controller;
  }

  /** What a leader does once: it takes volumes over from the legacy driver. Where there are none, it asks the cluster nothing. */
  async #migrate({ process, deps }: Controller): Promise<void> {
    const { store: { disks, violations }, cluster, routerOf } = this.#parts;
    if (cluster === undefined || routerOf === undefined) return;
    const stop = new AbortController();
    process.onDeath(() => stop.abort());
    const view = cluster.viewFor(process);
    const clusterView: ClusterView = {
      ...view,
      assertAttachmentsReadable: (context) => {
        const isAny = disks.values().some(({ comment }) => parseComment(comment).state === "none");
        if (!isAny) {
          violations.push("the cluster was asked who has the legacy driver's volumes, and there are none");
        }
        return view.assertAttachmentsReadable(context);
      },
    };
    await migrateAtStart({ ...deps, clusterView, store: routerOf(process, stop.signal, 0) }, stop.signal);
  }

  /** Starts a process that knows nothing, as a person's command is one. */
  startForPerson(remembers = false): Controller {
    const { store, setting: { seed, graceMs, toggles }, wallOffsetMs, cluster, shared } = this.#parts;
    const growth = toggles ? { growth: "after-toggle", growsByToggle: true } as const : {};
    const process = new Process(this.#clock, wallOffsetMs);
    const deps = controllerDeps({
      store,
      clock: process.clock,
      settings: { copyReturns: "when-done", unexportGraceMs: graceMs, ...growth },
      seed: seed * 100 + ++this.#started,
      clusterView: cluster?.viewFor(process),
      isOnly: true,
    });
    process.lead.holdUntil(Infinity);
    const boots = new RouterBoots(process.clock);
    const ports = shared &&
      { pairs: shared.pairsFor(process), detachedNodes: shared.detachedNodesFor(process) };
    const memory = new VolumeMemory(deps.clock, remembers);
    return { process, deps: { ...deps, ...ports, memory }, boots };
  }
}
