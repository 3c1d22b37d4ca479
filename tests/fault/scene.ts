// A driver with its router, a record of what Kubernetes was told, and checks that the router holds exactly that.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import type { CsiClients } from "../../src/csi/server/client.ts";
import type { Disk } from "../../src/simulator/model/disk.ts";
import type { Simulator } from "../../src/simulator/simulator.ts";
import { type Holder, parseComment } from "../../src/volume/model/record.ts";
import type { Stack } from "../support/stack.ts";

/** The folder of every volume and snapshot, without leading slash. */
export const folder = "storage-pool/metal-csi";

/** A volume as it was reported to Kubernetes. */
export interface ReportedVolume {
  readonly sizeBytes: bigint;
  /** The nodes that it was published to and not yet unpublished from. */
  readonly nodes: readonly string[];
  /** The NQN that those nodes were given. */
  readonly nqn: string | undefined;
}

/** A snapshot as it was reported to Kubernetes. */
export interface ReportedSnapshot {
  readonly sizeBytes: bigint;
  readonly source: string;
  /** Seconds since the Unix epoch. */
  readonly createdAtSeconds: number;
}

/** One router, and what Kubernetes knows about it. */
export class Scene {
  readonly simulator: Simulator;
  /** Starts another driver of the same cluster. */
  readonly another: () => Promise<{ readonly clients: CsiClients }>;
  /** Every volume that was reported to Kubernetes, by its id. */
  readonly volumes = new Map<string, ReportedVolume>();
  /** Every snapshot that was reported to Kubernetes, by its id. */
  readonly snapshots = new Map<string, ReportedSnapshot>();
  /** Objects from before the driver, which it must not change. */
  readonly #others: readonly string[];
  #clients: CsiClients;
  #names = 0;

  private constructor(stack: Stack, others: readonly string[]) {
    this.simulator = stack.simulator;
    this.#clients = stack.clients;
    this.another = () => stack.another();
    this.#others = others;
  }

  /** Opens a scene on a router that no driver has changed yet. */
  static async open(stack: Stack): Promise<Scene> {
    return new Scene(stack, (await readState(stack.simulator)).items);
  }

  /** Clients of the present driver. */
  get clients(): CsiClients {
    return this.#clients;
  }

  /** Runs `work` with another driver as the present one. */
  async through<Result>(clients: CsiClients, work: () => Promise<Result>): Promise<Result> {
    const before = this.#clients;
    this.#clients = clients;
    try {
      return await work();
    } finally {
      this.#clients = before;
    }
  }

  /** Returns a name that has not been used yet. */
  newName(): string {
    return `pvc-${String(++this.#names).padStart(8, "0")}-0000-4000-8000-000000000000`;
  }

  /** The id of the volume of the last new name, made or not. */
  get lastId(): string {
    return `pvc-${String(this.#names).padStart(8, "0")}00004000800000000000`;
  }

  disk(id: string): Disk | undefined {
    return this.simulator.model.disks.findBySlot(id);
  }

  /** Returns the disk of a volume; fails when it does not exist. */
  getDisk(id: string): Disk {
    return this.disk(id) ?? assert.fail(`there is no disk ${id}`);
  }

  /** Whether the disk of a volume exists and has a readable record. */
  isReadable(id: string): boolean {
    const disk = this.disk(id);
    return disk !== undefined && parseComment(disk.comment).state === "record";
  }

  /** The nodes that a volume's record names. */
  holders(id: string): readonly Holder[] {
    const parsed = parseComment(this.getDisk(id).comment);
    assert.equal(parsed.state, "record", `the record of ${id}: ${JSON.stringify(parsed)}`);
    return parsed.state === "record" ? parsed.comment.record.holders : [];
  }

  /** Paths of the files and folders of a volume or a snapshot, without leading slash. */
  pathsOf(id: string): readonly string[] {
    return this.simulator.model.files.list().map(({ path }) => path)
      .filter((path) => path.startsWith(`${folder}/${id}.`));
  }

  /**
   * Returns what the driver can report of a volume's use: its size, and the nodes that reach it under its record's NQN.
   */
  use(id: string): { readonly sizeBytes: bigint; readonly nodes: readonly string[] } {
    const { sizeBytes, exported } = this.getDisk(id);
    return { sizeBytes, nodes: exported ? this.holders(id).map(({ nodeId }) => nodeId) : [] };
  }

