import { comparedStore } from "../../src/controller/reconcile/compared_store.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import type { VolumeStore } from "../../src/volume/ports/store.ts";
import type { CallContext } from "../../src/volume/ports/system.ts";
import { FakeClock } from "../fakes/clock.ts";
import { sharedBlock } from "../fakes/controller_deps.ts";
import { ext4 } from "../fakes/node_deps.ts";
import { FakeVolumeStore } from "../fakes/volume_store.ts";
import { Attacher } from "./attacher.ts";
import { ClusterObjects } from "./cluster_objects.ts";
import {
  type ControllerCall,
  ControllerCalls,
  type ControllerStep,
  type Published,
  snapshotIds,
  volumeIdsOf,
} from "./controller_calls.ts";
import { Controllers } from "./controllers.ts";
import { type Answer, detailsOf, type HistoryEvent } from "./events.ts";
import { Hands } from "./hands.ts";
import { HistoryNode } from "./node.ts";
import { isOfNode, type NodeCall, NodeCalls } from "./node_calls.ts";
import { Observer, putOthers } from "./observer.ts";
import { putEarlier } from "./origins.ts";
import { Outside } from "./outside.ts";
import { RouterImages } from "./router_images.ts";
import { Process } from "./process.ts";
import { type LinkEnds, routerLink, type Sent, undisturbed } from "./router_link.ts";
import { SharedVolumes } from "./shared_volumes.ts";
import {
  type CallStep,
  idOf,
  isCalm,
  nodeNames,
  type OtherStep,
  type Setting,
  sharingNodeNames,
  smooth,
  type Step,
  volumeNames,
} from "./schedule.ts";

type Call = Extract<HistoryEvent, { kind: "call" }>;

/** How long a router's boot, the time until a withdrawal, and some rounds take together, in milliseconds. */
const restMs = 600_000;

/** Runs a schedule on controllers, nodes and a router in memory, with a fake clock. Returns the history. */
export async function runSchedule(steps: readonly Step[], setting: Setting): Promise<HistoryEvent[]> {
  const cluster = new Cluster(setting);
  for (const step of steps) await cluster.take(step);
  await cluster.end();
  return cluster.history;
}

