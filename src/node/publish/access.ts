import { type Capability, kindName } from "../../volume/model/capabilities.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { PublishedTarget, Stash } from "../../volume/model/staging_state.ts";

/**
 * Whether a staged volume may be published at one more target, or at the same one again (CSI specification,
 * "NodePublishVolume", second table). `published` are the targets where it is right now.
 *
 * SINGLE_NODE_WRITER goes by the rules of SINGLE_NODE_MULTI_WRITER: it is what older kubelets say for ReadWriteOnce,
 * which lets several pods of one node use the volume.
 *
 * @throws {VolumeError} exists-incompatible when the same target is asked for with another kind of access; precondition
 * when the access mode or the other uses forbid it
 */
export function assertPublishable(
  stash: Stash,
  published: readonly PublishedTarget[],
  target: PublishedTarget,
  capability: Capability,
): void {
  const others = published.filter((other) => other.targetPath !== target.targetPath);
  const [other] = others;
  if (kindName(capability) !== stash.kind) {
    const again = others.length < published.length;
    throw refused(
      again ? "exists-incompatible" : "precondition",
      stash,
      `it is staged as ${stash.kind}: asked=${kindName(capability)}`,
    );
  }
  if (capability.mode === "single-node-single-writer" && other !== undefined) {
    throw refused(
      "precondition",
      stash,
      `its access mode SINGLE_NODE_SINGLE_WRITER allows one target: published at=${other.targetPath}`,
    );
  }
  const unlike = others.find((each) => each.readOnly !== target.readOnly);
  if (stash.kind === "block" && unlike !== undefined) {
    throw refused(
      "precondition",
      stash,
      `a device is read-only for all its uses on a node or for none: published at=${unlike.targetPath} ` +
        `readonly=${unlike.readOnly} asked=${target.readOnly}`,
    );
  }
}

function refused(kind: "exists-incompatible" | "precondition", stash: Stash, why: string): VolumeError {
  return new VolumeError(kind, `Cannot publish the volume as ${why} volume=${stash.volumeId}`);
}
