import { poolOf } from "../../volume/model/ids/ids.ts";
import { VolumeError } from "../../volume/errors.ts";
import { parsePoolDisks, type PoolDisk, poolDisksQuery, whyUnreadable } from "../router/pools.ts";
import { parseRow } from "../../routeros/console/json.ts";
import { resourceQuery } from "../../routeros/store/queries.ts";
import { parseRouterInfo } from "../../routeros/console/router_info.ts";
import { askSideEffects } from "./sessions.ts";
import { ProbeSession, RouterGone } from "./session.ts";
import { leaveForReboot, lookAfterReboot } from "./reboot.ts";
import {
  findFile,
  findLeftovers,
  leaveNothing,
  NotClean,
  removeAll,
  type ScratchLocation,
} from "./scratch.ts";
import type { RouterBehaviours } from "../../router_profile/answers.ts";
import type { RouterProfile } from "../../router_profile/profile.ts";
import { ScratchNames } from "./names.ts";
import { askCopyReturns } from "./copy_returns.ts";
import { askSubvolumeNames } from "./subvolumes.ts";
import { askGrow } from "./exports.ts";
import { askUnexport } from "./withdrawals.ts";
import { askLimits } from "./limits.ts";
import { NoAnswer, type Probe, type ProbeOptions, type RebootSeen } from "./question.ts";

/** The place in which a probe may make things. */
interface Site {
  /** As the router spells it. */
  readonly version: string;
  /** Version and board: what a profile is called. */
  readonly name: string;
  readonly pool: PoolDisk;
}

/**
 * Looks at the folder that a person has named, before anything is made in it.
 *
 * @throws {VolumeError} precondition when it is not there, is no folder, or is on no mounted pool
 */
async function surveySite(line: ProbeSession, basePath: string): Promise<Site> {
  const { version, board } = parseRouterInfo(parseRow(await line.read(resourceQuery), "system resource"));
  const pools = parsePoolDisks(await line.read(poolDisksQuery));
  const odd = whyUnreadable(pools, basePath);
  if (odd !== undefined) throw refuse(basePath, `the router's row of its pool cannot be read: ${odd}`);
  const pool = pools.find((disk) => disk.mounted && disk.mountPoint === poolOf(basePath));
  if (pool === undefined) throw refuse(basePath, "it is on no mounted pool");
  const folder = await findFile(line, basePath);
  const isThere = basePath === `/${pool.mountPoint}` || folder !== undefined;
  if (!isThere) throw refuse(basePath, "it does not exist");
  const type = folder?.["type"] ?? "disk";
  if (type !== "directory" && type !== "disk") throw refuse(basePath, "it is no folder");
  return { version, name: `${board} ${version}`.trim(), pool };
}

function refuse(basePath: string, reason: string): VolumeError {
  return new VolumeError(
    "precondition",
    `Cannot probe the router in that folder because ${reason}: base-path=${basePath}; ` +
      "name a folder on the router in which scratch volumes may be made and removed",
  );
}

/**
 * Asks for one answer. Whatever it makes has the name of a scratch object.
 *
 * @throws {NoAnswer} when it cannot be answered
 * @throws {VolumeError} when the router cannot be asked
 */
type Ask<Answer> = (probe: Probe) => Promise<Answer>;

/** Everything that a probe asks, in this order. */
const questions: { readonly [Name in keyof RouterBehaviours]: Ask<RouterBehaviours[Name]> } = {
  limits: askLimits,
  subvolumeNames: askSubvolumeNames,
  copyReturns: askCopyReturns,
  grow: askGrow,
  bootIdentity: askBootIdentity,
  sideEffects: askSideEffects,
  unexport: askUnexport,
};

/** A probe reboots nothing: a run before a reboot leaves what one after it looks at. */
function askBootIdentity({ reboot }: Probe): Promise<RouterBehaviours["bootIdentity"]> {
  if (reboot !== undefined) return Promise.resolve(reboot.identity);
  throw new NoAnswer(
    "only a reboot shows it: run --before-reboot, reboot the router, then run --after-reboot",
  );
}

/** What a probe found out. */
interface Probed {
  readonly profile: RouterProfile;
  /** Why the other questions have no answer. */
  readonly unanswered: Readonly<Record<string, string>>;
}

/**
 * Asks a router everything that differs between routers, on scratch volumes, and removes them again, whatever happens.
 *
 * @throws {VolumeError} precondition when the folder is none that may be used, or something is left that the router does
 * not let go
 * @throws {VolumeError} unavailable when the router cannot be asked; cancelled when it was stopped
 */
export async function probeRouter(options: ProbeOptions): Promise<Probed> {
  return await onSite(options, async (line, site, location) => {
    const reboot = options.afterReboot ? await lookAfterReboot(line, options) : undefined;
    for (const text of announce(options)) options.say(text);
    await removeEarlier(line, location, options);
    return await askThenCleanUp(line, site, location, reboot, options);
  });
}

