import assert from "node:assert/strict";
import type { Bench, Suite } from "../kit/bench.ts";
import { placeLabel } from "../kit/chart.ts";
import type { Cluster } from "../kit/cluster.ts";
import { assertNothingLeft } from "../kit/nothing_left.ts";
import {
  claimOf,
  type Event,
  idle,
  lateClassOf,
  paths,
  type Pod,
  podOf,
  type StorageCapacity,
} from "../kit/objects.ts";
import { pause, secondsSince, until } from "../kit/waiting.ts";
import { parseMebibytes, Workload } from "../kit/workload.ts";

/** Sizes of the routers' pools in MiB, by their places, which are nodes: the first one is preferred by every pod. */
const pools = { n1: 4096, n2: 8192 } as const;
type Place = keyof typeof pools;
const places = Object.keys(pools) as readonly Place[];
/** More than the pool of n1 has. */
const largeMebibytes = 6144;
/** Fits neither beside the large one nor into the other pool, and into the larger one when it is empty. */
const hugeMebibytes = 5120;
/** How long what the scheduler knows may be old: the provisioner asks once a minute. */
const knownWithinSeconds = 75;
/** How long the pod may wait once there is room: until the scheduler knows, and until the pod runs. */
const runsWithinSeconds = 90;
/** How long a pod is watched that must not be scheduled. */
const watchMs = 10_000;

const className = "late";

/** What the scheduler makes of the room that each place has. */
export const suite: Suite = {
  what:
    "CSIStorageCapacity: two places with a router each, and pods whose volumes fit one of them, or none yet",
  limitMinutes: 10,
  run: async (bench) => {
    const cluster = await bench.cluster({
      nodes: { n1: "kubelet", n2: "kubelet" },
      places: Object.fromEntries(
        Object.entries(pools).map(([name, mebibytes]) => [name, `storage-pool:${mebibytes}M:btrfs`]),
      ),
    });
    const story = new Story(bench, cluster);
    await bench.story([
      ["each place has an object with the room that the driver has there", () => story.publish()],
      [
        `a pod that prefers n1 runs at n2, as only there is room for ${largeMebibytes} MiB`,
        () => story.placeLarge(),
      ],
      ["a pod whose volume would fit nowhere waits, and no router is asked for it", () => story.wait()],
      [`it runs within ${runsWithinSeconds} s once a volume is deleted`, () => story.makeRoom()],
      ["everything can be deleted, and leaves nothing", async () => {
        await story.end();
        return await assertNothingLeft(cluster, bench.signal);
      }],
    ]);
  },
};

class Story {
  readonly #bench: Bench;
  readonly #cluster: Cluster;
  readonly #work: Workload;

  constructor(bench: Bench, cluster: Cluster) {
    this.#bench = bench;
    this.#cluster = cluster;
    this.#work = new Workload(cluster, bench.signal);
  }

  async publish(): Promise<string> {
    await this.#work.create(paths.classes, lateClassOf(className));
    await this.#knows((room) => places.every((place) => room.has(place)));
    const room = await this.#room();
    assert.deepEqual([...room.keys()].toSorted(), places, "one object for each place");
    for (const place of places) {
      const parameters = { "csi.storage.k8s.io/fstype": "ext4" };
      const accessibleTopology = { segments: { [placeLabel]: place } };
      const { controller } = this.#cluster.controller.clients;
      const said = await controller.call("GetCapacity", { accessibleTopology, parameters });
      const { capacity, maximumVolumeSize } = room.get(place)!;
      assert.equal(
        Math.floor(Number(said.availableCapacity) / 2 ** 20),
        Math.floor(parseMebibytes(capacity)),
      );
      assert.equal(parseMebibytes(maximumVolumeSize), Number(said.maximumVolumeSize?.value) / 2 ** 20);
      const largest = parseMebibytes(maximumVolumeSize);
      assert(largest > pools[place] * 0.9 && largest <= pools[place], `${place}: ${largest} MiB`);
    }
    return `${describe(room)}; late volumes only: ${await this.#classesWithRoom()}`;
  }

