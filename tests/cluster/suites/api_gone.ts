import assert from "node:assert/strict";
import {
  allShown,
  assertAgreement,
  attach,
  attached,
  detach,
  detached,
  pair,
  type Pairing,
} from "../kit/attachments.ts";
import type { Bench, Suite } from "../kit/bench.ts";
import type { Cluster } from "../kit/cluster.ts";
import { assertNothingLeft } from "../kit/nothing_left.ts";
import { claimOf, paths, podOf } from "../kit/objects.ts";
import { pause, secondsSince } from "../kit/waiting.ts";
import { isLong } from "../../support/long.ts";
import { Workload } from "../kit/workload.ts";
import { writingTo } from "../kit/writers.ts";

/** How long the API server is away, in seconds. */
const awaySeconds = isLong ? 60 : 20;
/** Volumes that are attached through the API. */
const volumeCount = 20;
const fake = "fake-1";
/** What a leader says that cannot renew. */
const noLead = /UNAVAILABLE.*could not renew its lead in time/;
const block = { mode: "Block", mebibytes: 1024, storageClass: "rds-ext4" } as const;

/** The cluster loses its memory for a while; the volumes do not. */
export const suite: Suite = {
  what: `the API server is away for ${awaySeconds} s; TEST_LONG=1: 60 s`,
  limitMinutes: 10,
  run: async (bench) => {
    const cluster = await bench.cluster({ nodes: { n1: "kubelet" }, fakeNodes: [fake] });
    const outage = new Outage(bench, cluster);
    await bench.story([
      ["a pod writes to a raw block volume, and volumes are attached", () => outage.begin()],
      [
        "without the API server the driver serves until its lead is over, and the pod writes on",
        () => outage.go(),
      ],
      ["with it back, what was asked for just before it went is done", () => outage.catchUp()],
      ["a pod runs that was asked for afterwards", () => outage.another()],
      ["everything can be deleted, and leaves nothing", async () => {
        await outage.end();
        return await assertNothingLeft(cluster, bench.signal);
      }],
    ]);
  },
};

class Outage {
  readonly #bench: Bench;
  readonly #cluster: Cluster;
  readonly #work: Workload;
  readonly #claims = Array.from({ length: volumeCount }, (_, index) => `claim-${index}`);
  readonly #byHand = ["by-hand-1", "by-hand-2", "by-hand-3"];
  #pairings: readonly Pairing[] = [];

  constructor(bench: Bench, cluster: Cluster) {
    this.#bench = bench;
    this.#cluster = cluster;
    this.#work = new Workload(cluster, bench.signal);
  }

