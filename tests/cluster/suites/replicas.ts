import assert from "node:assert/strict";
import {
  allShown,
  assertAgreement,
  attach,
  attached,
  detach,
  detached,
  eventAbout,
  exportsOf,
  pair,
  type Pairing,
} from "../kit/attachments.ts";
import type { Bench, Suite } from "../kit/bench.ts";
import type { Cluster } from "../kit/cluster.ts";
import { assertNothingLeft } from "../kit/nothing_left.ts";
import {
  attachmentOf,
  type Claim,
  claimOf,
  type Event,
  idle,
  lateClassOf,
  paths,
  type Pod,
  podOf,
} from "../kit/objects.ts";
import { dryRunRenderings } from "../kit/renderings.ts";
import type { Replica } from "../kit/sidecars.ts";
import { pause, secondsSince, until } from "../kit/waiting.ts";
import { Workload } from "../kit/workload.ts";

/** Volumes that are made and attached while the first leader is killed, and those that are there before. */
const [volumeCount, formerCount] = [100, 60];
const nodes = ["fake-1", "fake-2", "fake-3", "fake-4"];
/** How long a leader stands still: longer than its lead, and than others wait for a sign of it. */
const frozenMs = 40_000;
const block = { mode: "Block", mebibytes: 1024, storageClass: "rds-block" } as const;

/** Several controllers, of which one serves. */
export const suite: Suite = {
  what:
    `of two controllers the one that leads is killed, stopped and frozen in the middle of ${volumeCount} volumes' work`,
  limitMinutes: 8,
  run: async (bench) => {
    const cluster = await bench.cluster({ fakeNodes: nodes, replicas: 3, startedReplicas: 2 });
    const story = new Story(bench, cluster);
    await bench.story([
      ["every object of every rendering of the chart is taken", async () => {
        return `${await dryRunRenderings(cluster.api)} objects, strictly checked and not kept`;
      }],
      ["one of two controllers serves, and the other waits", () => story.serve()],
      [
        "killed in the middle: the other goes on, and every volume is made once and attached once",
        () => story.kill(),
      ],
      ["another node is refused, and the claim's events say why", () => story.refuse()],
      ["stopped in the middle: the other goes on within seconds", () => story.stop()],
      [
        "frozen in the middle: the other goes on, and the one that wakes changes nothing and ends",
        () => story.freeze(),
      ],
      ["all controllers are replaced, one after the other, while volumes are detached", () => story.roll()],
      ["a claim that waits for its first pod gets a volume then", () => story.wait()],
      ["the volumes can be deleted, and leave nothing", () => story.end()],
    ]);
  },
};

interface LogEntry {
  /** ISO 8601, when it arrived. */
  readonly time: string;
  readonly session: number;
  readonly command: string;
}

class Story {
  readonly #bench: Bench;
  readonly #cluster: Cluster;
  readonly #work: Workload;
  readonly #claims = Array.from({ length: volumeCount }, (_, index) => `claim-${index}`);
  /** Those that run. */
  #pair: readonly Replica[];
  #pairings: readonly Pairing[] = [];

  constructor(bench: Bench, cluster: Cluster) {
    this.#bench = bench;
    this.#cluster = cluster;
    this.#work = new Workload(cluster, bench.signal);
    this.#pair = cluster.replicas.slice(0, 2);
  }

