import type { ClaimRef, ControllerEvent } from "../volume/ports/controller_events.ts";
import { VolumeError, type VolumeErrorKind } from "../volume/errors.ts";
import type { CreateRequest } from "../volume/rules/provision.ts";
import type { ControllerDeps } from "./deps.ts";

/** Refusals of an attachment that a retry does not mend. */
const lastingKinds: ReadonlySet<VolumeErrorKind> = new Set([
  "published-elsewhere",
  "exists-incompatible",
  "node-unknown",
  "precondition",
  "exhausted",
]);

/** The event for a node that was refused a volume; undefined when another try may go well. */
export function attachRefusal(
  volumeId: string,
  nodeId: string,
  error: VolumeError,
): ControllerEvent | undefined {
  if (!lastingKinds.has(error.kind)) return undefined;
  return { kind: "attach-refused", volumeId, nodeId, message: error.message };
}

/** The event for a pool that is full; undefined for any other error, or when there is no object yet to report it on. */
export function spaceRefusal(
  about: string | ClaimRef | undefined,
  error: VolumeError,
): ControllerEvent | undefined {
  if (error.kind !== "exhausted" || about === undefined) return undefined;
  return { kind: "out-of-space", about, message: error.message };
}

/** The event for a pool with no room for a snapshot, on the volume that it was to be made of; undefined for any other error. */
export function snapshotSpaceRefusal(source: string, error: VolumeError): ControllerEvent | undefined {
  if (error.kind !== "exhausted") return undefined;
  const message = `No snapshot of the volume was made: ${error.message}`;
  return { kind: "out-of-space", about: source, message };
}

/** Runs `work` and returns its result. Reports a refusal that people can mend, then rethrows it. */
export async function reportingRefusal<T>(
  deps: Pick<ControllerDeps, "events">,
  eventOf: (error: VolumeError) => ControllerEvent | undefined,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const event = VolumeError.is(error) ? eventOf(error) : undefined;
    if (event !== undefined) deps.events.occurred(event);
    throw error;
  }
}

/** The claim that a volume is made for, where the provisioner names it (`--extra-create-metadata`). */
export function claimOf({ name, rawParameters }: CreateRequest): ClaimRef | undefined {
  const claim = rawParameters["csi.storage.k8s.io/pvc/name"];
  const namespace = rawParameters["csi.storage.k8s.io/pvc/namespace"];
  // The provisioner names a volume after the uid of its claim.
  const uid = /^pvc-([0-9a-f-]{36})$/.exec(name)?.[1];
  return claim && namespace && uid ? { name: claim, namespace, uid } : undefined;
}
