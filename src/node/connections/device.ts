import { VolumeError } from "../../volume/errors.ts";
import type { CallContext, FoundDevice, ProvenDevice } from "../../volume/ports/ports.ts";
import { type ExpectedIdentity, proveDevice } from "./identity.ts";
import type { Undo } from "../stage/undo.ts";
import type { NodeWorld } from "../deps.ts";

const firstPollMs = 10;
/** Slowly longer: it usually takes a tenth of a second, and waiting twice as long for it would show. */
const pollGrowth = 1.2;
const longestPollMs = 500;
/** Where the call itself has no deadline. */
const maxPollMs = 60_000;
/** Left of the call to say what it waited for, instead of only that its time is up. */
const marginMs = 500;

/**
 * Proves a device that was found, with a fresh look at what lies at its path.
 *
 * @throws {VolumeError} identity-mismatch when it is not what was expected
 */
export async function prove(
  world: NodeWorld,
  found: FoundDevice,
  expected: ExpectedIdentity,
  context: CallContext,
): Promise<ProvenDevice> {
  return proveDevice(found, await world.paths.info(found.path, context), expected);
}

/**
 * Finds and proves a proven device anew, right before something is done to it.
 *
 * @throws {VolumeError} identity-mismatch when it is another one by now, unavailable when it is gone
 */
export async function proveAgain(
  world: NodeWorld,
  device: ProvenDevice,
  context: CallContext,
): Promise<ProvenDevice> {
  context.signal.throwIfAborted();
  const found = await world.connector.find(device.nqn, context);
  if (found === undefined) {
    throw new VolumeError(
      "unavailable",
      `Cannot go on as the device is gone: device=${device.path} nqn=${device.nqn}`,
    );
  }
  if (found.deviceNumber !== device.deviceNumber) {
    throw new VolumeError(
      "identity-mismatch",
      `Cannot go on as the device became another one: was=${device.deviceNumber} is=${found.deviceNumber}`,
    );
  }
  return await prove(world, found, device, context);
}

/**
 * Keeps a proven device open to the end of the call, and proves it once more: from then on nobody else gets its name or
 * its number, by which tools and the kernel's answers go. Whoever cuts it off makes them fail.
 *
 * @throws {VolumeError} identity-mismatch when it is another one by now, unavailable when it is gone
 */
export async function holdProven(
  world: NodeWorld,
  device: ProvenDevice,
  undo: Undo,
  context: CallContext,
): Promise<{ readonly device: ProvenDevice; readonly letGo: () => Promise<void> }> {
  const letGo = await world.devices.hold(device, context);
  undo.add("let go of the device", letGo);
  return { device: await proveAgain(world, device, context), letGo };
}

/**
 * Waits until the device is there, and is as large as that. The kernel shows a device before it makes the node of it.
 *
 * @throws {VolumeError} the reason of the context's end; unavailable when it takes too long
 */
export async function awaitDevice(
  world: NodeWorld,
  nqn: string,
  atLeastBytes: bigint,
  context: CallContext,
): Promise<FoundDevice> {
  const leftMs = context.deadlineMs - world.clock.now() - marginMs;
  const untilMs = world.clock.monotonicMs() + Math.min(leftMs, maxPollMs);
  for (let waitMs = firstPollMs;; waitMs = Math.min(waitMs * pollGrowth, longestPollMs)) {
    const found = await world.connector.find(nqn, context);
    const lacking = await whatIsLacking(world, found, atLeastBytes, context);
    if (found !== undefined && lacking === undefined) return found;
    if (world.clock.monotonicMs() + waitMs > untilMs) {
      throw new VolumeError(
        "unavailable",
        `Cannot use the device as ${lacking}: nqn=${nqn} wanted size>=${atLeastBytes}`,
      );
    }
    await world.clock.sleep(waitMs, context.signal);
  }
}

async function whatIsLacking(
  { paths }: NodeWorld,
  found: FoundDevice | undefined,
  atLeastBytes: bigint,
  context: CallContext,
): Promise<string | undefined> {
  if (found === undefined) return "it does not appear, or is empty";
  if (found.sizeBytes < atLeastBytes) return `its size stays ${found.sizeBytes}`;
  const node = await paths.info(found.path, context);
  return node === undefined ? `there is no ${found.path}` : undefined;
}