  async begin(): Promise<string> {
    const all = [...this.#claims, "written", "later"];
    await Promise.all(all.map((claim) => this.#work.create(paths.claims, claimOf(claim, block))));
    const volumes = await Promise.all(this.#claims.map((claim) => this.#work.bound(claim)));
    this.#pairings = pair(volumes, [fake]);
    await attach(this.#cluster, this.#former);
    await this.#work.create(paths.pods, podOf("writer", writingTo("written"), { devices: ["written"] }));
    const node = await this.#work.running("writer");
    await this.#work.remember("writer");
    // The pod's volume too.
    await attached(this.#cluster, this.#former.length + 1, this.#bench.signal);
    assert.equal(await allShown(this.#cluster, this.#bench.signal), this.#former.length + 1);
    return `the pod at ${node}, ${this.#former.length} volumes at ${fake}`;
  }

  /** What is attached before. */
  get #former(): readonly Pairing[] {
    return this.#pairings.slice(0, volumeCount / 2);
  }

  /** What is asked for in the last moment. */
  get #latter(): readonly Pairing[] {
    return this.#pairings.slice(volumeCount / 2);
  }

  async go(): Promise<string> {
    await Promise.all([
      attach(this.#cluster, this.#latter),
      detach(this.#cluster, this.#former),
      ...["x", "y", "z"].map((name) => this.#work.create(paths.claims, claimOf(name, block))),
    ]);
    await this.#cluster.plane.killApiServer();
    const reported = await this.#withoutApi();
    await this.#cluster.plane.startApiServer(this.#bench.signal);
    return reported;
  }

  /** Nobody can elect anybody: a leader goes on for as long as it may, and nothing is changed from then on. */
  async #withoutApi(): Promise<string> {
    const [started, before] = [performance.now(), await this.#written()];
    let rounds = 0;
    try {
      for (;; rounds++) await Promise.all(this.#byHand.map((name) => this.#roundTrip(name)));
    } catch (error) {
      assert.match(String(error), noLead);
    }
    const ledFor = secondsSince(started);
    assert(rounds > 0, "the driver has served nothing without the API server");
    const commands = await this.#cluster.router.commands();
    for (; performance.now() - started < awaySeconds * 1000; await pause(1_000)) {
      this.#bench.signal.throwIfAborted();
      const { controller } = this.#cluster.controller.clients;
      // A call waits for the lead for half of the time that it has.
      await assert.rejects(controller.call("ListVolumes", {}, 2_000), noLead);
    }
    // What the others of the last round had sent by then.
    const more = await this.#cluster.router.commands() - commands;
    assert(more <= this.#byHand.length, `${more} commands without a lead`);
    const [after, seconds] = [await this.#written(), secondsSince(started)];
    assert(after > before, `the pod wrote ${before} times before and ${after} times after`);
    assert(!await this.#cluster.api.isReady(), "the API server was there all the time");
    return `${
      rounds * this.#byHand.length
    } volumes made, attached, detached and deleted within ${ledFor} s, nothing ` +
      `until ${seconds} s; the pod wrote ${after - before} times`;
  }

  /** The life of a volume by calls of the driver alone. */
  async #roundTrip(name: string): Promise<void> {
    const { controller } = this.#cluster.controller.clients;
    const capability = { block: {}, accessMode: { mode: "SINGLE_NODE_WRITER" as const } };
    const { volume } = await controller.call("CreateVolume", {
      name,
      capacityRange: { requiredBytes: String(2 ** 30) },
      volumeCapabilities: [capability],
      parameters: {},
    });
    const [volumeId, volumeContext] = [volume?.volumeId ?? "", volume?.volumeContext ?? {}];
    const location = { volumeId, nodeId: fake };
    const rest = { volumeCapability: capability, volumeContext, readonly: false };
    const { publishContext } = await controller.call("ControllerPublishVolume", { ...location, ...rest });
    assert(publishContext["nqn"]?.includes(volumeId), `${volumeId} is published as ${publishContext["nqn"]}`);
    await controller.call("ControllerUnpublishVolume", location);
    await controller.call("DeleteVolume", { volumeId });
  }

  async catchUp(): Promise<string> {
    const started = performance.now();
    await this.#cluster.findServing(this.#bench.signal);
    const servedSeconds = secondsSince(started);
    for (const name of ["x", "y", "z"]) await this.#work.bound(name);
    await attached(this.#cluster, this.#latter.length + 1, this.#bench.signal);
    const seconds = secondsSince(started);
    // Whatever step they have come to.
    await Promise.all(this.#byHand.map((name) => this.#roundTrip(name)));
    assert.equal(await allShown(this.#cluster, this.#bench.signal), this.#latter.length + 1);
    const shownSeconds = secondsSince(started);
    assert.equal(this.#cluster.sidecarRestarts, 0, "a sidecar has ended, as it does when the driver has");
    const written = {
      name: (await this.#work.attachments()).find(({ spec }) => spec.nodeName === "n1")?.metadata.name ?? "",
      volume: await this.#work.bound("written"),
      node: "n1",
    };
    const agreed = await assertAgreement(this.#cluster, [...this.#latter, written]);
    return `served after ${servedSeconds} s, all done after ${seconds} s, and their objects say so after ${shownSeconds} s: ` +
      agreed;
  }

  async another(): Promise<string> {
    await this.#work.create(paths.pods, podOf("another", writingTo("later"), { devices: ["later"] }));
    const node = await this.#work.running("another");
    assert.equal(await this.#work.restarts("writer"), 0, "the pod that wrote was started again");
    return `at ${node}; the first one has not been started again`;
  }

  async end(): Promise<void> {
    await this.#work.remove(paths.pods, "writer", "another");
    await detach(this.#cluster, this.#latter);
    await detached(this.#cluster, this.#bench.signal);
    await this.#work.remove(paths.claims, ...this.#claims, "written", "later", "x", "y", "z");
    await this.#work.gone(paths.volumes);
  }

  /** How many times the pod has written. */
  async #written(): Promise<number> {
    return Number(await this.#work.exec("writer", "cat /tmp/count"));
  }
}