/**
 * Makes an exported scratch disk that stands over a reboot of the router: a probe after that looks at it, and every probe
 * removes it. Nothing stays when that fails.
 *
 * @throws as {@linkcode probeRouter}; {VolumeError} precondition when no such disk can be made
 */
export async function prepareReboot(options: ProbeOptions): Promise<void> {
  await onSite(options, async (line, site, location) => {
    options.say(
      `makes one scratch disk of 1 MiB in ${options.basePath}, exported to a host that does not exist`,
    );
    await removeEarlier(line, location, options);
    try {
      const { slot, path } = await leaveForReboot(makeProbe(line, site, undefined, options));
      options.say(`disk ${slot} on ${path} stays: reboot the router, and then run --probe --after-reboot`);
      options.say("the next run removes it, and so does --probe alone");
    } catch (error) {
      const failure = error instanceof NoAnswer
        ? new VolumeError(
          "precondition",
          `Cannot make a disk that survives a reboot because ${error.message}`,
        )
        : error;
      await leaveNothing(line, location, failure, options);
      throw failure;
    }
  });
}

/** Works with a router in a folder that may be used. */
async function onSite<Result>(
  options: ProbeOptions,
  work: (line: ProbeSession, site: Site, location: ScratchLocation) => Promise<Result>,
): Promise<Result> {
  const line = new ProbeSession(options);
  try {
    const site = await surveySite(line, options.basePath);
    const location = { basePath: options.basePath, pool: site.pool };
    options.say(`${site.name}, on ${options.basePath}`);
    return await work(line, site, location);
  } catch (error) {
    // What failed on the way down is not what matters.
    if (!(error instanceof NotClean)) options.signal.throwIfAborted();
    throw error;
  } finally {
    line.close();
  }
}

/** How long questions are begun, in milliseconds: the last one and the clean-up fit into two minutes behind it. */
const defaultBeginMs = 4 * 60_000;

/** What a probe is going to do, before it does anything. */
function announce({ basePath, host }: ProbeOptions): readonly string[] {
  return [
    `makes scratch disks, files and subvolumes in ${basePath}, one at a time: most of 1 MiB, one of 2 GiB where 8 GiB ` +
    "are free, and two of 64 MiB that it fills; copies some of them; and removes everything again",
    `exports some at port ${host.port}, to a host that does not exist`,
    "opens 1 SSH session, and takes at most 6 minutes",
  ];
}

/** What a probe that was killed has left is shown, and removed. */
async function removeEarlier(
  line: ProbeSession,
  location: ScratchLocation,
  options: ProbeOptions,
): Promise<void> {
  const earlier = await findLeftovers(line, location);
  if (earlier.length === 0) return;
  for (const { what } of earlier) options.say(`removing what an earlier probe left: ${what}`);
  await removeAll(line, location, false, options);
}

async function askThenCleanUp(
  line: ProbeSession,
  site: Site,
  location: ScratchLocation,
  reboot: RebootSeen | undefined,
  options: ProbeOptions,
): Promise<Probed> {
  let failure: unknown;
  try {
    return await askAll(makeProbe(line, site, reboot, options), site, options);
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    await leaveNothing(line, location, failure, options);
  }
}

function makeProbe(
  line: ProbeSession,
  site: Site,
  reboot: RebootSeen | undefined,
  options: ProbeOptions,
): Probe {
  const names = new ScratchNames(options.basePath, options.random);
  options.say(`everything made is called ${names.tag}…`);
  return { ...options, line, names, pool: site.pool, reboot };
}

async function askAll(probe: Probe, site: Site, options: ProbeOptions): Promise<Probed> {
  const answers: Partial<RouterBehaviours> = {};
  const reasons: Record<string, string> = {};
  const { beginMs = defaultBeginMs } = options;
  const startedMs = options.clock.monotonicMs();
  for (const [name, ask] of Object.entries(questions)) {
    options.say(`asking: ${name}`);
    try {
      if (options.clock.monotonicMs() - startedMs > beginMs) {
        throw new NoAnswer(`the other questions took ${defaultBeginMs / 60_000} minutes`);
      }
      const answer = await ask(probe);
      Object.assign(answers, { [name]: answer });
      options.say(`${name}: ${answer}`);
    } catch (error) {
      reasons[name] = reasonOf(error);
      options.say(`${name}: no answer, as ${reasons[name]}`);
    }
  }
  const { name, version, pool } = site;
  const poolFilesystem = pool.filesystem === "btrfs" ? "btrfs" : "xfs";
  return { profile: { name, version, poolFilesystem, answers }, unanswered: reasons };
}

/**
 * Why a question has no answer: one that cannot be answered stops none behind it.
 *
 * @throws what a router that is gone gives: it stops them all
 */
function reasonOf(error: unknown): string {
  // Commands to the router have no deadline of their own: it is an export that did not answer its host.
  if (VolumeError.is(error, "deadline")) {
    return `an export was silent to its host: probe again over a steady network (${error.message})`;
  }
  const isAnswer = error instanceof NoAnswer ||
    (VolumeError.is(error, "unavailable") && !(error instanceof RouterGone));
  if (isAnswer) return error.message;
  throw error;
}
