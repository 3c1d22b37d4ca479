import type { Clock, Random } from "../../volume/ports/system.ts";
import type { Behaviours } from "../behaviours.ts";
import { behavioursOf, type Profile } from "../profile.ts";
import { Refusal } from "../refusal.ts";
import { Timing } from "../timing.ts";
import type { RecordValue } from "../value.ts";
import type { Backing } from "./backing.ts";
import { type Disk, plainDisk, type PoolState } from "./disk.ts";
import { DiskTable } from "./disks.ts";
import { healthyMember } from "./drive_health.ts";
import { type Exporter, Exports } from "./exports.ts";
import { FileTable } from "./files.ts";
import { mirror, stripe } from "./nested_arrays.ts";
import { normalisePath } from "./paths.ts";
import { SubvolumeTable } from "./subvolumes.ts";

/** A package as `/system/package` lists it. */
interface Package {
  readonly name: string;
  readonly version: string;
  readonly disabled: boolean;
}

const secondMs = 1000;
const dayMs = 86_400 * secondMs;
const initialUptimeMs = 15 * dayMs + (3 * 3600 + 4 * 60 + 5) * secondMs;

/** The machine itself: its name, and when it booted. */
class System {
  readonly #clock: Clock;
  identity = "MikroTik";
  readonly boardName = "RDS2216";
  readonly architecture = "arm64";
  #bootedAtMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#bootedAtMs = clock.now() - initialUptimeMs;
  }

  /** Milliseconds since the last boot. */
  get uptimeMs(): number {
    return Math.max(0, this.#clock.now() - this.#bootedAtMs);
  }

  /** Starts the uptime again, `inMs` milliseconds from now. */
  boot(inMs: number): void {
    this.#bootedAtMs = this.#clock.now() + inMs;
  }
}

/** Formats a duration as RouterOS does: `2w1d03:04:05`; weeks and days only when there are any. */
export function formatUptime(ms: number): string {
  const seconds = Math.floor(ms / secondMs);
  const [weeks, days] = [Math.floor(seconds / 604_800), Math.floor(seconds / 86_400) % 7];
  const clock = [Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60, seconds % 60];
  const time = clock.map((part) => String(part).padStart(2, "0")).join(":");
  return `${weeks > 0 ? `${weeks}w` : ""}${days > 0 ? `${days}d` : ""}${time}`;
}

/** A pool of the router from the start. */
export interface PoolOptions {
  /** Its slot, and its default mount point. */
  readonly name: string;
  /** First segment of the paths on it. */
  readonly mountPoint?: string;
  /** The label of its file system; the default is the one that a router gives. @default {`${name}-fs`} */
  readonly label?: string;
  /** Whether it is shared over NFS. @default {false} */
  readonly nfsSharing?: boolean;
  /** The default is from the router's profile. */
  readonly filesystem?: "btrfs" | "xfs";
  /** @default {7681574174720n} */
  readonly sizeBytes?: bigint;
  /** With a given size the default is all of it. @default {7301927047168n} */
  readonly freeBytes?: bigint;
}

/** A disk with a file system for files. */
type Pool = Disk & { readonly pool: PoolState };

/** The parts of a {@linkcode Router}. */
export interface RouterParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly profile: Profile;
  readonly behaviours: Partial<Behaviours>;
  readonly backing: Backing;
  readonly exporter: Exporter;
  readonly pools: readonly PoolOptions[];
  /** By default everything happens at once. */
  readonly timing?: Timing;
}

const defaultPoolBytes = 7_681_574_174_720n;
const defaultFreeBytes = 7_301_927_047_168n;
const usedCacheMs = 1000;

/** Additional delays, in milliseconds. */
interface Delays {
  /** The least time until a copy is complete. */
  copyMs: number;
  /** How long a removed subvolume is still listed, as a dead one. */
  deadMs: number;
}

/** The state of the package `rose-storage`. */
export type PackageState = "installed" | "disabled" | "missing";