class Cluster {
  readonly history: HistoryEvent[] = [];
  readonly #setting: Setting;
  readonly #clock = new FakeClock();
  readonly #store = new FakeVolumeStore(this.#clock);
  readonly #images = new RouterImages(
    this.#store,
    (event) => this.history.push(event),
    () => this.#observe(),
  );
  readonly #nodes: readonly HistoryNode[];
  readonly #nodeCalls: NodeCalls;
  /** What of the cluster matters to volumes that are shared; undefined where none is. */
  readonly #shared: SharedVolumes | undefined;
  readonly #controllers: Controllers;
  readonly #outside: Outside;
  #wallOffsetMs = 0;
  #calls = 0;
  #writes = 0;
  /** The cluster's objects; undefined where controllers have none to ask. */
  readonly #objects: ClusterObjects | undefined;
  /** The publish contexts that were ever given to nodes, by `volume node`. */
  readonly #contexts = new Map<string, Readonly<Record<string, string>>>();
  /** The ids of deleted volumes and snapshots, which Kubernetes never makes again. */
  readonly #deleted = new Set<string>();
  readonly #observer: Observer;
  readonly #hands: Hands;
  readonly #controllerCalls: ControllerCalls;
  #background: Promise<void>[] = [];
  /** How many calls that no step waits for send slow commands. */
  #slowCalls = 0;
  /** Whether nothing has gone wrong since the beginning. */
  #isCalm: boolean;
  /** Whether a person has changed something. */
  #isByHand = false;
  /** Undefined where controllers have no cluster to ask. */
  readonly #attacher: Attacher | undefined;

  constructor(setting: Setting) {
    this.#setting = setting;
    this.#isCalm = setting.origin === "made" && !setting.shared && setting.maxComment === Infinity &&
      !setting.growsNothing && !setting.toggles;
    const store = this.#store;
    const [names, capability] = setting.shared ? [sharingNodeNames, sharedBlock] : [nodeNames, ext4];
    this.#nodes = names.map((name) => new HistoryNode(name, this.#clock, this.#images, capability));
    this.#nodeCalls = new NodeCalls(this.#nodes, () => this.#shared?.report());
    this.#controllerCalls = new ControllerCalls((id) => this.#observer.hasImage(id), setting);
    store.lingerMs = setting.graceMs;
    store.maxComment = setting.maxComment;
    store.growsNothing = setting.growsNothing;
    store.growsAfterToggle = setting.toggles;
    if (!setting.subvolumes) {
      store.pools = store.pools.map((pool) => ({ ...pool, filesystem: "xfs", subvolumeLabel: undefined }));
    }
    if (setting.others) putOthers(store);
    const record = (event: HistoryEvent) => this.history.push(event);
    const legacy = setting.origin === "legacy" ? [this.#idOf(smooth.volume)] : [];
    this.#objects = setting.cluster ? new ClusterObjects(record, legacy, 3 * setting.roundMs) : undefined;
    const origin = putEarlier(setting, { store, objects: this.#objects, record });
    this.#hands = new Hands(store, origin.path);
    store.isTold = (nqn) => this.#hands.isTold(nqn);
    this.#observer = new Observer(store, this.#images, this.#volumeIds, snapshotIds, record, origin);
    this.#shared = setting.shared ? this.#sharing(names) : undefined;
    this.#controllers = new Controllers({
      clock: this.#clock,
      store,
      setting,
      wallOffsetMs: () => this.#wallOffsetMs,
      cluster: this.#objects,
      shared: this.#shared,
      routerOf: (process, signal, commandMs) => this.#link(process, signal, commandMs),
    });
    this.#outside = new Outside({
      clock: this.#clock,
      store,
      images: this.#images,
      hands: this.#hands,
      nodes: this.#nodes,
      controllers: this.#controllers,
      shared: this.#shared,
      record,
      advance: (ms) => this.#advance(ms),
      isSlow: () => this.#isSlow,
      isUnwanted: (id) => this.#deleted.has(id),
      isWanted: (id) => this.#objects?.isWanted(id) ?? false,
      idOf: (volume) => this.#idOf(volume),
      name: (node, isNamed) => this.#objects?.name(node, isNamed),
      nameTwice: (id, isTwice) => this.#objects?.nameTwice(id, isTwice),
    });
    this.#attacher = this.#objects && this.#anAttacher(this.#objects);
    if (setting.resyncs) this.#attacher?.begin();
    this.#observe();
  }

  #idOf(volume: string): string {
    return idOf(volume, this.#setting);
  }

  get #volumeIds(): readonly [string, string] {
    return volumeIdsOf(this.#setting);
  }

  #sharing(names: readonly string[]): SharedVolumes {
    const usedOn = (node: string) => this.#nodeCalls.usedOn(node);
    const record = (event: HistoryEvent) => this.history.push(event);
    const parts = { clock: this.#clock, objects: this.#objects!, nodeNames: names, usedOn, record };
    return new SharedVolumes(this.#volumeIds, { ...parts, pairs: this.#setting.pairs });
  }

  #anAttacher(objects: ClusterObjects): Attacher {
    return new Attacher({
      clock: this.#clock,
      store: this.#store,
      objects,
      leader: () => this.#controllers.leader,
      routerOf: (process, signal) => this.#link(process, signal, 0),
      volumeIds: this.#volumeIds,
      record: (event) => this.history.push(event),
      asks: (call) => {
        this.#isCalm = false;
        this.#background.push(this.#call({ ...call, waits: false }));
      },
    });
  }

  async take(step: Step): Promise<void> {
    this.#outside.begins();
    this.#objects?.begins();
    this.#isCalm &&= isCalm(step);
    this.#isByHand ||= step.step === "note" || step.step === "hand";
    if ("commandMs" in step) await this.#call(step);
    else await this.#other(step);
    this.#observe();
  }

  /** Lets all started work end, and deletes everything, with retries; then nothing may be left. */
  async end(): Promise<void> {
    this.#attacher?.end();
    this.#controllers.mend();
    this.#hands.undo();
    for (const id of this.#volumeIds) this.#objects?.nameTwice(id, false);
    for (const node of this.#nodes) node.cut(undefined);
    this.#store.runLate();
    await this.#until(Promise.all(this.#background), 200_000);
    // What these have sent and given up comes before nothing is asked any more.
    this.#store.runLate();
    this.#observe();
    await this.#rest();
    for (let tries = 0; tries < 6 && this.#observer.left().length > 0; tries++) {
      this.#store.runLate();
      if (tries > 0) await this.#advance(130_000);
      for (const volume of volumeNames) {
        for (const { name: node } of this.#nodes) {
          for (const step of ["unstage", "unpublish"] as const) {
            await this.#call({ ...smooth, step, volume, node });
          }
        }
      }
      for (const step of ["deleteSnapshot", "delete"] as const) {
        for (const volume of volumeNames) await this.#call({ ...smooth, step, volume });
      }
    }
    for (const of of this.#observer.left()) this.history.push({ kind: "left", of });
  }

  /** Gives the leader the time to compare the router with the cluster, where it does that. */
  async #rest(): Promise<void> {
    if (!this.#setting.rests || this.#controllers.leader.process.isDead) return;
    this.history.push({ kind: "resting" });
    await this.#advance(restMs);
    const wanted = this.#setting.reconciles ? this.#objects!.wanted() : undefined;
    this.history.push({ kind: "rested", wanted, cuts: this.#setting.maxComment < Infinity });
  }

  async #other(step: OtherStep): Promise<void> {
    const node = "node" in step ? this.#nodeOf(step.node) : undefined;
    switch (step.step) {
      case "write":
        node!.write(this.#idOf(step.volume), `write-${++this.#writes}`);
        break;
      case "read": {
        const of = this.#idOf(step.volume);
        const read = node!.read(of);
        if (read !== undefined) this.history.push({ kind: "read", node: step.node, of, value: read.value });
        break;
      }
      case "look":
        await this.#until(node!.look(), 60_000);
        break;
      case "crash-node":
        this.history.push({ kind: "crashed", node: step.node });
        this.#nodeCalls.crash(step.node);
        break;
      case "restart-driver":
        node!.restartDriver();
        break;
      case "take-over":
        this.#controllers.kill();
        break;
      case "freeze":
      case "cut-controller":
        await this.#advance(step.afterMs);
        this.#controllers.isolate(step);
        break;
      case "cut-api":
        if (this.#objects !== undefined) this.#controllers.cutApi(this.#objects, step);
        break;
      case "cut-node":
        node!.cut(step.cuts);
        this.#clock.timer(step.forMs, () => node!.cut(undefined));
        break;
      case "blank":
        this.#outside.blank(step);
        break;
      case "reboot":
        await this.#outside.reboot(step);
        break;
      case "restore-cluster":
        this.#objects?.restore(step.forgets);
        break;
      case "resync":
        await this.#resync();
        break;
      case "wait":
        if (step.late) this.#store.runLate();
        await this.#advance(step.ms);
        break;
      case "clock":
        this.#wallOffsetMs += step.byMs;
        break;
      default:
        await this.#outside.take(step);
    }
  }

  /** Whether a command that follows from a read may be under way for long. */
  get #isSlow(): boolean {
    return this.#slowCalls > 0 || this.#controllers.isSlow;
  }

  /** An attacher compares now, and whoever waits for what it then asks. */
  async #resync(): Promise<void> {
    if (this.#attacher === undefined) return;
    const listing = this.#attacher.unconfirmed();
    await this.#until(listing, smooth.timeoutMs);
    for (const call of await listing) await this.#call(call);
  }

  /** Where volumes are not made again, as of Kubernetes, none is that was deleted. Only what is published is staged. */
  async #call(step: CallStep): Promise<void> {
    const id = this.#idOf(step.volume);
    const objects = this.#objects;
    const publishContext = objects === undefined
      ? this.#contexts.get(`${id} ${step.node}`)
      : objects.contextOf(id, step.node);
    if (isOfNode(step)) {
      const call = this.#nodeCalls.of(step, id, publishContext);
      return call && await this.#onNode(step, call);
    }
    if (step.step === "import" || step.step === "adopt") return await this.#onPerson(step, id);
    const isDetaching = step.step === "publish" && objects?.isDetaching(id, step.node) === true;
    const call = this.#controllerCalls.of(
      isDetaching ? "unpublish" : step.step as ControllerStep,
      id,
      step,
    );
    const { verb, of } = call;
    if (verb === "delete") this.#deleted.add(of);
    else if (verb === "create" && this.#deleted.has(of) && !this.#setting.recreates) return;
    else if (step.step === "create" && this.#setting.origin !== "made") return;
    await this.#onController(step, call);
  }

  /** A person runs a command, which is a process of its own. Nobody imports or takes over what is to be deleted. */
  async #onPerson(step: CallStep, id: string): Promise<void> {
    const objects = this.#objects;
    if (this.#deleted.has(id)) return;
    if (step.step === "import") {
      const of = step.ofOthers ? `other-${step.volume}` : id;
      return await this.#onController(
        step,
        this.#controllerCalls.import(of),
        this.#controllers.startForPerson(),
      );
    }
    // Once this driver has given it an epoch, a person has nothing to say.
    if (objects === undefined || objects.hasEpoch(id)) return;
    const nodes = objects.complete().filter(({ volumeId }) => volumeId === id).map(({ nodeName }) =>
      nodeName
    );
    const call = this.#controllerCalls.adopt(id, nodes);
    await this.#onController(step, call, this.#controllers.startForPerson());
  }

  /** Calls the leading controller, or the one that led before. */
  async #onController(
    step: CallStep,
    { send, ...call }: ControllerCall,
    controller = step.toFormer ? this.#controllers.former : this.#controllers.leader,
  ): Promise<void> {
    const { process, deps, boots } = controller;
    const sent: Sent = { commands: 0, changes: 0, isRefused: false };
    const keys = call.verb === "list" ? [] : call.verb === "snapshot" ? [call.of, call.source!] : [call.of];
    const done = this.#answered(step, call, process, async (context) => {
      await process.alive();
      const release = deps.locks.tryTake(keys, call.verb);
      if (release === undefined) throw new VolumeError("busy", "Cannot change it because another call does");
      const link = routerLink({ ...this.#ends(process), signal: context.signal, sent }, step);
      const store = this.#setting.rounds ? comparedStore(link, boots) : link;
      try {
        const result = await process.lead.during(context, (context) => send({ ...deps, store }, context));
        const { publishContext } = (result ?? {}) as Published;
        if (publishContext !== undefined) this.#contexts.set(`${call.of} ${call.node}`, publishContext);
        return result;
      } finally {
        release();
      }
    }, { sent });
    if (step.waits) return await this.#until(done, 2 * step.timeoutMs);
    const slow = step.commandMs.some((ms) => ms > 0) ? 1 : 0;
    this.#slowCalls += slow;
    this.#background.push(done.finally(() => this.#slowCalls -= slow));
  }

  #link(process: Process, signal: AbortSignal, commandMs: number): VolumeStore {
    return routerLink({ ...this.#ends(process), signal }, { commandMs: [commandMs] });
  }

  #ends(process: Process): Omit<LinkEnds, "signal"> {
    return { store: this.#store, process, clock: this.#clock, observe: () => this.#observe() };
  }

  /** A kubelet calls its node. */
  async #onNode(step: CallStep, { process, send, answered, ...call }: NodeCall): Promise<void> {
    const onAnswer = (error: string | undefined) => {
      const what = answered(error);
      if (what !== undefined) this.history.push({ kind: "given-up", node: step.node, of: call.of, what });
    };
    const done = this.#answered(step, call, process, send, { onAnswer });
    if (step.waits) await this.#until(done, 2 * step.timeoutMs);
    else this.#background.push(done);
  }

  /** Records a call and its one answer: when the call ends, when its time is over, or when the process dies. */
  async #answered(
    step: CallStep,
    about: Omit<Call, "kind" | "call">,
    process: Process,
    work: (context: CallContext) => Promise<unknown>,
    { sent, onAnswer }: { readonly sent?: Sent; readonly onAnswer?: (error: string | undefined) => void },
  ): Promise<void> {
    const call = ++this.#calls;
    const beganMs = this.#clock.monotonicMs();
    this.history.push({ kind: "call", call, ...about });
    const objects = this.#objects;
    objects?.began(about);
    this.#attacher?.began(about);
    const [wasThere, wasNamedTwice] = [this.#observer.hasImage(about.of), objects?.isNamedTwice(about.of)];
    const [unanswered, wasCut] = [objects?.unanswered, this.#hands.isCut(about.of)];
    const abort = new AbortController();
    await new Promise<void>((resolve) => {
      let isAnswered = false;
      const answer = (answer: Answer, { publishContext }: Published = {}) => {
        if (isAnswered) return;
        isAnswered = true;
        this.#attacher?.ended(about);
        cancel();
        this.#observe();
        const compared = objects === undefined ? {} : { compared: objects.unanswered === unanswered };
        const tookMs = this.#clock.monotonicMs() - beganMs;
        const took = sent && { ...this.#took(sent, tookMs), ...undisturbed(step, process, tookMs) };
        this.history.push({ kind: "answer", call, ...answer, ...compared, ...took });
        onAnswer?.(answer.error);
        if (answer.error === undefined) objects?.succeeded(about, publishContext);
        if (answer.nqn !== undefined) this.#hands.published(about.of, answer.nqn);
        const isDone = (verb: string) => about.verb === verb && answer.error === undefined;
        if (isDone("import")) this.#hands.imported(about.of);
        if (isDone("create") && !wasThere) this.#hands.made(about.of);
        // The cluster may have told only once that was over.
        if (isDone("delete") && wasNamedTwice && objects?.isNamedTwice(about.of)) {
          this.history.push({ kind: "router", line: `${about.of} was deleted, and another object names it` });
        }
        const isWhole = step.trouble === undefined && step.waits && answer.error !== "deadline" &&
          process.lead.refusal() === undefined;
        if (isWhole && !wasCut && !this.#isSlow) this.#hands.ended(about.of);
        resolve();
      };
      const cancel = this.#clock.timer(step.timeoutMs, () => {
        process.whenAwake(() => abort.abort(new VolumeError("deadline", "Cannot wait any longer")));
        answer({ error: "deadline" });
      });
      process.onDeath(() => answer({ error: "unavailable" }));
      const deadlineMs = process.clock.now() + step.timeoutMs;
      work({ requestId: `call-${call}`, signal: abort.signal, deadlineMs }).then(
        (result) => answer(detailsOf(result), (result ?? {}) as Published),
        (error) => answer({ error: VolumeError.is(error) ? error.kind : "internal" }),
      );
    });
  }

  /** What the call took, for its answer. */
  #took({ isRefused, commands, changes }: Sent, tookMs: number): Pick<Answer, "refused" | "calm"> {
    const calm = { commands, changes, remembers: this.#setting.remembers, waited: tookMs > 0 };
    return {
      ...isRefused ? { refused: true } : {},
      ...this.#isCalm ? { calm: { ...calm, byHand: this.#isByHand } } : {},
    };
  }

  #nodeOf(name: string): HistoryNode {
    return this.#nodes.find((node) => node.name === name)!;
  }

  /** Advances the clock until the promise settles, for at most `limitMs` milliseconds. */
  async #until(done: Promise<unknown>, limitMs: number): Promise<void> {
    let isDone = false;
    const mark = () => {
      isDone = true;
    };
    done.then(mark, mark);
    await this.#advance(0);
    for (let passedMs = 0; !isDone && passedMs < limitMs; passedMs += 1_000) await this.#pass(1_000);
    this.#observe();
    if (isDone) await done;
    else this.history.push({ kind: "stuck" });
  }

  async #advance(ms: number): Promise<void> {
    await this.#pass(ms);
    this.#observe();
  }

  /** Whatever changes something meanwhile is observed by itself. */
  async #pass(ms: number): Promise<void> {
    await this.#clock.advance(ms);
    this.#shared?.report();
    for (const node of this.#nodes) node.flush();
  }

  #observe(): void {
    this.#hands.observe();
    this.#observer.observe(this.#nodes);
  }
}
