import { poll } from "../../async/poll.ts";
import type { StagingState } from "../../volume/model/staging_state.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { FoundDevice, PathInfo, ProvenDevice } from "../../volume/ports/node_ports.ts";
import type { Undo } from "../stage/undo.ts";
import { findDevice, findMap } from "../layer/maps.ts";
import type { NodeDeps } from "../deps.ts";

/**
 * Proves a device that was found, with a fresh look at what lies at its path.
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
 * Proves that a device that was found is the one that the state of its volume tells of.
 *
 * @throws {VolumeError} identity-mismatch when it is not; unavailable while a volume with a map has another unique id than
 * its state tells of: the look at maps proves that, or reports it
 */
export async function proveStaged(
  deps: NodeDeps,
  found: FoundDevice,
  { nqn, sizeBytes, device, layer }: StagingState,
  context: CallContext,
): Promise<ProvenDevice> {
  if (layer !== undefined && device !== undefined) assertNotRenewed(found, device);
  return await prove(deps, found, { nqn, sizeBytes, uniqueId: device?.uniqueId }, context);
}

/**
 * Finds and proves a proven device anew, right before something is done to it.
 *
 * @throws {VolumeError} identity-mismatch when it is another one by now; unavailable when it is gone, or was put below its
 * map anew, for which it was proven
 */
export async function proveAgain(
  deps: NodeDeps,
  device: ProvenDevice,
  context: CallContext,
): Promise<ProvenDevice> {
  context.signal.throwIfAborted();
  const found = await findDevice(deps, device.nqn, context);
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
  if (found.uniqueId !== device.uniqueId && await findMap(deps, device.nqn) !== undefined) {
    assertNotRenewed(found, device);
  }
  return await prove(deps, found, device, context);
}

/** What has a map and came back under another unique id is nobody's fault: a call that met that is made again. */
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
 * Keeps a proven device open to the end of the call, and proves it once more: from then on nobody else gets its name or
 * its number, by which tools and the kernel's answers go. Whoever cuts it off makes them fail.
 *
 * @throws {VolumeError} identity-mismatch when it is another one by now, unavailable when it is gone
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
 * Waits until the device is there. The kernel shows a device before it makes the node of it.
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

/** What a device has to be. */
export interface ExpectedIdentity {
  readonly nqn: string;
  /** The size it has at least: volumes grow and never shrink. */
  readonly sizeBytes: bigint;
  /** NGUID or UUID seen before; undefined or "" when none was. */
  readonly uniqueId?: string;
}

/** A subsystem of this driver has one namespace, and that is its id. */
const onlyNsid = 1;

/**
 * Compares a device that was found with what was asked for; the only maker of a {@linkcode ProvenDevice}.
 *
 * `node` is what lies at the device's path right now: names of devices are given out anew.
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
    const actual = `id=${found.uniqueId}; if the router was restarted, restart the pods that use the volume`;
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
