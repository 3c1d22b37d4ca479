import { limitCall } from "../async/deadline.ts";
import { duringCall } from "../async/waiting.ts";
import { VolumeError } from "../volume/errors.ts";
import type { CallContext, Clock } from "../volume/ports/system.ts";
import { describeAddress, type WireAddress } from "./address.ts";
import { anyController, connectCommand, getProperty, identify, properties, setProperty } from "./commands.ts";
import { type ControllerIdentity, parseController } from "./identity.ts";
import { Queue, queueDepth } from "./queue.ts";
import { explainRefusal } from "./refusal.ts";
import { connectFailure, type OpenStream, openTcp } from "./stream.ts";
import { wireError } from "./wire.ts";

/** The host's adapters besides an address; tests replace them. */
export interface HostAdapters {
  /** @default {systemClock} */
  readonly clock?: Clock;
  /** Opens a connection. @default {openTcp} */
  readonly open?: OpenStream;
  /** Longest time for connecting, in milliseconds, if the call itself has more. @default {15000} */
  readonly connectLimitMs?: number;
  /**
   * A target that receives nothing for so long, in milliseconds, drops this host; the host sends something after half
   * of it. A target that does not answer that for as long is given up.
   *
   * @default {30000}
   */
  readonly keepAliveMs?: number;
}

/** A controller that was created for this host, enabled and identified. */
export interface Controller {
  readonly admin: Queue;
  readonly id: number;
  readonly identity: ControllerIdentity;
}

/** Enabled; NVM command set; entries of 64 and 16 bytes. */
const configuration = 0x0046_0001;
const readyBit = 1n;
const fatalBit = 2n;
const pollMs = 50;

/**
 * Makes the target create a controller, and enables it.
 *
 * @throws {VolumeError} unavailable when the target cannot be reached, refuses, or is no NVMe target
 * @throws {VolumeError} deadline or cancelled when the call ends first
 */
export async function openController(
  where: WireAddress,
  keepAliveMs: number,
  context: CallContext,
  adapters: HostAdapters & { readonly clock: Clock },
): Promise<Controller> {
  const admin = await openQueue(where, context, adapters);
  try {
    const id = await connectQueue(
      admin,
      where,
      { queueId: 0, controllerId: anyController, keepAliveMs },
      context,
    );
    await enable(admin, describeAddress(where), context, adapters.clock);
    const { bytes } = await admin.run(identify("controller", 0), context);
    return { admin, id, identity: parseController(bytes) };
  } catch (error) {
    await admin[Symbol.asyncDispose]();
    throw error;
  }
}

/**
 * Opens one more connection to the target, which is not a queue of a controller yet.
 *
 * @throws {VolumeError} unavailable when the target cannot be reached or is no NVMe target
 */
export async function openQueue(
  where: WireAddress,
  context: CallContext,
  { open = openTcp }: HostAdapters,
): Promise<Queue> {
  const { address, port } = where;
  const opening = open(address, port).catch((error) => {
    throw connectFailure(error, address, port);
  });
  const stream = await duringCall(opening, context.signal, (late) => late.close());
  return await Queue.open(stream, describeAddress(where), context);
}

/**
 * Makes a connection a queue of a controller, and returns the controller's id.
 *
 * @throws {VolumeError} unavailable when the target refuses; `refusalOf` returns why
 */
export async function connectQueue(
  queue: Queue,
  { nqn, hostNqn, hostIdBytes }: WireAddress,
  wanted: { readonly queueId: number; readonly controllerId: number; readonly keepAliveMs: number },
  context: CallContext,
): Promise<number> {
  const command = connectCommand({ ...wanted, nqn, hostNqn, hostId: hostIdBytes, depth: queueDepth });
  try {
    const { result } = await queue.run(command, context);
    if ((result >> 16n & 0xffffn) === 0n) return Number(result & 0xffffn);
  } catch (error) {
    throw explainRefusal(error, nqn, hostNqn);
  }
  throw new VolumeError(
    "unavailable",
    `Cannot connect to the NVMe subsystem because the target wants a password, and this host has none: nqn=${nqn}`,
  );
}

async function enable(admin: Queue, subject: string, context: CallContext, clock: Clock): Promise<void> {
  const { result: capabilities } = await admin.run(getProperty(properties.capabilities, 8), context);
  if ((capabilities & 0xffffn) + 1n < BigInt(queueDepth)) {
    throw wireError("its queues are too short", `mqes=${capabilities & 0xffffn}`);
  }
  await admin.run(setProperty(properties.configuration, configuration), context);
  for (;;) {
    const { result: status } = await admin.run(getProperty(properties.status, 4), context);
    if ((status & fatalBit) !== 0n) {
      throw new VolumeError("unavailable", `Cannot use the NVMe controller because it failed: ${subject}`);
    }
    if ((status & readyBit) !== 0n) return;
    await clock.sleep(pollMs, context.signal);
  }
}

/**
 * Runs `work` with a time limit of its own, for a call that has more time or no deadline at all.
 *
 * @throws {VolumeError} unavailable when the limit is over; whatever `work` throws
 */
export async function withinLimit<T>(
  where: WireAddress,
  context: CallContext,
  { clock, connectLimitMs = 15_000 }: HostAdapters & { readonly clock: Clock },
  work: (context: CallContext) => Promise<T>,
): Promise<T> {
  const late = new VolumeError(
    "unavailable",
    "Cannot connect to the NVMe target because it did not answer in time: " +
      `ms=${connectLimitMs} ${describeAddress(where)}`,
  );
  using limited = limitCall(clock, context, connectLimitMs, late);
  return await work(limited.context);
}