/** The complete state of one router that commands read and change. */
export class Router {
  readonly clock: Clock;
  readonly random: Random;
  readonly backing: Backing;
  readonly disks: DiskTable;
  readonly files: FileTable;
  readonly subvolumes: SubvolumeTable;
  readonly system: System;
  readonly exports: Exports;
  readonly timing: Timing;
  /** Additional delays. */
  readonly delays: Delays = { copyMs: 0, deadMs: 0 };
  /** Whether the running command's new size has no effect. */
  ignoresResize = false;
  /** What the control port has set of Btrfs file systems, by their labels. */
  readonly filesystems = new Map<string, RecordValue>();
  /** Counts boots; what started before the last one does not go on. */
  boots = 1;
  #profile: Profile;
  #behaviours: Behaviours;
  #rose: PackageState = "installed";
  readonly #used = new Map<
    string,
    { readonly bytes: bigint; readonly atMs: number; readonly version: number }
  >();

  constructor(parts: RouterParts) {
    const { clock, backing } = parts;
    this.clock = clock;
    this.random = parts.random;
    this.timing = parts.timing ?? new Timing(0, parts.random);
    this.backing = backing;
    this.#profile = parts.profile;
    this.#behaviours = behavioursOf(parts.profile, parts.behaviours);
    this.exports = new Exports(clock, parts.random, parts.exporter, {
      locate: (filePath) => backing.locate(filePath.slice(1)),
      unexport: () => this.#behaviours.unexport,
      identity: () => this.#behaviours.identity,
      sideEffects: () => this.#behaviours.sideEffects,
    });
    this.subvolumes = new SubvolumeTable(clock, parts.random);
    this.disks = new DiskTable(clock, (before, after) => this.#follow(before, after));
    this.files = new FileTable(clock, backing, (path, found) => this.subvolumes.adopt(path, found));
    this.system = new System(clock);
    for (const pool of parts.pools) this.#addPool(pool);
  }

  /** Its kind of router; without the package it lacks the package's words. */
  get profile(): Profile {
    if (this.#rose === "installed") return this.#profile;
    return { ...this.#profile, vocabulary: { ...this.#profile.vocabulary, rose: false } };
  }

  get behaviours(): Behaviours {
    return this.#behaviours;
  }

  /** Changes the kind of router, or single behaviours. */
  configure(profile: Profile | undefined, behaviours: Partial<Behaviours>): void {
    this.#behaviours = profile === undefined
      ? { ...this.#behaviours, ...behaviours }
      : behavioursOf(profile, behaviours);
    this.#profile = profile ?? this.#profile;
  }

  /** The installed packages. */
  get packages(): readonly Package[] {
    const version = this.#profile.version.split(" ")[0] ?? "";
    const hasRose = this.#profile.vocabulary.rose && this.#rose !== "missing";
    const rose = { name: "rose-storage", version, disabled: this.#rose === "disabled" };
    const system = { name: "routeros", version, disabled: false };
    return hasRose ? [rose, system] : [system];
  }

  /** Prefixes of the addresses that may open SSH connections; none means all. */
  sshOrigins: readonly string[] = [];

  /** Installs or removes `rose-storage`; without it there are neither file disks nor exports. */
  setRose(state: PackageState): void {
    this.#rose = state;
    this.disks.hideFiles("without package", state !== "installed");
  }

  /** The disks with a mounted file system. */
  pools(): readonly Pool[] {
    return this.disks.special().filter((disk): disk is Pool => disk.pool?.mounted === true);
  }

  /** Lists anew what clients of its shares have made and removed there. */
  readShares(): void {
    for (const { nfsSharing, pool } of this.pools()) if (nfsSharing) this.files.readAgain(pool.mountPoint);
  }

  /** The pool of a path, if it is mounted. */
  poolOf(path: string): Pool | undefined {
    const mountPoint = normalisePath(path).split("/")[0];
    return this.pools().find(({ pool }) => pool.mountPoint === mountPoint);
  }

  /** The type of a pool's file system. */
  filesystemOf(pool: PoolState): "btrfs" | "xfs" {
    return pool.filesystem ?? this.#profile.poolFilesystem;
  }

  /**
   * Whether an image takes its full size at once. On XFS it does, as an image of 1 TiB that was never written did on an
   * RDS2216.
   */
  allocationOf({ pool }: Pick<Pool, "pool">): "sparse" | "full" {
    return pool.filesystem === "xfs" ? "full" : this.#behaviours.allocation;
  }

  /** @throws {Refusal} when a path lies in a read-only subvolume. */
  assertWritable(path: string): void {
    if (this.subvolumes.containing(path)?.readOnly) throw Refusal.readOnly();
  }

  /**
   * @param bytes how much is about to be written
   * @throws {Refusal} when a pool is full.
   */
  assertSpace(path: string, bytes: bigint): void {
    const pool = this.poolOf(path);
    if (pool === undefined) return;
    const free = this.freeBytes(pool);
    if (free === 0n || bytes > free) throw Refusal.noSpace();
  }

  /** Free bytes of a pool. The space of the files is read at most once a second. */
  freeBytes(disk: Pool): bigint {
    const free = disk.sizeBytes - disk.pool.otherBytes - this.#usedBytes(disk);
    return free > 0n ? free : 0n;
  }

  #usedBytes(disk: Pool): bigint {
    const { mountPoint } = disk.pool;
    const atMs = this.clock.monotonicMs();
    const cached = this.#used.get(mountPoint);
    // In memory it is cheap; on a real file system it is a stat of every file.
    const allocation = this.allocationOf(disk);
    const { version } = this.files;
    if (allocation === "sparse" && this.backing.pretendWritten === undefined && cached?.version === version) {
      if (atMs - cached.atMs < usedCacheMs) return cached.bytes;
    }
    const bytes = this.files.usedBytes(mountPoint, allocation);
    this.#used.set(mountPoint, { bytes, atMs, version });
    return bytes;
  }

  /** Follows the change of a disk. */
  #follow(before: Disk | undefined, after: Disk | undefined): void {
    this.exports.follow(before, after);
    const left = before?.pool !== undefined && before.pool.mountPoint !== after?.pool?.mountPoint;
    if (left) this.#mount(before.pool, false);
    if (after?.pool === undefined) return;
    this.subvolumes.ensureRoot(after.pool.mountPoint);
    this.#mount(after.pool, after.pool.mounted);
  }

  /** Hides or shows everything on a pool, depending on whether it is mounted. */
  #mount({ mountPoint, disksVanish }: PoolState, mounted: boolean): void {
    this.files.hideOn(mountPoint, !mounted);
    this.disks.hideOn(mountPoint, !mounted && disksVanish);
  }

  /** A pool is a RAID item: a mirror of two drives, or on XFS a stripe over four mirrors, as seen on an RDS2216. */
  #addPool(options: PoolOptions): void {
    const { name, mountPoint = name, sizeBytes = defaultPoolBytes } = options;
    const { freeBytes = options.sizeBytes ?? defaultFreeBytes } = options;
    const filesystem = options.filesystem ?? this.#profile.poolFilesystem;
    if (filesystem === "xfs") this.#addMirrors(name, sizeBytes / 4n);
    else this.#addDrives(name);
    this.disks.add({
      ...plainDisk,
      type: "raid",
      slot: name,
      model: filesystem === "xfs" ? "RAID0 striped" : "RAID1 mirrored",
      sizeBytes,
      nfsSharing: options.nfsSharing ?? false,
      pool: {
        mountPoint,
        label: options.label ?? `${name}-fs`,
        filesystem: options.filesystem,
        mounted: true,
        disksVanish: false,
        state: "clean",
        otherBytes: sizeBytes - freeBytes,
      },
      extra: filesystem === "xfs" ? stripe(this.random) : {},
    });
    this.files.ensureDisk(mountPoint);
  }

  #addDrives(master: string): void {
    const first = this.disks.list().filter((disk) => disk.type === "hardware").length + 1;
    for (const [role, number] of [first, first + 1].entries()) {
      this.disks.add({
        ...plainDisk,
        slot: `nvme${number}`,
        model: "SAMSUNG MZWLO7T6HBLA-00A07",
        serial: `S794NC0W10${String(number).padStart(4, "0")}`,
        interface: "PCIe 32GT/s x4",
        sizeBytes: defaultPoolBytes,
        raidMaster: master,
        extra: healthyMember(role),
      });
    }
  }

  /** Adds four arrays that are members of another one, each with its own state. */
  #addMirrors(master: string, sizeBytes: bigint): void {
    for (const role of [0, 1, 2, 3]) {
      const slot = `${master}-m${role}`;
      this.#addDrives(slot);
      this.disks.add({
        ...plainDisk,
        type: "raid",
        slot,
        model: "RAID1 mirrored",
        sizeBytes,
        mountFilesystem: false,
        raidMaster: master,
        extra: mirror(role, this.random),
      });
    }
  }
}
