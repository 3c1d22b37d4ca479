import { connectedNqns } from "../../node/connections/observe.ts";
import type { NodeDeps } from "../../node/deps.ts";
import { VolumeError } from "../../volume/errors.ts";
import { assertHandle } from "../../volume/model/ids/handles.ts";
import { parseExportNqn } from "../../volume/model/nqn.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { TargetAddress } from "../../volume/ports/node_ports.ts";

/** The subject that a person named: a volume, or one of its exports. */
export interface Subject {
  readonly volumeId: string;
  /** Undefined when only the volume was named. */
  readonly nqn: string | undefined;
}

/**
 * Parses an NQN or a volume id.
 *
 * @throws {VolumeError} invalid when it is neither, or the NQN is not of this driver's prefix
 */
export function parseSubject(text: string, nqnPrefix: string): Subject {
  if (!text.startsWith("nqn.")) {
    assertHandle(text);
    return { volumeId: text, nqn: undefined };
  }
  const name = parseExportNqn(text, nqnPrefix);
  if (name !== undefined) return { volumeId: name.volumeId, nqn: text };
  throw new VolumeError(
    "invalid",
    `Cannot use the NQN because this driver has no such export: nqn=${text}; expected ${nqnPrefix}:<volume>:<epoch>, ` +
      "or set --nqn-prefix to the controller's",
  );
}

/**
 * The NQN under which the target offers the volume to this node now.
 *
 * @throws {VolumeError} not-found when it offers none, precondition when it offers several
 */
export async function offeredNqn(
  deps: NodeDeps,
  { volumeId, nqn }: Subject,
  at: TargetAddress,
  context: CallContext,
): Promise<string> {
  if (nqn !== undefined) return nqn; // The target itself answers whether it offers it.
  const { nqnPrefix } = deps.settings;
  const offered = await deps.connector.offered(at, context);
  const found = offered.filter((each) => parseExportNqn(each, nqnPrefix)?.volumeId === volumeId);
  if (found.length === 1) return found[0]!;
  const where = `volume=${volumeId} address=${at.address} port=${at.port}`;
  if (found.length > 1) {
    throw new VolumeError(
      "precondition",
      "Cannot choose the volume's export because the router offers several: " +
        `${where} offered=${found.join(",")}; name the NQN`,
    );
  }
  throw new VolumeError(
    "not-found",
    `Cannot attach the volume because the router does not offer it to this node: ${where}; the router exports a volume only while ` +
      "it is published: `rds-csi attach --help` explains how to publish it by hand",
  );
}

/**
 * The one connected subsystem of the subject.
 *
 * @throws {VolumeError} not-found when there is none, precondition when there are several
 */
export async function connectedNqn(
  deps: NodeDeps,
  { volumeId, nqn }: Subject,
  context: CallContext,
): Promise<string> {
  const connected = await connectedNqns(deps, volumeId, context);
  const found = nqn === undefined ? connected : connected.filter((each) => each === nqn);
  if (found.length === 1) return found[0]!;
  const what = nqn ?? volumeId;
  if (found.length === 0) {
    throw new VolumeError("not-found", `Cannot find ${what} because it is not connected here`);
  }
  throw new VolumeError(
    "precondition",
    "Cannot choose the connection because the volume has several: " +
      `volume=${volumeId} connected=${found.join(",")}; name the NQN`,
  );
}

/**
 * Refuses a volume that the kubelet uses: one with a state file, sound or damaged.
 *
 * @throws {VolumeError} in-use when there is one, precondition when it is damaged
 */
export async function assertNotStaged(deps: NodeDeps, verb: string, volumeId: string): Promise<void> {
  const stagingState = await deps.stagingStore.find(volumeId);
  if (stagingState === undefined) return;
  throw new VolumeError(
    "in-use",
    `Cannot ${verb} the volume because the kubelet has staged it here: volume=${volumeId} staging=${stagingState.intent.stagingPath}; ` +
      `rds-csi describe ${volumeId} shows it`,
  );
}
