import { poll } from "../../async/poll.ts";
import type { StagingState } from "../../volume/model/staging/state.ts";
import { usedBytes } from "../../volume/model/staging/intent.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { FoundDevice, PathInfo, ProvenDevice } from "../../volume/ports/node_ports.ts";
import type { Undo } from "../stage/undo.ts";
import { readChain } from "../chain/chain.ts";
import type { NodeDeps } from "../deps.ts";

/**
 * Reads what lies at the path of a found device right now, and proves the device against it.
 *
 * @throws {VolumeError} identity-mismatch when it is not what was expected
 */
export async function prove(
  deps: NodeDeps,
  found: FoundDevice,
  expected: ExpectedIdentity,
  context: CallContext,
): Promise<ProvenDevice> {
  return proveDevice(found, await deps.paths.info(found.path, context), expected);
}

/**
 * Proves that a found device is the one in the volume's staging state: the one through which the volume is used.
 *
 * @throws {VolumeError} identity-mismatch when it is not; unavailable while a volume with a map has another unique id
 *   than its staging state, until the watch of the maps has proven or reported that
 */
export async function proveStaged(
  deps: NodeDeps,
  found: FoundDevice,
  stagingState: StagingState,
  context: CallContext,
): Promise<ProvenDevice> {
  return await proveLeast(deps, found, stagingState, usedBytes(stagingState.intent), context);
}

/** Like {@linkcode proveStaged}, for the volume's namespace, which may be below the device through which it is used. */
export async function proveNamespace(
  deps: NodeDeps,
  found: FoundDevice,
  stagingState: StagingState,
  context: CallContext,
): Promise<ProvenDevice> {
  return await proveLeast(deps, found, stagingState, stagingState.intent.namespaceBytes, context);
}

async function proveLeast(
  deps: NodeDeps,
  found: FoundDevice,
  { intent: { nqn, map }, here: { device } }: StagingState,
  sizeBytes: bigint,
  context: CallContext,
): Promise<ProvenDevice> {
  if (map === "multipath" && device !== undefined) assertNotRenewed(found, device);
  return await prove(deps, found, { nqn, sizeBytes, uniqueId: device?.uniqueId }, context);
}

/**
 * Finds a proven device again and proves it again, right before an operation on it.
 *
 * @throws {VolumeError} identity-mismatch when the device has changed; unavailable when it is gone, or when the device
 *   below its map has changed since the map was proven
 */
export async function proveAgain(
  deps: NodeDeps,
  device: ProvenDevice,
  context: CallContext,
): Promise<ProvenDevice> {
  context.signal.throwIfAborted();
  const { map, used: found } = await readChain(deps, device.nqn, context);
  if (found === undefined) {
    throw new VolumeError(
      "unavailable",
      `Cannot continue because the device is gone: device=${device.path} nqn=${device.nqn}`,
    );
  }
  if (found.deviceNumber !== device.deviceNumber) {
    throw new VolumeError(
      "identity-mismatch",
      `Cannot continue because the device changed: was=${device.deviceNumber} is=${found.deviceNumber}`,
    );
  }
  if (found.uniqueId !== device.uniqueId && map?.kind === "multipath") assertNotRenewed(found, device);
  return await prove(deps, found, device, context);
}

/**
 * Throws unavailable, so that the call is retried: below a map, a device under another unique id is no mismatch yet.
 */
function assertNotRenewed(
  { path, nqn, uniqueId }: FoundDevice,
  before: { readonly uniqueId: string },
): void {
  if (uniqueId === before.uniqueId || before.uniqueId === "") return;
  throw new VolumeError(
    "unavailable",
    `Cannot use the device yet because its router gave it a new identity: device=${path} nqn=${nqn} ` +
      `was id=${before.uniqueId} is id=${uniqueId}; it will be retried`,
  );
}

/**
 * Keeps a proven device open to the end of the call, and proves it once more. While it is open, the kernel gives its
 * name and its number to no other device; tools and the kernel's answers go by these. When the device is disconnected
 * meanwhile, operations on it fail.
 *
 * @throws {VolumeError} identity-mismatch when the device has changed, unavailable when it is gone
 */
export async function holdProven(
  deps: NodeDeps,
  device: ProvenDevice,
  undo: Undo,
  context: CallContext,
): Promise<{ readonly device: ProvenDevice; readonly release: () => Promise<void> }> {
  const release = await deps.devices.hold(device, context);
  undo.add("release the device", release);
  return { device: await proveAgain(deps, device, context), release };
}

