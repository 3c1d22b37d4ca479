// A driver at its router, what Kubernetes was told so far, and whether the router holds exactly that.
import assert from "node:assert/strict";
import type { CsiClients } from "../../src/csi/server/client.ts";
import type { Disk } from "../../src/simulator/model/disk.ts";
import type { Simulator } from "../../src/simulator/simulator.ts";
import { type Holder, parseComment } from "../../src/volume/model/record.ts";
import type { Stack } from "../support/stack.ts";

/** The folder of every volume and snapshot, without leading slash. */
export const folder = "storage-pool/metal-csi";

/** A volume as Kubernetes was told that it is. */
export interface ReportedVolume {
  readonly sizeBytes: bigint;
  /** The nodes that it was published to and not yet taken from. */
  readonly nodes: readonly string[];
  /** The NQN that those nodes were given. */
  readonly nqn: string | undefined;
}

/** A snapshot as Kubernetes was told that it is. */
export interface ReportedSnapshot {
  readonly sizeBytes: bigint;
  readonly source: string;
  /** Seconds since the Unix epoch. */
  readonly createdAtSeconds: number;
}

/** One router and what Kubernetes believes about it. */
export class Scene {
  readonly simulator: Simulator;
  /** Starts another driver of the same cluster. */
  readonly another: () => Promise<{ readonly clients: CsiClients }>;
  /** Every volume that Kubernetes was told of, by its id. */
  readonly volumes = new Map<string, ReportedVolume>();
  /** Every snapshot that Kubernetes was told of, by its id. */
  readonly snapshots = new Map<string, ReportedSnapshot>();
  /** What was there before the driver: none of its business. */
  readonly #others: readonly string[];
  #clients: CsiClients;
  #names = 0;

  private constructor(stack: Stack, others: readonly string[]) {
    this.simulator = stack.simulator;
    this.#clients = stack.clients;
    this.another = () => stack.another();
    this.#others = others;
  }

  /** A scene on a router that no driver has touched yet. */
  static async open(stack: Stack): Promise<Scene> {
    return new Scene(stack, (await readState(stack.simulator)).items);
  }

  /** Clients of the driver that serves now. */
  get clients(): CsiClients {
    return this.#clients;
  }

  /** Does something while another driver serves. */
  async through<Result>(clients: CsiClients, work: () => Promise<Result>): Promise<Result> {
    const before = this.#clients;
    this.#clients = clients;
    try {
      return await work();
    } finally {
      this.#clients = before;
    }
  }

  /** A name that nothing had yet. */
  newName(): string {
    return `pvc-${String(++this.#names).padStart(8, "0")}-0000-4000-8000-000000000000`;
  }

  /** The id that a volume of the last new name has or will have. */
  get lastId(): string {
    return `pvc-${String(this.#names).padStart(8, "0")}00004000800000000000`;
  }

  disk(id: string): Disk | undefined {
    return this.simulator.model.disks.findBySlot(id);
  }

  /** The disk of a volume, which must be there. */
  getDisk(id: string): Disk {
    return this.disk(id) ?? assert.fail(`there is no disk ${id}`);
  }

  /** Whether the disk of a volume is there, with a record that can be read. */
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

  /** What the driver can say of a volume's use: its size, and the nodes that reach it under its record's NQN. */
  use(id: string): { readonly sizeBytes: bigint; readonly nodes: readonly string[] } {
    const { sizeBytes, exported } = this.getDisk(id);
    return { sizeBytes, nodes: exported ? this.holders(id).map(({ nodeId }) => nodeId) : [] };
  }

  /** Checks that a volume is on the router exactly as Kubernetes was told. */
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
   * Checks that a snapshot is on the router as Kubernetes was told. For a moment there may be a second one of its name, of
   * another driver that is about to see this one and take its own back; at the end there is one.
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

  /** Checks, by `GET /state`, that the router holds what Kubernetes was told and what was there before; nothing else. */
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
      // Where an image lies in a subvolume of its own, that is there too.
      ...images.filter((image) => image.endsWith("/disk.img")).map((image) => `subvolume ${parentOf(image)}`),
    ];
    assert.deepEqual(items, expected.toSorted(), "disks, files and subvolumes");
    const exported = [...this.volumes.values()].flatMap(({ nodes, nqn }) => nodes.length > 0 ? [nqn] : []);
    assert.deepEqual(exports, exported.toSorted(), "what nodes can reach");
    assert.deepEqual(await read(this.simulator, "/violations"), [], "violations");
  }
}

interface State {
  readonly disks: readonly { readonly slot: string; readonly type: string }[];
  readonly files: readonly { readonly name: string; readonly type: string }[];
  readonly subvolumes: readonly { readonly fs: string; readonly fullname: string }[];
  readonly pools: readonly { readonly "fs-label": string; readonly "mount-point": string }[];
  readonly exports: readonly (string | { readonly nqn: string })[];
}

/** What `GET /state` shows: a line for each disk, file and subvolume, in order, and the NQNs served. */
async function readState(simulator: Simulator) {
  const state = await read(simulator, "/state") as State;
  const folders = ["directory", "disk"];
  const mountPoint = (label: string) =>
    state.pools.find((pool) => pool["fs-label"] === label)?.["mount-point"];
  const items = [
    ...state.disks.map(({ slot }) => `disk ${slot}`),
    ...state.files.filter(({ type }) => !folders.includes(type)).map(({ name }) => `file ${name}`),
    // The folder of all volumes is one too, and stays.
    ...state.subvolumes.map(({ fs, fullname }) => `${mountPoint(fs)}/${fullname}`)
      .filter((path) => path !== folder).map((path) => `subvolume ${path}`),
  ];
  const exports = state.exports.map((served) => typeof served === "string" ? served : served.nqn);
  return { items: items.toSorted(), exports: exports.toSorted() };
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

async function read(simulator: Simulator, path: string): Promise<unknown> {
  return await (await fetch(`${simulator.controlUrl}${path}`)).json();
}
