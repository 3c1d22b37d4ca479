import type { Clock, Random } from "../../volume/ports.ts";
import type { Knobs } from "../knobs.ts";
import { knobsOf, type Profile } from "../profile.ts";
import type { Backing } from "./backing.ts";
import { type Disk, plainDisk, type PoolState } from "./disk.ts";
import { DiskTable } from "./disks.ts";
import type { Exporter } from "./exporter.ts";
import { Exports } from "./exports.ts";
import { FileTable } from "./files.ts";
import { normalisePath } from "./paths.ts";
import { SubvolumeTable } from "./subvolumes.ts";
import { type Package, System } from "./system.ts";

/** A pool that the router has from the start. */
export interface PoolOptions {
  /** Slot, mount point and file system label. */
  readonly name: string;
  /** @default {7681574174720n} */
  readonly sizeBytes?: bigint;
  /** @default {7301927047168n} */
  readonly freeBytes?: bigint;
}

/** What a {@linkcode Router} is made of. */
export interface RouterParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly profile: Profile;
  readonly knobs: Partial<Knobs>;
  readonly backing: Backing;
  readonly exporter: Exporter;
  readonly pools: readonly PoolOptions[];
}

const defaultPoolBytes = 7_681_574_174_720n;
const defaultFreeBytes = 7_301_927_047_168n;
const usedCacheMs = 1000;

/** The state of one router. Everything that a command reads or changes is in here. */
export class Router {
  readonly clock: Clock;
  readonly random: Random;
  readonly backing: Backing;
  readonly disks: DiskTable;
  readonly files: FileTable;
  readonly subvolumes = new SubvolumeTable();
  readonly system: System;
  readonly exports: Exports;
  /** Counts boots; whatever started before the last one is dead. */
  boots = 1;
  #profile: Profile;
  #knobs: Knobs;
  readonly #used = new Map<string, { readonly bytes: bigint; readonly atMs: number }>();

  constructor(parts: RouterParts) {
    const { clock, backing } = parts;
    this.clock = clock;
    this.random = parts.random;
    this.backing = backing;
    this.#profile = parts.profile;
    this.#knobs = knobsOf(parts.profile, parts.knobs);
    const locate = (filePath: string) => backing.locate(filePath.slice(1));
    this.exports = new Exports(clock, parts.exporter, locate, () => this.#knobs.unexport);
    this.disks = new DiskTable(clock, (before, after) => this.exports.follow(before, after));
    this.files = new FileTable(clock, backing);
    this.system = new System(clock);
    for (const pool of parts.pools) this.#addPool(pool);
  }

  get profile(): Profile {
    return this.#profile;
  }

  get knobs(): Knobs {
    return this.#knobs;
  }

  /** Becomes another kind of router, or turns single knobs of the one it is. */
  configure(profile: Profile | undefined, knobs: Partial<Knobs>): void {
    this.#knobs = profile === undefined ? { ...this.#knobs, ...knobs } : knobsOf(profile, knobs);
    this.#profile = profile ?? this.#profile;
  }

  /** The packages installed. */
  get packages(): readonly Package[] {
    const version = this.#profile.version.split(" ")[0] ?? "";
    const names = this.#profile.vocabulary.rose ? ["rose-storage", "routeros"] : ["routeros"];
    return names.map((name) => ({ name, version, disabled: false }));
  }

  /** The pool that a path lies on, if that is mounted. */
  poolOf(path: string): (Disk & { readonly pool: PoolState }) | undefined {
    const mountPoint = normalisePath(path).split("/")[0];
    for (const disk of this.disks.list()) {
      const { pool } = disk;
      if (pool !== undefined && pool.mounted && pool.mountPoint === mountPoint) return { ...disk, pool };
    }
    return undefined;
  }

  /** Free bytes of a pool. What the files take is looked up at most once a second. */
  freeBytes(disk: Disk & { readonly pool: PoolState }): bigint {
    const { mountPoint, otherBytes } = disk.pool;
    const free = disk.sizeBytes - otherBytes - this.#usedBytes(mountPoint);
    return free > 0n ? free : 0n;
  }

  #usedBytes(mountPoint: string): bigint {
    const atMs = this.clock.monotonicMs();
    const cached = this.#used.get(mountPoint);
    // In memory it is cheap; on a real file system it is a stat of every file.
    const { allocation } = this.#knobs;
    if (allocation === "sparse" && this.backing.pretendWritten === undefined && cached !== undefined) {
      if (atMs - cached.atMs < usedCacheMs) return cached.bytes;
    }
    const bytes = this.files.usedBytes(mountPoint, allocation);
    this.#used.set(mountPoint, { bytes, atMs });
    return bytes;
  }

  /** A pool is a raid item, with two hardware disks as its members. */
  #addPool({ name, sizeBytes = defaultPoolBytes, freeBytes = defaultFreeBytes }: PoolOptions): void {
    const first = this.disks.list().filter((disk) => disk.type === "hardware").length + 1;
    for (const number of [first, first + 1]) {
      this.disks.add({
        ...plainDisk,
        slot: `nvme${number}`,
        model: "SAMSUNG MZWLO7T6HBLA-00A07",
        serial: `S794NC0W10${String(number).padStart(4, "0")}`,
        interface: "PCIe 32GT/s x4",
        sizeBytes: defaultPoolBytes,
        raidMaster: name,
      });
    }
    this.disks.add({
      ...plainDisk,
      type: "raid",
      slot: name,
      model: "RAID1 mirrored",
      sizeBytes,
      pool: {
        mountPoint: name,
        label: name,
        mounted: true,
        state: "clean",
        otherBytes: sizeBytes - freeBytes,
      },
    });
    if (this.files.find(name) === undefined) this.files.makeDirectory(name, "disk");
  }
}
