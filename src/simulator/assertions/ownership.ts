import type { ChangeObserver } from "../console/run.ts";
import type { Row, Values, Verb } from "../menu/menu.ts";
import type { Router } from "../model/router.ts";
import { isTrue, toText } from "../value.ts";
import type { Rule } from "./journal.ts";

const scratchName = /rds-csi-probe-[0-9a-f]{8}/;

/** Whether a command concerns objects of a probe, which tries limits on purpose. */
export function mentionsScratch(command: string): boolean {
  return scratchName.test(command);
}

/** Whether a slot, or the last part of a path, is the name of a probe's object. */
export function isScratchName(name: string): boolean {
  return name.search(scratchName) === 0;
}

/** What a client of the router may change. */
export interface OwnArea {
  /** Where it may make files, with leading slash. */
  readonly basePaths: readonly string[];
  /** Hashes of its clusters; undefined when any will do. */
  readonly clusterHashes: readonly string[] | undefined;
}

/** Slots that the client makes. */
const ownSlot = /^[a-z0-9-]{1,32}$/;
/** Slots of the legacy driver, which the client may change and remove. */
const legacySlot = /^pvc-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Names of volumes and snapshots contain the hash of their cluster, which alone shows who owns them. */
const hashedName =
  /^(?:snap-[0-9a-f]{28}\.[a-z0-9-]+\.[0-9A-Za-z-]+\.[nb]|[a-z0-9-]+)\.([0-9a-f]{8})(?:\.img)?(?:\.part)?(?:\.deleted-[0-9a-f]{8})?$/;

/** Whether a client could have chosen this slot, or, for an existing one, whether it may be its own. */
function isOwnSlot(slot: string, isNew: boolean): boolean {
  return ownSlot.test(slot) || isScratchName(slot) || !isNew && legacySlot.test(slot);
}

/**
 * Whether a path belongs to a client: it lies in a base path, or in something outside with the hash of its cluster. A
 * name with the hash of another cluster never does.
 *
 * @param path with leading slash
 */
function isOwnPath(path: string, { basePaths, clusterHashes }: OwnArea): boolean {
  const [, _mountPoint, ...names] = path.split("/");
  if (names.includes("..")) return false;
  const hashes = names.flatMap((name) => hashedName.exec(name)?.[1] ?? []);
  if (clusterHashes !== undefined && hashes.some((hash) => !clusterHashes.includes(hash))) return false;
  if (hashes.length > 0 || names.some(isScratchName)) return true;
  return basePaths.some((base) => path === base || path.startsWith(`${base}/`));
}

/** The part of a comment that says that a foreign disk was imported, and for which cluster. */
const importRecord = /\{rds1 c=([0-9a-f]{8}) [^{}]*\bs=i:[0-9a-f]{16}[^{}]*\}/;

/** Whether a client has imported the disk of that comment: it may change that disk, and never remove it. */
function isImportRecord(comment: string, { clusterHashes }: OwnArea): boolean {
  const hash = importRecord.exec(comment)?.[1];
  return hash !== undefined && (clusterHashes === undefined || clusterHashes.includes(hash));
}

/** Reports a broken rule. */
type Reporter = (rule: Rule, sentence: string) => void;

/** A change that is about to happen. */
interface Change {
  readonly verb: Verb;
  /** Undefined for an item that is about to be made. */
  readonly row: Row | undefined;
  readonly values: Values;
}

/**
 * Checks that a client changes nothing outside its own area: file disks with slots of its form whose files are its own,
 * its files and its subvolumes, and foreign disks that its comments mark as imported. A file may be removed only after
 * its disk, and a snapshot stays as it is.
 */
export function watchOwnership(router: Router, area: OwnArea, report: Reporter): ChangeObserver {
  const watch = new Watch(router, area, report);
  return (menu, verb, row, values) => {
    const change = { verb, row, values };
    if (menu === "disk") watch.disk(change);
    else if (menu === "file") watch.file(change);
    else if (menu === "disk/btrfs/subvolume") watch.subvolume(change);
    else report("outside-owner-area", `/${menu} ${verb} changes what no client has to change.`);
  };
}

