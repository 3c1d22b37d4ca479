import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { LogState, ProvenDevice } from "../../volume/ports/node_ports.ts";
import type { FilesystemType } from "../../volume/model/capabilities.ts";
import { type StagingState, withHere } from "../../volume/model/staging/state.ts";
import { proveAgain } from "../connections/device.ts";
import { readChain } from "../chain/chain.ts";
import type { NodeDeps } from "../deps.ts";
import type { Undo } from "./undo.ts";

/** The input of a log replay: a stage whose device is proven and not mounted. */
interface LogStaging {
  readonly deps: NodeDeps;
  readonly undo: Undo;
  readonly context: CallContext;
  readonly device: ProvenDevice;
  readonly mountPoint: string;
  /** Whether this node may write for the replay. */
  readonly mayReplay: boolean;
}

/**
 * Makes sure that a file system which is about to be mounted without its log shows all synced data. Where it is
 * allowed, a mount of its own replays a log that is not empty; afterwards the device takes no writes again.
 *
 * @throws {VolumeError} unavailable while the log is not known to be empty
 */
export async function settleLog(
  staging: LogStaging,
  stagingState: StagingState,
  filesystem: FilesystemType,
  log: LogState,
): Promise<void> {
  const { deps, device, context, mayReplay } = staging;
  if (log.state === "clean") return;
  const names = `volume=${stagingState.volumeId} device=${device.path}`;
  if (log.state === "unknown") throw unreadable(names, log.reason);
  if (!mayReplay) {
    throw new VolumeError(
      "unavailable",
      "Cannot stage the volume read-only because its file system's log was not replayed, so that synced files could " +
        `be missing: ${names}; the node that attached the volume first replays it, and this is tried again; if that ` +
        "node is gone, delete all pods that use the volume",
    );
  }
  await replay(staging, stagingState, filesystem);
  const after = await deps.filesystems.logState(await proveAgain(deps, device, context), filesystem, context);
  if (after.state === "unknown") throw unreadable(names, after.reason);
  if (after.state === "clean") return;
  throw new VolumeError(
    "unavailable",
    `Cannot stage the volume read-only because its file system's log is not empty after a replay: ${names}`,
  );
}

/** Mounts the file system once so that the kernel replays the log. The device is writable only for that time. */
async function replay(
  { deps, undo, context, device, mountPoint }: LogStaging,
  stagingState: StagingState,
  filesystem: FilesystemType,
): Promise<void> {
  await deps.stagingStore.write(withHere(stagingState, { replaying: true }));
  const again = async (on: CallContext) => await proveAgain(deps, device, on);
  undo.add("make the device read-only again", async (undoing) => {
    if ((await readChain(deps, device.nqn, undoing)).used === undefined) return;
    await deps.devices.setReadOnly(await again(undoing), true, undoing);
  });
  undo.add("unmount after the replay", (undoing) => deps.mounts.unmount(mountPoint, undoing));
  await deps.devices.setReadOnly(await again(context), false, context);
  const options = { readOnly: true, replay: true, flags: [] };
  await deps.mounts.mountDevice(await again(context), mountPoint, filesystem, options, context);
  await deps.mounts.unmount(mountPoint, context);
  await deps.devices.setReadOnly(await again(context), true, context);
}

function unreadable(names: string, reason: string): VolumeError {
  return new VolumeError(
    "unavailable",
    `Cannot stage the volume read-only because the state of its file system's log is not known: ${names}: ${reason}`,
  );
}
