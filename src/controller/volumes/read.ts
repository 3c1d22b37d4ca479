import { assertSettled, assertShown } from "../../volume/rules/absence.ts";
import { assertSizesKnown, availableBeside, availableBytes, getPool } from "../../volume/rules/capacity.ts";
import { kindName, parseRecordedCapabilities, sameKind } from "../../volume/model/capabilities.ts";
import { parseCapability, type RequestedCapability } from "../../volume/model/requested_capabilities.ts";
import { VolumeError } from "../../volume/errors.ts";
import { isVolumeId, poolOf } from "../../volume/model/ids/ids.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import type { OwnedVolume } from "../../volume/model/record.ts";
import { getOwned, isNamedAsOwn, judgeOwnership } from "../../volume/rules/ownership.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { mayBeShared } from "../../volume/rules/publish.ts";
import { mebibyte, minimumSizeBytes } from "../../volume/model/sizes.ts";
import { assertVolumeGone, notFound, ownFilePrefix } from "../load.ts";
import type { ControllerDeps } from "../deps.ts";

/**
 * One volume of this cluster. One command.
 *
 * A volume of the legacy driver that nobody has taken over yet is none so far: reading changes nothing on the router.
 *
 * @throws {VolumeError} not-found when it is provably not there or not this cluster's; precondition when it is there and
 * has no record that can be read; unavailable when its absence proves nothing
 */
export async function getVolume(
  deps: ControllerDeps,
  id: string,
  context: CallContext,
): Promise<OwnedVolume> {
  const { cluster, basePaths } = deps.settings;
  const view = await deps.store.view(id, ownFilePrefix(deps, id), context);
  if (view.volume === undefined) {
    if (view.foreign === undefined) assertVolumeGone(deps, id, view);
    throw notFound("find", id);
  }
  const volume = findOwned(view.volume, cluster, basePaths);
  if (volume !== undefined) return volume;
  throw notFound("find", id);
}

/**
 * Every volume of this cluster, ordered by id. One command.
 *
 * Disks whose record cannot be read are left out and reported: whose they are is not known.
 *
 * @throws {VolumeError} unavailable while disks may be missing: after a boot, or with a pool not mounted
 */
export async function listVolumes(
  deps: ControllerDeps,
  context: CallContext,
): Promise<readonly OwnedVolume[]> {
  const { requestId } = context;
  const inventory = await deps.store.inventory(context);
  assertShown(inventory, deps.settings.basePaths, deps.settings.settleMs);
  const owned: OwnedVolume[] = [];
  for (const stored of inventory.volumes) {
    const ownership = judgeOwnership(stored, deps.settings.cluster);
    if (ownership.state === "owned" && !isVolumeId(stored.id)) {
      // No call could name it, nor a page begin after it.
      deps.notes.warn("the list omits a disk because its slot is not a volume id", {
        volume: stored.id,
        requestId,
      });
    } else if (ownership.state === "owned") owned.push(ownership.volume);
    if (ownership.state === "damaged" || ownership.state === "unreadable") {
      const what = ownership.state === "damaged" ? "its record is damaged" : "it cannot be read";
      const fields = { volume: stored.id, reason: ownership.reason, requestId };
      deps.notes.warn(`the list omits a disk because ${what}`, fields);
    }
  }
  return owned.toSorted((a, b) => (a.stored.id < b.stored.id ? -1 : 1));
}

/** What can still be provisioned, in bytes. */
export interface Capacity {
  readonly availableBytes: bigint;
  readonly maximumVolumeBytes: bigint;
  readonly minimumVolumeBytes: bigint;
}

/**
 * What can still be provisioned in a folder: while there is ample room, by sums that are up to 60 seconds old, of which what this process has deleted since is taken away. One command;
 * one more where a read of the pools alone shows that there is not.
 *
 * @throws {VolumeError} unavailable while disks may be missing
 */
export async function getCapacity(
  deps: ControllerDeps,
  basePath: string,
  context: CallContext,
): Promise<Capacity> {
  const bytes = await availableWithinAmpleRoom(deps, basePath, context) ??
    await availableByExactRead(deps, basePath, context);
  // Sizes are whole MiB: what is left beyond the last one cannot be had.
  const available = bytes / mebibyte * mebibyte;
  return { availableBytes: available, maximumVolumeBytes: available, minimumVolumeBytes: minimumSizeBytes };
}

/** Reads no disk of a volume; undefined when only an exact read can tell. */
async function availableWithinAmpleRoom(
  { promised, settings, store }: ControllerDeps,
  basePath: string,
  context: CallContext,
): Promise<bigint | undefined> {
  if (!promised.expects(0n, poolOf(basePath))) return undefined;
  const state = await store.state(context);
  assertSettled(state, settings.settleMs);
  const pool = getPool(state, basePath);
  const promisedBytes = promised.promisedNow(pool);
  return promisedBytes === undefined ? undefined : availableBeside(pool, promisedBytes, settings.overcommit);
}

async function availableByExactRead(
  { promised, settings, store }: ControllerDeps,
  basePath: string,
  context: CallContext,
): Promise<bigint> {
  const view = await promised.learnFrom(() => store.createView(undefined, context));
  assertSettled(view, settings.settleMs);
  const pool = getPool(view, basePath);
  assertSizesKnown(pool, view);
  return availableBytes(pool, view, settings.overcommit);
}

/**
 * Why the volume cannot be used in one of these ways, in words; undefined when it can be used in all of them.
 */
export function reasonAgainst(
  volume: OwnedVolume,
  requested: readonly RequestedCapability[],
): string | undefined {
  const recorded = parseRecordedCapabilities(volume.record.capabilities);
  for (const one of requested) {
    try {
      const capability = parseCapability(one);
      if (recorded === undefined || !sameKind(recorded.kind, capability)) {
        return `the volume was made for ${volume.record.capabilities}, not for ${kindName(capability)}`;
      }
      if (!mayBeShared(volume.record, capability.mode)) {
        return `the volume was made for ${volume.record.capabilities}, not for two nodes that write`;
      }
    } catch (error) {
      if (VolumeError.is(error, "invalid")) return error.message;
      throw error;
    }
  }
  return undefined;
}

/**
 * Returns the volume, for a call that reads it; undefined when it belongs to another. A volume whose record is only
 * unreadable must not be reported as gone.
 *
 * @throws {VolumeError} precondition when it exists, or may, and its record cannot be read; unavailable when its disk
 * cannot
 */
export function findOwned(
  stored: StoredVolume,
  cluster: string,
  basePaths: readonly string[],
): OwnedVolume | undefined {
  const { state } = judgeOwnership(stored, cluster);
  if (state === "other-cluster") return undefined;
  if (state === "no-record") {
    if (!isNamedAsOwn(stored, cluster, basePaths)) return undefined;
    throw new VolumeError(
      "precondition",
      `Cannot read the volume because the record in its disk's comment is gone: volume=${stored.id} ` +
        `path=${stored.imagePath}; restore the comment on the router from a backup or an export of its configuration`,
    );
  }
  return getOwned(stored, cluster, "read");
}
