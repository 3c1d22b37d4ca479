import { VolumeError } from "../../volume/errors.ts";
import type { VolumeHealth } from "../../volume/model/health.ts";
import { judgeNodeHealth, type NodeLook, type Shown } from "../../volume/rules/node_health.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { FoundDevice, MountEntry } from "../../volume/ports/node_ports.ts";
import type { PublishedTarget, Stash } from "../../volume/model/staging_state.ts";
import { proveStaged } from "../connections/device.ts";
import { mountsAt } from "../mount_table.ts";
import { Stashes } from "../stage/staging_store.ts";
import { filesystemStats } from "./stats.ts";
import { withDeadline } from "../../async/deadline.ts";
import type { NodeWorld } from "../deps.ts";

/** More than all looks together may take. */
const limitMs = 15_000;
/** How long a single path may take to answer before it counts as silent; well below the whole. */
const silenceMs = 5_000;

/**
 * What is wrong with a volume as this node sees it; nothing when it is healthy. It reads what the kernel shows and
 * changes nothing; the device itself is not read.
 *
 * @throws {VolumeError} not-found when this node knows nothing of it; unavailable or deadline when the kernel does not
 * show its connections or mounts
 */
export async function nodeVolumeHealth(
  world: NodeWorld,
  volumeId: string,
  context: CallContext,
): Promise<VolumeHealth> {
  const what = `look after the volume: volume=${volumeId}`;
  return await withDeadline(world.clock, context, limitMs, what, async (limited) => {
    const stash = await findStash(world, volumeId);
    if (typeof stash === "string") {
      const damaged = { status: "INACCESSIBLE", reason: "StateDamaged", message: stash } as const;
      return { id: volumeId, problems: [damaged] };
    }
    const look = await lookAt(world, stash, limited);
    const problems = judgeNodeHealth(look);
    if (stash.staged) {
      world.events.happened({ kind: "connections", volumeId, connections: look.connections });
      world.events.happened({ kind: "health", volumeId, problems });
    }
    return { id: volumeId, problems };
  });
}

/** What this node remembers of the volume, or what is wrong with that. */
async function findStash(world: NodeWorld, volumeId: string): Promise<Stash | string> {
  try {
    const stash = await new Stashes(world).find(volumeId);
    if (stash !== undefined) return stash;
  } catch (error) {
    if (VolumeError.is(error, "precondition")) return error.message;
    throw error;
  }
  throw new VolumeError("not-found", `Cannot find the volume on this node: volume=${volumeId}`);
}

async function lookAt(world: NodeWorld, stash: Stash, context: CallContext): Promise<NodeLook> {
  const { connector, mounts, paths } = world;
  const [connections, device, table] = await Promise.all([
    connector.connections(stash.nqn, context),
    connector.find(stash.nqn, context),
    mounts.table(),
  ]);
  const point = await paths.mountPoint(stash.stagingPath);
  const mount = stash.kind === "block" ? undefined : mountsAt(table, point).at(-1);
  const [mismatch, silence, targets] = await Promise.all([
    device && mismatchOf(world, stash, device, context),
    mount && silenceOf(world, mount, context),
    Promise.all(stash.published.map((target) => lookAtTarget(world, stash, table, target, context))),
  ]);
  return { stash, connections, device, mismatch, mount, silence, targets };
}

async function mismatchOf(
  world: NodeWorld,
  stash: Stash,
  device: FoundDevice,
  context: CallContext,
): Promise<string | undefined> {
  try {
    await proveStaged(world, device, stash, context);
    return undefined;
  } catch (error) {
    if (VolumeError.is(error, "identity-mismatch")) return error.message;
    throw error;
  }
}

/** A file system whose device is dead can be mounted, and look well in the table. */
async function silenceOf(
  world: NodeWorld,
  mount: MountEntry,
  context: CallContext,
): Promise<string | undefined> {
  const asked = await answerOf(
    world,
    context,
    (limited) => filesystemStats(world, mount.mountPoint, limited),
  );
  return asked.reason;
}

async function lookAtTarget(
  world: NodeWorld,
  stash: Stash,
  table: readonly MountEntry[],
  { targetPath }: PublishedTarget,
  context: CallContext,
): Promise<{ readonly targetPath: string; readonly shown: Shown }> {
  const top = mountsAt(table, await world.paths.mountPoint(targetPath)).at(-1);
  if (top === undefined) return { targetPath, shown: { state: "nothing" } };
  if (stash.kind !== "block") {
    return { targetPath, shown: { state: "device", deviceNumber: top.deviceNumber } };
  }
  const { value, reason } = await answerOf(
    world,
    context,
    (limited) => world.paths.info(targetPath, limited),
  );
  if (reason !== undefined) return { targetPath, shown: { state: "silent", reason } };
  return { targetPath, shown: { state: "device", deviceNumber: value?.deviceNumber } };
}

/** What a path answers, or why it does not; the end of the call itself is thrown. */
async function answerOf<T>(
  world: NodeWorld,
  context: CallContext,
  ask: (limited: CallContext) => Promise<T>,
): Promise<{ readonly value?: T; readonly reason?: string }> {
  try {
    return { value: await withDeadline(world.clock, context, silenceMs, "get an answer", ask) };
  } catch (error) {
    context.signal.throwIfAborted();
    if (VolumeError.is(error, "unavailable") || VolumeError.is(error, "deadline")) {
      return { reason: error.message };
    }
    throw error;
  }
}
