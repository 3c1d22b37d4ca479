import { ros } from "../../routeros/console/command.ts";
import { parseResource } from "../../routeros/console/router_info.ts";
import { imagePathOf, resourceQuery } from "../../routeros/store/queries.ts";
import { VolumeError } from "../../volume/errors.ts";
import { exportDisk, type IdentitySeen, isSame, readIdentity } from "./exports.ts";
import { isScratchPath, type ScratchDisk, scratchPrefix } from "./names.ts";
import { NoAnswer, type Probe, type ProbeOptions, type RebootSeen } from "./question.ts";
import { assertChanged, ensureDisk, findDisk, mebibyte, readItems } from "./scratch.ts";
import type { ProbeSession } from "./session.ts";

/** What the name of the disk ends with that stands over a reboot, and what its comment begins with. */
const suffix = "reboot";
/** How long after its boot the router is waited for until it shows that disk, and how often it is asked, in milliseconds. */
const timeoutMs = 180_000;
const pollMs = 1000;

/** What the first run has seen: the disk's own comment tells it, as that comes back with the disk. */
interface Before extends IdentitySeen {
  /** How long the router was up then, in milliseconds: a lower uptime later proves a boot. */
  readonly upMs: number;
  readonly nqn: string;
}

/**
 * Makes an exported scratch disk that stands over a reboot, with its identity in its comment.
 *
 * @throws {NoAnswer} when the router refuses, or the export cannot be reached from here
 */
export async function leaveForReboot(probe: Probe): Promise<ScratchDisk> {
  const { line, names } = probe;
  const disk = names.disk(suffix);
  await ensureDisk(line, { ...disk, sizeBytes: mebibyte });
  const { nqn } = await exportDisk(probe, disk, suffix);
  const seen = await readIdentity(probe, nqn);
  const comment = formatBefore({ ...seen, nqn, upMs: await readUpMs(line) });
  await assertChanged(probe.line, disk, ros`comment=${comment}`);
  if ((await findDisk(line, disk.path, ros`comment`))?.["comment"] === comment) return disk;
  throw new NoAnswer("the router does not keep the comment with the identity");
}

/**
 * Looks whether the disk that {@linkcode leaveForReboot} made is the same namespace after a boot. Changes nothing, so that
 * it can be asked again.
 *
 * @throws {VolumeError} precondition when there is no such disk, no boot, or the export cannot be reached
 */
export async function lookAfterReboot(line: ProbeSession, options: ProbeOptions): Promise<RebootSeen> {
  for (let looks = 1;; looks++) {
    const upMs = await readUpMs(line);
    const seen = await lookOnce(line, upMs, options);
    if (typeof seen !== "string") {
      // Asked again behind the look: never earlier than the disk was seen.
      const seconds = await readUpMs(line) / 1000;
      const ending = looks === 1 ? " at the latest" : "";
      options.say(`the scratch disk was back ${seconds} s after the boot${ending}; others may come later`);
      return seen;
    }
    if (upMs >= timeoutMs) throw refuse(seen);
    if (looks === 1) options.say(`waiting for the scratch disk: ${seen}`);
    await options.clock.sleep(pollMs, options.signal);
  }
}

/** Gives why it cannot be told yet as text: right after a boot that may change. */
async function lookOnce(
  line: ProbeSession,
  upMs: number,
  options: ProbeOptions,
): Promise<{ readonly identity: RebootSeen["identity"] } | string> {
  try {
    const found = await findStanding(line, options.basePath);
    if (found === undefined) return "none is listed";
    if (upMs >= found.before.upMs) {
      throw refuse(`the router's uptime has not fallen since, ${upMs / 1000} s: reboot it first`);
    }
    const now = await readIdentity({ ...options, names: found }, found.before.nqn);
    const kept = isSame(found.before, now);
    options.say(`before the boot: ${describe(found.before)}; after it: ${describe(now)}`);
    return { identity: kept ? "kept" : "new" };
  } catch (error) {
    if (error instanceof NoAnswer) return error.message;
    throw error;
  }
}

function describe({ uuid, nguid, serial }: IdentitySeen): string {
  return `uuid=${uuid} nguid=${nguid} serial=${serial}`;
}

/** The disk of the first run, by its name and its comment. */
async function findStanding(
  line: ProbeSession,
  basePath: string,
): Promise<{ readonly tag: string; readonly before: Before } | undefined> {
  const query =
    ros`/disk print detail as-value proplist=slot,file-path,comment where type=${"file"} and file-path~${scratchPrefix}`;
  for (const disk of await readItems(line, query)) {
    const path = imagePathOf(String(disk["file-path"]));
    const before = parseBefore(String(disk["comment"]));
    if (before === undefined || !isScratchPath(path, basePath)) continue;
    return { tag: path.slice(basePath.length + 1).slice(0, scratchPrefix.length + 8), before };
  }
  return undefined;
}

async function readUpMs(line: ProbeSession): Promise<number> {
  return parseResource(await line.read(resourceQuery)).upMs;
}

const beforeForm = /^before-reboot (\d+) (\S+) ([0-9a-f]*|-) ([0-9a-f]*|-) (.*)$/;

function formatBefore({ upMs, nqn, uuid, nguid, serial }: Before): string {
  return `before-reboot ${upMs} ${nqn} ${uuid || "-"} ${nguid || "-"} ${serial}`;
}

function parseBefore(comment: string): Before | undefined {
  const match = beforeForm.exec(comment);
  if (match === null) return undefined;
  const [, upMs, nqn, uuid, nguid, serial] = match;
  const hex = (text: string | undefined) => text === undefined || text === "-" ? "" : text;
  return { upMs: Number(upMs), nqn: nqn!, uuid: hex(uuid), nguid: hex(nguid), serial: serial! };
}

function refuse(reason: string): VolumeError {
  return new VolumeError(
    "precondition",
    `Cannot check what a reboot does to the disk that --before-reboot left because ${reason}; the disk stays, and ` +
      "--probe alone removes it",
  );
}
