import { limitSignal } from "../async/deadline.ts";
import { endsWithin } from "../async/waiting.ts";
import { VolumeError } from "../volume/errors.ts";
import type { DeviceNode } from "../volume/ports/node_ports.ts";
import type { CallContext, Clock } from "../volume/ports/system.ts";
import type { KernelFiles } from "./kernel_files.ts";

/** An open that takes longer waits for a device that does not answer, in milliseconds. */
const openMs = 10_000;
/** The close of a device that does not answer goes on in the background. */
const closeMs = 2_000;

/** Opens devices. */
export interface DeviceOpening {
  readonly files: Pick<KernelFiles, "hold">;
  readonly clock: Clock;
}

/**
 * Opens a device and keeps it open, unclaimed. Returns the path under which other processes can open it meanwhile, and a
 * function that closes it, which never fails and is quick.
 *
 * @throws {VolumeError} unavailable when it does not open, identity-mismatch when another device has its path
 */
export async function holdDevice(
  { files, clock }: DeviceOpening,
  device: DeviceNode,
  context: CallContext,
): Promise<{ readonly path: string; readonly release: () => Promise<void> }> {
  using limited = limitSignal(clock, context.signal, openMs);
  const held = await files.hold(device.path, limited.signal);
  const release = async () => void (held && await endsWithin(clock, closeMs, held.release()));
  if (!context.signal.aborted && held?.deviceNumber === device.deviceNumber) {
    return { path: held.path, release };
  }
  // Nobody else ever would: the caller gets an error.
  await release();
  context.signal.throwIfAborted();
  if (held === undefined) {
    throw new VolumeError("unavailable", `Cannot open the device: device=${device.path}`);
  }
  throw new VolumeError(
    "identity-mismatch",
    `Cannot use the device because its path leads to another device: device=${device.path} ` +
      `expected number=${device.deviceNumber} found number=${held.deviceNumber}`,
  );
}

/**
 * Keeps a device open during its use by a tool, which gets the path of this process's descriptor. A tool opens a device
 * late, or several times, and outlives a killed driver: by then another volume could have the device's name, while the
 * path of the descriptor has gone with the driver, and so the tool fails.
 *
 * @throws {VolumeError} as {@linkcode holdDevice}; whatever `use` throws
 */
export async function holdingDevice<T>(
  opening: DeviceOpening,
  device: DeviceNode,
  context: CallContext,
  use: (path: string) => Promise<T>,
): Promise<T> {
  const { path, release } = await holdDevice(opening, device, context);
  try {
    return await use(path);
  } finally {
    await release();
  }
}
