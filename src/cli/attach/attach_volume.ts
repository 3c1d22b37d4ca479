import { isReadOnlyDevice } from "../../filesystem/contents.ts";
import type { KernelFiles } from "../../host/kernel_files.ts";
import { awaitDevice, prove } from "../../node/connections/device.ts";
import { connectedNqns } from "../../node/connections/teardown.ts";
import { withUndo } from "../../node/stage/undo.ts";
import type { NodeWorld } from "../../node/deps.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { ProvenDevice } from "../../volume/ports/node_ports.ts";
import { assertNotStaged, connectedNqn, offeredNqn, type Subject } from "./subject.ts";

/** What is to be attached. */
export interface AttachRequest {
  readonly subject: Subject;
  readonly address: string;
  readonly port: number;
  /** What it must have at least. */
  readonly sizeBytes: bigint;
  /** Only to be looked at: the connection is somebody's already. */
  readonly existing: boolean;
}

/**
 * Connects a volume that nobody uses here, proves its device, has the kernel refuse every write to it, and uses it. What
 * was done is undone when anything fails, the use included.
 *
 * @throws {VolumeError} in-use when it is staged or connected here; not-found when the router does not offer it, or, to
 * be looked at, it is not connected; identity-mismatch when the device is not what was asked for; unavailable when the
 * target refuses or the kernel does not take the flag
 */
export async function attachVolume<T>(
  world: NodeWorld,
  files: KernelFiles,
  request: AttachRequest,
  use: (device: ProvenDevice) => Promise<T>,
  context: CallContext,
): Promise<T> {
  const { subject, address, port, sizeBytes } = request;
  if (request.existing) {
    const nqn = await connectedNqn(world, subject, context);
    return await use(await proveConnected(world, nqn, sizeBytes, context));
  }
  await assertNotStaged(world, "attach", subject.volumeId);
  await assertNotConnected(world, subject.volumeId, context);
  const nqn = await offeredNqn(world, subject, { address, port }, context);
  return await withUndo(world.clock, context, async (undo) => {
    undo.add("disconnect", async (undoing) => {
      // The kubelet may have come in between: the connection is its own by now.
      await assertNotStaged(world, "disconnect", subject.volumeId);
      await world.connector.disconnect(nqn, undoing);
    });
    await world.connector.connect({ nqn, addresses: [address], port, sizeBytes }, context);
    const device = await proveConnected(world, nqn, sizeBytes, context);
    await assertNotStaged(world, "attach", subject.volumeId);
    await world.devices.setReadOnly(device, true, context);
    assertReadOnly(files, device);
    return await use(device);
  });
}

async function assertNotConnected(world: NodeWorld, volumeId: string, context: CallContext): Promise<void> {
  const connected = await connectedNqns(world, volumeId, context);
  if (connected.length === 0) return;
  throw new VolumeError(
    "in-use",
    `Cannot attach the volume as it is connected here already: volume=${volumeId} nqn=${
      connected.join(",")
    }; ` +
      "--existing looks at that connection and changes nothing, rds-csi detach ends one that nobody uses",
  );
}

async function proveConnected(
  world: NodeWorld,
  nqn: string,
  sizeBytes: bigint,
  context: CallContext,
): Promise<ProvenDevice> {
  const found = await awaitDevice(world, nqn, 0n, context);
  return await prove(world, found, { nqn, sizeBytes }, context);
}

/** The tool's word is not enough: a person trusts this flag with data. */
function assertReadOnly(files: KernelFiles, device: ProvenDevice): void {
  if (isReadOnlyDevice(files, device) === true) return;
  throw new VolumeError(
    "unavailable",
    `Cannot attach the volume as the kernel does not show its device as read-only: device=${device.path}`,
  );
}