class Watch {
  readonly #router: Router;
  readonly #area: OwnArea;
  readonly #report: Reporter;

  constructor(router: Router, area: OwnArea, report: Reporter) {
    this.#router = router;
    this.#area = area;
    this.#report = report;
  }

  disk({ verb, row, values }: Change): void {
    const read = (name: string) => row === undefined ? values.get(name) ?? "" : textOf(row, name);
    const [slot, type, path] = [read("slot"), read("type"), slashed(read("file-path"))];
    const isOwn = isOwnPath(path, this.#area) ||
      verb !== "remove" &&
        [row && textOf(row, "comment"), values.get("comment")].some((comment) =>
          isImportRecord(comment ?? "", this.#area)
        );
    if (isOwnSlot(slot, row === undefined) && type === "file" && isOwn) return;
    const sentence = `/disk ${verb} touches the ${type} disk ${slot} with the file ${path || "-"}.`;
    this.#report("outside-owner-area", sentence);
  }

  file({ verb, row, values }: Change): void {
    const paths = [
      ...(row === undefined ? [] : [slashed(textOf(row, "name"))]),
      ...(values.has("name") ? [slashed(values.get("name"))] : []),
    ];
    for (const path of paths) {
      if (isOwnPath(path, this.#area)) continue;
      this.#report("outside-owner-area", `/file ${verb} touches ${path}.`);
    }
    if (row !== undefined && (verb === "remove" || verb === "set")) {
      this.#assertUnused(`/file ${verb}`, paths[0]!);
    }
  }

  subvolume({ verb, row, values }: Change): void {
    const label = row === undefined ? values.get("fs") ?? "" : textOf(row, "fs");
    // The pool counts also while it is not mounted: then the router refuses, and the client did nothing wrong.
    const named = this.#router.disks.list().filter((disk) => disk.pool?.label === label);
    const inside = named.find((disk) => disk.filePath !== "");
    if (inside !== undefined) {
      this.#report(
        "ambiguous-label",
        `/disk/btrfs/subvolume ${verb} names ${label}, as which the file disk ${inside.slot} is labelled too.`,
      );
    }
    const pool = named.find((disk) => disk.filePath === "")?.pool;
    const location = (name: string) => `/${pool?.mountPoint ?? label}/${name}`;
    const path = location(row === undefined ? values.get("name") ?? "" : textOf(row, "fullname"));
    const source = this.#router.subvolumes.findByName(values.get("parent") ?? "")[0];
    const parent = source === undefined ? location(values.get("parent") ?? "") : `/${source.path}`;
    for (const touched of values.get("parent") === undefined ? [path] : [path, parent]) {
      if (isOwnPath(touched, this.#area)) continue;
      this.#report("outside-owner-area", `/disk/btrfs/subvolume ${verb} touches ${touched}.`);
    }
    if (verb === "remove") this.#assertUnused("/disk/btrfs/subvolume remove", path);
    if (verb === "set" && row !== undefined && isTrue(row.value("snapshot") ?? null)) {
      this.#report("snapshot-changed", `/disk/btrfs/subvolume set changes the snapshot ${path} in place.`);
    }
  }

  /** Disks that come late after a reboot count too: removing their files removes the data. */
  #assertUnused(command: string, path: string): void {
    if (path.split("/").some(isScratchName)) return;
    for (const disk of this.#router.disks.listUsing(path)) {
      this.#report("file-before-disk", `${command} takes ${path} while the disk ${disk.slot} uses it.`);
    }
  }
}

function textOf(row: Row, name: string): string {
  return toText(row.value(name) ?? null);
}

function slashed(path: string | undefined): string {
  return path === undefined || path === "" ? "" : `/${path.replace(/^\/+/, "")}`;
}
