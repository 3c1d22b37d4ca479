import { assertSettled, assertShown } from "../../volume/rules/absence.ts";
import type { VolumeHealth } from "../../volume/model/health/health.ts";
import type { HardwareFinding } from "../../volume/model/health/hardware.ts";
import { judgeHealth, type RouterBoot, withHardware } from "../../volume/rules/health/health.ts";
import { poolOf } from "../../volume/model/ids/ids.ts";
import { findOwned } from "./read.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { VolumeView } from "../../volume/model/inventory.ts";
import { assertVolumeGone, notFound, ownFilePrefix } from "../load.ts";
import { importedImage, ownFiles } from "../inventory.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/**
 * What is wrong with one volume; nothing when it is healthy. One command; two when it was imported. What is known of arrays
 * and drives comes from memory.
 *
 * @throws {VolumeError} not-found when it is provably not there or not this cluster's; precondition when it is there and
 * has no record to judge it by; unavailable when its absence proves nothing
 */
export async function getVolumeHealth(
  deps: ControllerDeps,
  id: string,
  context: CallContext,
): Promise<VolumeHealth> {
  const call = { ...deps, context };
  const { basePaths, cluster, settleMs } = deps.settings;
  const askedMs = call.clock.now();
  const view = await readWithFiles(call, id, ownFilePrefix(deps, id));
  assertSettled(view, settleMs);
  const volumes = [...view.volume === undefined ? [] : [view.volume], ...view.sharers];
  const health = judgeHealth({ ...view, volumes }, cluster, basePaths, bootOf(call, askedMs, view))
    .find((one) => one.id === id);
  if (health !== undefined) {
    const faults = view.volume === undefined ? [] : call.hardware.faultsBelow(poolOf(view.volume.imagePath));
    return { ...health, problems: withHardware(health.problems, faults) };
  }
  if (view.volume !== undefined) findOwned(view.volume, cluster, basePaths);
  else if (view.foreign === undefined) assertVolumeGone(deps, id, view);
  throw notFound("find", id);
}

/**
 * The router's last boot, at the latest that is certain, where nodes lose their devices by that: unless it is known to keep
 * their identities. An answer may take its time, or another try: it is reckoned from when it was asked for.
 */
function bootOf(
  { settings, clusterView }: ControllerCall,
  askedMs: number,
  { upMs }: { readonly upMs: number },
): RouterBoot | undefined {
  if (settings.bootIdentity === "kept") return undefined;
  // No node stages such a volume without a layer. What `auto` and the nodes' own setting come to is not known here.
  const isLayered = (id: string) => clusterView?.volumeContext(id)?.["deviceLayer"] === "multipath";
  return { atMs: askedMs - upMs, isLayered };
}

/** The files of an image that was imported do not go by the name of the volume. */
async function readWithFiles(call: ControllerCall, id: string, filePrefix: string): Promise<VolumeView> {
  const view = await call.store.view(id, filePrefix, call.context);
  const path = view.volume === undefined ? undefined : importedImage(view.volume, call.settings.cluster);
  return path === undefined ? view : await call.store.view(id, path, call.context);
}

/**
 * The volumes of this cluster that something is wrong with, ordered by id, see {@linkcode readVolumeHealth}.
 *
 * @throws {VolumeError} unavailable while it cannot be told: after a boot, or with a pool not mounted that shows no disks
 */
export async function listVolumeHealth(
  deps: ControllerDeps,
  context: CallContext,
): Promise<readonly VolumeHealth[]> {
  const volumes = await readVolumeHealth(deps, context);
  return volumes.map(({ id, problems, faults }) => ({ id, problems: withHardware(problems, faults) }))
    .filter(({ problems }) => problems.length > 0);
}

/** A volume with its own problems, and the faults of arrays and drives below its pool. */
export interface ReadHealth extends VolumeHealth {
  /** None where they are unknown. */
  readonly faults: readonly HardwareFinding[];
}

/**
 * Every volume of this cluster, ordered by id. Two commands; twice as many when any has problems of its own. What is known
 * of arrays and drives comes from memory.
 *
 * @throws {VolumeError} unavailable while it cannot be told: after a boot, or with a pool not mounted that shows no disks
 */
export async function readVolumeHealth(
  deps: ControllerDeps,
  context: CallContext,
): Promise<readonly ReadHealth[]> {
  const call = { ...deps, context };
  const first = await judgeAll(call);
  const health = first.some(({ problems }) => problems.length > 0)
    ? inBoth(first, await judgeAll(call))
    : first;
  return health.map(({ pool, ...one }) => ({
    ...one,
    faults: pool === undefined ? [] : deps.hardware.faultsBelow(pool),
  }));
}

/** A volume with the pool of its disk; undefined where only the image is left. */
type JudgedVolume = VolumeHealth & { readonly pool: string | undefined };

/** Disks and files are two looks: what was made, grown or deleted between them seems sick, once. */
function inBoth(first: readonly JudgedVolume[], again: readonly JudgedVolume[]): JudgedVolume[] {
  const seen = new Set(first.flatMap(({ id, problems }) => problems.map(({ reason }) => `${id} ${reason}`)));
  return again.map((volume) => ({
    ...volume,
    problems: volume.problems.filter(({ reason }) => seen.has(`${volume.id} ${reason}`)),
  }));
}

async function judgeAll(call: ControllerCall): Promise<readonly JudgedVolume[]> {
  const { basePaths, cluster, settleMs } = call.settings;
  const askedMs = call.clock.now();
  const inventory = await call.store.inventory(call.context);
  const files = await ownFiles(call, inventory);
  const withVolumes = new Set(inventory.volumes.map(({ imagePath }) => poolOf(imagePath)));
  assertShown(files, basePaths.filter((base) => !withVolumes.has(poolOf(base))), settleMs);
  const health = judgeHealth(
    { ...inventory, ...files },
    cluster,
    basePaths,
    bootOf(call, askedMs, inventory),
  );
  const pools = new Map(inventory.volumes.map(({ id, imagePath }) => [id, poolOf(imagePath)]));
  return health.map((one) => ({ ...one, pool: pools.get(one.id) }));
}