  async serve(): Promise<string> {
    const serving = await Promise.all(this.#pair.map(({ driver }) => driver.isServing()));
    assert.equal(serving.filter(Boolean).length, 1, String(serving));
    const waiting = this.#pair[serving.indexOf(false)]!.driver;
    const { sessions } = await this.#cluster.router.control<{ sessions: readonly unknown[] }>("/state");
    assert.deepEqual([await waiting.metric("rds_csi_leader"), sessions.length], [0, 1]);
    const refused = waiting.clients.controller.call("ListVolumes", {});
    await assert.rejects(refused, /UNAVAILABLE.*another controller leads: holder=controller-/);
    const megabytes = Math.round(await waiting.residentBytes() / 1e6);
    const former = this.#claims.slice(0, formerCount);
    await Promise.all(former.map((claim) => this.#work.create(paths.claims, claimOf(claim, block))));
    await Promise.all(former.map((claim) => this.#work.bound(claim)));
    return `the one that waits has no connection to the router, and ${megabytes} MB`;
  }

  async kill(): Promise<string> {
    const { leader, other } = await this.#roles();
    const [former, latter] = [this.#claims.slice(0, formerCount), this.#claims.slice(formerCount)];
    const volumes = await Promise.all(former.map((claim) => this.#work.bound(claim)));
    await Promise.all([
      attach(this.#cluster, pair(volumes, nodes)),
      ...latter.map((claim) => this.#work.create(paths.claims, claimOf(claim, block))),
    ]);
    const exported = await this.#exported((count) => count >= formerCount * 0.3);
    const killed = performance.now();
    await leader.driver.kill();
    assert(exported < formerCount, "all were attached before the leader was killed");
    // One that is started again at once may be the first to find the Lease free.
    const taken = await this.#takenOver(other, killed);
    await leader.driver.start(this.#bench.signal);
    await attached(this.#cluster, formerCount, this.#bench.signal);
    const all = await Promise.all(this.#claims.map((claim) => this.#work.bound(claim)));
    const seconds = secondsSince(killed);
    assert.equal(new Set(all).size, volumeCount);
    await this.#assertMadeOnce();
    this.#pairings = pair(all, nodes);
    const reported = await assertAgreement(this.#cluster, this.#pairings.slice(0, formerCount));
    return `killed at ${exported} exports, the other serves after ${taken} s, all is done after ${seconds} s: ${reported}`;
  }

  /** A second writer, as an operator would ask for one by mistake. */
  async refuse(): Promise<string> {
    const { volume, node } = this.#pairings[0]!;
    const [elsewhere] = nodes.filter((other) => other !== node);
    await this.#work.create(paths.attachments, attachmentOf("second", volume, elsewhere!));
    const { metadata: { name, uid } } = (await this.#cluster.api.list<Claim>(paths.claims)).find(({ spec }) =>
      spec.volumeName === volume
    )!;
    for (const about of [name, volume]) {
      const event = await eventAbout(this.#cluster, "AttachRefused", about, this.#bench.signal);
      assert.equal(event.type, "Warning");
      assert.match(event.message, new RegExp(`Node ${elsewhere} was refused: .*${node}`));
      if (about === name) assert.equal(event.involvedObject.uid, uid);
    }
    const refused = (await this.#work.attachments()).find(({ metadata }) => metadata.name === "second");
    await this.#work.remove(paths.attachments, "second");
    assert.equal(refused?.status?.attached ?? false, false);
    const { message } = await eventAbout(this.#cluster, "AttachRefused", name, this.#bench.signal);
    return `${message}; ${await assertAgreement(this.#cluster, this.#pairings.slice(0, formerCount))}`;
  }

  async stop(): Promise<string> {
    const { leader, other } = await this.#roles();
    const more = this.#pairings.slice(formerCount, formerCount + 20);
    const before = (await exportsOf(this.#cluster)).length;
    await attach(this.#cluster, more);
    await this.#exported((count) => count > before);
    const stopped = performance.now();
    const [problems, taken] = await Promise.all([leader.stop(), this.#takenOver(other, stopped)]);
    assert.deepEqual(problems, []);
    assert(Number(taken) < 6, `the other serves only after ${taken} s`);
    await attached(this.#cluster, formerCount + more.length, this.#bench.signal);
    const seconds = secondsSince(stopped);
    await leader.start(this.#bench.signal);
    const reported = await assertAgreement(this.#cluster, this.#pairings.slice(0, formerCount + more.length));
    return `the other serves after ${taken} s, all is done after ${seconds} s: ${reported}`;
  }

  async freeze(): Promise<string> {
    const { leader, other } = await this.#roles();
    const sessions = await this.#sessions();
    const before = (await exportsOf(this.#cluster)).length;
    await attach(this.#cluster, this.#pairings.slice(before));
    await this.#exported((count) => count > before);
    const frozen = performance.now();
    leader.driver.signal("SIGSTOP");
    // What it had sent by then has ended a second later.
    await pause(1_000);
    await this.#cluster.router.control("/log", { method: "DELETE" });
    const exported = (await exportsOf(this.#cluster)).length;
    assert(exported < volumeCount, "all were attached before the leader stood still");
    const taken = await this.#takenOver(other, frozen);
    await attached(this.#cluster, volumeCount, this.#bench.signal);
    const seconds = secondsSince(frozen);
    await pause(frozenMs - (performance.now() - frozen));
    const woken = performance.now();
    const wokenAt = new Date().toISOString();
    leader.driver.signal("SIGCONT");
    assert.equal(await leader.driver.ended(), 1, "the one that woke does not end as one that has failed");
    const endedAfter = secondsSince(woken);
    await leader.driver.start(this.#bench.signal);
    const log = await this.#log();
    const late = log.filter(({ session, time }) => sessions.has(session) && time >= wokenAt);
    assert.deepEqual(late, [], "the one that was frozen has asked the router for something");
    assert(log.length > volumeCount - exported, "the other one has worked, and is in the log");
    const reported = await assertAgreement(this.#cluster, this.#pairings);
    return `frozen at ${exported} exports, the other serves after ${taken} s, all is done after ${seconds} s; ` +
      `the one that woke ended ${endedAfter} s later and sent the router nothing: ${reported}`;
  }

  async roll(): Promise<string> {
    const started = performance.now();
    const [first, second, third] = this.#cluster.replicas as [Replica, Replica, Replica];
    await detach(this.#cluster, this.#pairings);
    await this.#exported((count) => count < volumeCount);
    // As a Deployment does that may have one pod more than it wants, and none less.
    for (const [fresh, old] of [[third, first], [first, second]] as const) {
      await fresh.start(this.#bench.signal);
      assert.deepEqual(await old.stop(), []);
    }
    this.#pair = [third, first];
    await this.#cluster.findServing(this.#bench.signal, this.#pair);
    const seconds = secondsSince(started);
    await detached(this.#cluster, this.#bench.signal);
    assert.deepEqual(await exportsOf(this.#cluster), []);
    assert.equal(await allShown(this.#cluster, this.#bench.signal), 0);
    return `replaced after ${seconds} s, all detached after ${secondsSince(started)} s`;
  }

  /** The scheduler places the pod at one of the nodes that have a driver; none of them has a kubelet that would run it. */
  async wait(): Promise<string> {
    const [node] = nodes;
    const allocatable = { cpu: "1", memory: "1Gi", pods: "1" };
    await this.#cluster.api.patch(`${paths.nodes}/${node}/status`, {
      status: { allocatable, capacity: allocatable },
    });
    await this.#work.create(paths.classes, lateClassOf("late"));
    // Whoever tells the scheduler what room there is has done so by then, and has told it something else if it does.
    await pause(5_000);
    const claim = { mode: "Filesystem", mebibytes: 1024, storageClass: "late" } as const;
    await this.#work.create(paths.claims, claimOf("late", claim));
    await this.#work.create(paths.pods, tolerant(podOf("first", idle, { filesystems: ["late"] })));
    await this.#work.bound("late");
    const placed = await until("the pod to be placed", async () => {
      return (await this.#cluster.api.get<Pod>(`${paths.pods}/first`)).spec.nodeName ?? false;
    }, { limitSeconds: 30, signal: this.#bench.signal });
    assert.equal(placed, node);
    const events = await this.#cluster.api.list<Event>(paths.events);
    const failures = events.filter(({ reason, involvedObject }) =>
      reason === "FailedScheduling" && involvedObject.name === "first"
    );
    assert.deepEqual(failures, []);
    await this.#cluster.api.remove(`${paths.pods}/first?gracePeriodSeconds=0`);
    await this.#work.gone(paths.pods);
    await this.#work.gone(paths.attachments);
    await this.#work.remove(paths.claims, "late");
    return `made when the pod was to run at ${node}`;
  }

  async end(): Promise<string> {
    await this.#work.remove(paths.claims, ...this.#claims);
    await this.#work.gone(paths.volumes);
    return await assertNothingLeft(this.#cluster, this.#bench.signal);
  }

  async #roles(): Promise<{ leader: Replica; other: Replica }> {
    const leader = await this.#cluster.findServing(this.#bench.signal, this.#pair);
    return { leader, other: this.#pair.find((one) => one !== leader)! };
  }

  /** Seconds until that one serves. */
  async #takenOver(other: Replica, sinceMs: number): Promise<string> {
    await this.#cluster.findServing(this.#bench.signal, [other]);
    return secondsSince(sinceMs);
  }

  /** Waits until the number of exports is like that, and answers it. */
  async #exported(isTime: (count: number) => boolean): Promise<number> {
    const count = async () => (await exportsOf(this.#cluster)).length;
    const limits = { limitSeconds: 60, everyMs: 10, signal: this.#bench.signal };
    return await until("the middle of it", async () => {
      const now = await count();
      return isTime(now) && { now };
    }, limits).then(({ now }) => now);
  }

  /** No volume was made twice: the router has as many as there are claims. */
  async #assertMadeOnce(): Promise<void> {
    const { disks } = await this.#cluster.router.control<{ disks: readonly { type: string }[] }>("/state");
    assert.equal(disks.filter(({ type }) => type === "file").length, volumeCount);
  }

  async #log(): Promise<readonly LogEntry[]> {
    return await this.#cluster.router.control<readonly LogEntry[]>("/log");
  }

  /** By which the leader of the moment, and those before it, were connected to the router. */
  async #sessions(): Promise<ReadonlySet<number>> {
    return new Set((await this.#log()).map(({ session }) => session));
  }
}

/** The pod, for a node that nobody reports as ready. */
function tolerant(pod: object): object {
  const { spec } = pod as { readonly spec: object };
  return { ...pod, spec: { ...spec, tolerations: [{ operator: "Exists" }] } };
}