/**
 * Does some work on a proven namespace itself, not on a map above it. It keeps the namespace open meanwhile, and proves it
 * once more before: the work goes by a name or a number, which the kernel could have given to another volume's namespace.
 *
 * @throws {VolumeError} unavailable when the namespace is gone or another one; identity-mismatch when its path leads
 *   elsewhere; whatever `work` throws
 */
export async function holdingNamespace<T>(
  deps: NodeDeps,
  below: ProvenDevice,
  context: CallContext,
  work: () => Promise<T>,
): Promise<T> {
  const release = await deps.devices.hold(below, context);
  try {
    const found = await deps.connector.find(below.nqn, context);
    if (found?.deviceNumber !== below.deviceNumber || found.uniqueId !== below.uniqueId) {
      throw new VolumeError(
        "unavailable",
        `Cannot continue because the device changed: nqn=${below.nqn} was=${below.deviceNumber} ` +
          `id=${below.uniqueId} is=${found?.deviceNumber} id=${found?.uniqueId}`,
      );
    }
    await prove(deps, found, below, context);
    return await work();
  } finally {
    await release();
  }
}

/**
 * Waits until the device and its node exist. The kernel shows a device before it creates the device node.
 *
 * @throws {VolumeError} the reason of the context's end; unavailable when it takes too long
 */
export async function awaitDevice(
  deps: NodeDeps,
  nqn: string,
  context: CallContext,
): Promise<FoundDevice> {
  let lacking: string | undefined;
  const device = await poll(deps.clock, context, async () => {
    const found = await deps.connector.find(nqn, context);
    lacking = await whatIsLacking(deps, found, context);
    return lacking === undefined ? found : undefined;
  });
  if (device !== undefined) return device;
  throw new VolumeError("unavailable", `Cannot use the device because ${lacking}: nqn=${nqn}`);
}

async function whatIsLacking(
  { paths }: NodeDeps,
  found: FoundDevice | undefined,
  context: CallContext,
): Promise<string | undefined> {
  if (found === undefined) return "it does not appear, or is empty";
  const node = await paths.info(found.path, context);
  return node === undefined ? `there is no ${found.path}` : undefined;
}

/** The properties that a device must have. */
export interface ExpectedIdentity {
  readonly nqn: string;
  /** The least size that it has: volumes grow and never shrink. */
  readonly sizeBytes: bigint;
  /** NGUID or UUID seen before; undefined or "" when none was. */
  readonly uniqueId?: string;
}

/** A subsystem of this driver has one namespace, with this id. */
const onlyNsid = 1;

/**
 * Compares a device that was found with what was asked for; the only maker of a {@linkcode ProvenDevice}.
 *
 * `node` is what lies at the device's path right now: the kernel reuses device names.
 *
 * @throws {VolumeError} identity-mismatch when anything differs
 */
export function proveDevice(
  found: FoundDevice,
  node: PathInfo | undefined,
  expected: ExpectedIdentity,
): ProvenDevice {
  const known = expected.uniqueId ?? "";
  if (found.nqn !== expected.nqn) throw mismatch(found, `nqn=${expected.nqn}`, `nqn=${found.nqn}`);
  if (found.nsid !== onlyNsid) throw mismatch(found, `nsid=${onlyNsid}`, `nsid=${found.nsid}`);
  if (known !== "" && found.uniqueId !== known) {
    const actual = `id=${found.uniqueId}; if the router was restarted, delete the pods that use the volume`;
    throw mismatch(found, `id=${known}`, actual);
  }
  if (found.sizeBytes < expected.sizeBytes) {
    throw mismatch(found, `size>=${expected.sizeBytes}`, `size=${found.sizeBytes}`);
  }
  if (node?.kind !== "block" || node.deviceNumber !== found.deviceNumber) {
    throw mismatch(
      found,
      `number=${found.deviceNumber}`,
      `${node?.kind ?? "nothing"} number=${node?.deviceNumber}`,
    );
  }
  return found as ProvenDevice;
}

function mismatch(found: FoundDevice, expected: string, actual: string): VolumeError {
  return new VolumeError(
    "identity-mismatch",
    `Cannot use the device because it is not the volume: device=${found.path} expected ${expected} found ${actual}`,
  );
}