  async placeLarge(): Promise<string> {
    await this.#create("large", largeMebibytes);
    const started = performance.now();
    assert.equal(await this.#work.running("large"), "n2");
    assert.deepEqual(await this.#volumesByPlace(), { n1: 0, n2: 1 });
    const seconds = secondsSince(started);
    const events = await this.#cluster.api.list<Event>(paths.events);
    const failed = events.filter(({ type, involvedObject }) =>
      type === "Warning" && involvedObject.kind === "PersistentVolumeClaim"
    );
    assert.deepEqual(failed.map(({ message }) => message), [], "it was tried at n1 first");
    return `after ${seconds} s, and nothing was tried at n1`;
  }

  async wait(): Promise<string> {
    const started = performance.now();
    await this.#knows((room) => largestOf(room, "n2") < hugeMebibytes);
    const known = secondsSince(started);
    const before = await this.#adds();
    await this.#create("huge", hugeMebibytes);
    const message = await until("the scheduler to say why", async () => {
      const events = await this.#cluster.api.list<Event>(paths.events);
      return events.find(({ reason, involvedObject, message }) =>
        reason === "FailedScheduling" && involvedObject.name === "huge" && /storage/.test(message)
      )?.message;
    }, { limitSeconds: 60, signal: this.#bench.signal });
    assert.match(message, /2 node\(s\) did not have enough free storage/);
    await pause(watchMs);
    const { spec, status } = await this.#cluster.api.get<Pod>(`${paths.pods}/huge`);
    assert.deepEqual([spec.nodeName, status.phase], [undefined, "Pending"]);
    assert.equal(await this.#adds(), before, "a router was asked for a disk");
    return `known after ${known} s: ${message.split(". ")[0]}`;
  }

  async makeRoom(): Promise<string> {
    const volume = await this.#work.bound("large");
    await this.#work.remove(paths.pods, "large");
    const started = performance.now();
    await this.#work.remove(paths.claims, "large");
    // The waiting pod's volume may be there before this one's object is gone.
    await this.#work.gone(paths.volumes, ({ metadata }) => metadata.name === volume);
    assert.equal(await this.#work.running("huge", runsWithinSeconds), "n2");
    const seconds = secondsSince(started);
    assert(Number(seconds) < runsWithinSeconds, `it took ${seconds} s`);
    assert.deepEqual(await this.#volumesByPlace(), { n1: 0, n2: 1 });
    return `after ${seconds} s`;
  }

  async end(): Promise<void> {
    await this.#work.remove(paths.pods, "huge");
    await this.#work.remove(paths.claims, "huge");
    await this.#work.gone(paths.volumes);
    await this.#cluster.api.remove(`${paths.classes}/${className}`);
    await this.#work.gone(paths.capacities);
  }

  /** A pod with a volume of its own, which would rather be at n1. */
  async #create(name: string, mebibytes: number): Promise<void> {
    const claim = { mode: "Filesystem", mebibytes, storageClass: className } as const;
    await this.#work.create(paths.claims, claimOf(name, claim));
    const matchExpressions = [{ key: placeLabel, operator: "In", values: ["n1"] }];
    const preference = { weight: 100, preference: { matchExpressions } };
    const nodeAffinity = { preferredDuringSchedulingIgnoredDuringExecution: [preference] };
    const pod = podOf(name, idle, { filesystems: [name] }) as { readonly spec: object };
    await this.#work.create(paths.pods, { ...pod, spec: { ...pod.spec, affinity: { nodeAffinity } } });
  }

  /** What the scheduler knows, by place. */
  async #room(): Promise<ReadonlyMap<string, StorageCapacity>> {
    const found = (await this.#cluster.api.list<StorageCapacity>(paths.capacities))
      .filter(({ storageClassName }) => storageClassName === className);
    const byPlace = found.map((one) => [one.nodeTopology?.matchLabels?.[placeLabel] ?? "", one] as const);
    assert.equal(new Map(byPlace).size, found.length, "a place has two objects");
    return new Map(byPlace);
  }

  async #knows(isKnown: (room: ReadonlyMap<string, StorageCapacity>) => boolean): Promise<void> {
    await until("the room to be known", async () => isKnown(await this.#room()), {
      limitSeconds: knownWithinSeconds,
      signal: this.#bench.signal,
      state: async () => describe(await this.#room()),
    });
  }

  async #classesWithRoom(): Promise<string> {
    const all = await this.#cluster.api.list<StorageCapacity>(paths.capacities);
    const classes = [...new Set(all.map(({ storageClassName }) => storageClassName))];
    assert.deepEqual(classes, [className]);
    return classes.join();
  }

  /** How often the routers were asked for a disk. */
  async #adds(): Promise<number> {
    let count = 0;
    for (const router of this.#cluster.routers.values()) {
      const log = await router.control<readonly { readonly command: string }[]>("/log");
      count += log.filter(({ command }) => command.includes("/disk add")).length;
    }
    return count;
  }

  async #volumesByPlace(): Promise<Readonly<Record<string, number>>> {
    const counted = [...this.#cluster.routers].map(async ([place, router]) => {
      const { disks } = await router.control<{ disks: readonly { type: string }[] }>("/state");
      return [place, disks.filter(({ type }) => type === "file").length];
    });
    return Object.fromEntries(await Promise.all(counted));
  }
}

function largestOf(room: ReadonlyMap<string, StorageCapacity>, place: Place): number {
  return parseMebibytes(room.get(place)?.maximumVolumeSize);
}

function describe(room: ReadonlyMap<string, StorageCapacity>): string {
  return [...room].toSorted().map(([place, { capacity, maximumVolumeSize }]) =>
    `${place} has ${capacity}, at most ${maximumVolumeSize} a volume`
  ).join("; ");
}
