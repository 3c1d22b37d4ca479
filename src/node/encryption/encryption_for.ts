import { VolumeError } from "../../volume/errors.ts";
import type { Encryption } from "../../volume/ports/encryption.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { NodeDeps } from "../deps.ts";

/**
 * What this node decrypts with.
 *
 * @param verb what was to be done with the volume, for people
 * @throws {VolumeError} precondition when this node can open no encrypted volume
 */
export async function encryptionFor(
  deps: NodeDeps,
  verb: string,
  volumeId: string,
  context: CallContext,
): Promise<Encryption> {
  const { encryption } = deps;
  const obstacle = encryption === undefined
    ? "its connector has no mappings"
    : await encryption.obstacle(context);
  if (encryption !== undefined && obstacle === undefined) return encryption;
  throw new VolumeError(
    "precondition",
    `Cannot ${verb} the volume because this node cannot decrypt it: volume=${volumeId}: ${obstacle}`,
  );
}