  /** Checks that a volume on the router is exactly as reported to Kubernetes. */
  assertVolume(id: string): void {
    const reported = this.volumes.get(id) ?? assert.fail(`Kubernetes was never told of ${id}`);
    const { sizeBytes, exported, nqn } = this.getDisk(id);
    const nodes = this.holders(id).map(({ nodeId }) => nodeId).toSorted();
    assert.deepEqual({ sizeBytes, nodes, nqn: exported ? nqn : undefined }, {
      sizeBytes: reported.sizeBytes,
      nodes: reported.nodes.toSorted(),
      nqn: reported.nodes.length > 0 ? reported.nqn : undefined,
    }, `the volume ${id}`);
  }

  /**
   * Checks that a snapshot on the router is as reported to Kubernetes. For a short time there may be a second one of
   * its name, from another driver that is about to find this one and remove its own. At the end there is only one.
   */
  assertSnapshot(id: string, atTheEnd = false): void {
    const reported = this.snapshots.get(id) ?? assert.fail(`Kubernetes was never told of ${id}`);
    const { files, subvolumes } = this.simulator.model;
    const images = this.pathsOf(id).filter((path) => files.find(path)?.kind === "file");
    const sizes = images.map((path) => files.find(path)?.sizeBytes);
    const most = atTheEnd ? 1 : 2;
    assert.ok(sizes.length >= 1 && sizes.length <= most, `the images of ${id}: ${images}`);
    assert.ok(sizes.every((size) => size === reported.sizeBytes), `the image of ${id}: ${sizes}`);
    const around = subvolumes.containing(images[0]!);
    const frozen = images[0]!.endsWith("/disk.img") ? around?.readOnly : around?.readOnly !== true;
    assert.ok(frozen, `the subvolume of ${id}`);
  }

  /** Checks, by `GET /state`, that the router holds exactly what Kubernetes was told and what existed before. */
  async assertAsReported(): Promise<void> {
    const images: string[] = [];
    for (const [id, { sizeBytes }] of this.volumes) {
      this.assertVolume(id);
      const path = this.getDisk(id).filePath.slice(1);
      assert.equal(this.simulator.model.files.find(path)?.sizeBytes, sizeBytes, `the image of ${id}`);
      images.push(path);
    }
    for (const id of this.snapshots.keys()) {
      this.assertSnapshot(id, true);
      images.push(...this.pathsOf(id).filter((path) => path.endsWith(".img")));
    }
    const { items, exports } = await readState(this.simulator);
    const expected = [
      ...this.#others,
      ...[...this.volumes.keys()].map((id) => `disk ${id}`),
      ...images.map((image) => `file ${image}`),
      // An image in a subvolume of its own needs that subvolume too.
      ...images.filter((image) => image.endsWith("/disk.img")).map((image) => `subvolume ${parentOf(image)}`),
    ];
    assert.deepEqual(items, expected.toSorted(), "disks, files and subvolumes");
    const exported = [...this.volumes.values()].flatMap(({ nodes, nqn }) => nodes.length > 0 ? [nqn] : []);
    assert.deepEqual(exports, exported.toSorted(), "what nodes can reach");
    assert.deepEqual(await control(this.simulator, "GET /violations"), [], "violations");
  }
}

interface State {
  readonly disks: readonly { readonly slot: string; readonly type: string }[];
  readonly files: readonly { readonly name: string; readonly type: string }[];
  readonly subvolumes: readonly { readonly fs: string; readonly fullname: string }[];
  readonly pools: readonly { readonly "fs-label": string; readonly "mount-point": string }[];
  readonly exports: readonly (string | { readonly nqn: string })[];
}

/** Reads `GET /state`: a line for each disk, file and subvolume, in order, and the served NQNs. */
async function readState(simulator: Simulator) {
  const state = await control(simulator, "GET /state") as State;
  const folders = ["directory", "disk"];
  const mountPoint = (label: string) =>
    state.pools.find((pool) => pool["fs-label"] === label)?.["mount-point"];
  const items = [
    ...state.disks.map(({ slot }) => `disk ${slot}`),
    ...state.files.filter(({ type }) => !folders.includes(type)).map(({ name }) => `file ${name}`),
    // The folder of all volumes is a subvolume too, and stays.
    ...state.subvolumes.map(({ fs, fullname }) => `${mountPoint(fs)}/${fullname}`)
      .filter((path) => path !== folder).map((path) => `subvolume ${path}`),
  ];
  const exports = state.exports.map((served) => typeof served === "string" ? served : served.nqn);
  return { items: items.toSorted(), exports: exports.toSorted() };
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}
