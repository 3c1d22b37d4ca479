import { formatConsent, formatConsentAnnotation } from "./format_consent.ts";
import type { FormatRefusal } from "../ports/node_events.ts";
import type { MakingState } from "../model/staging/state.ts";
import type { VolumeErrorKind } from "../errors.ts";
import { contradictorySignatures, type DeviceProbe } from "../ports/node_ports.ts";
import type { FilesystemType } from "../model/capabilities.ts";
import { headerType } from "../model/encryption.ts";
import { parseEpoch } from "../model/epoch.ts";
import type { ClaimName } from "../model/publish_context.ts";

/** The input of the decision whether to format. */
export interface FormatQuestion {
  readonly volumeId: string;
  /** The file system that was asked for, or the header of an encrypted volume. */
  readonly wanted: FilesystemType | typeof headerType;
  /** Whether the publish context says that the volume was never written. Necessary, never sufficient. */
  readonly mayFormat: boolean;
  /** The epoch of the publish context. */
  readonly epoch: string;
  /** The claim whose owner may allow a format in the next epoch; undefined when there is none. */
  readonly claim: ClaimName | undefined;
  /** Whether the node's state file is about the epoch of the publish context. */
  readonly sameEpoch: boolean;
  /** Whether the volume is to be used read-only. */
  readonly readOnly: boolean;
  /** Whether the device is exactly as large as the publish context says. */
  readonly sizeMatches: boolean;
  readonly probe: DeviceProbe;
  readonly mkfs: MakingState;
  /** Whether it is the device on which mkfs was started: same unique id, same size. */
  readonly sameDevice: boolean;
  /** Whether the volume was ever mounted or bound here in this epoch. */
  readonly everMounted: boolean;
  /**
   * Whether the file system whose signature was found was made completely. Checked only when mkfs was started and its
   * end is not recorded.
   */
  readonly complete: boolean;
}

/**
 * The signature that a volume is judged by. Its users may write anything into their file system, also what makes tools take its
 * device for a member of an array or for something else. Where the driver made the volume empty, the file system counts that it
 * was made for. A disk of a person's may be half of a mirror; where blkid contradicts itself it found no array, and the file
 * system counts if it is whole.
 */
export function judgedSignature(
  signature: DeviceProbe["signature"],
  wanted: FilesystemType,
  imported: boolean,
): DeviceProbe["signature"] {
  if (signature.state !== "found" || signature.filesystem?.type !== wanted) return signature;
  if (imported && signature.type !== contradictorySignatures) return signature;
  return { state: "found", ...signature.filesystem };
}

/** The decision for a device that is to hold a file system. */
export type FormatDecision =
  /** Make a file system: every check says that there never was one. */
  | { readonly action: "format" }
  /** Zero the ends and make it again, without lazy initialisation: the one begun here was never finished. */
  | { readonly action: "reformat-interrupted" }
  | { readonly action: "mount-existing" }
  | {
    readonly action: "refuse";
    readonly kind: VolumeErrorKind;
    /** For people. */
    readonly reason: string;
    readonly refusal: FormatRefusal;
  };

/**
 * Decides whether a device is formatted, mounted or left alone. Any doubt refuses.
 *
 * A positive answer still needs an exclusive open: an earlier mkfs may be running.
 */
export function decideFormat(question: FormatQuestion): FormatDecision {
  const { probe, wanted } = question;
  if (probe.signature.state === "unknown") {
    return refuse(
      "unavailable",
      "unreadable",
      `its signatures cannot be read: ${probe.signature.reason}`,
      "",
    );
  }
  if (probe.signature.state === "found") return decideFound(question, probe.signature.type);
  if (question.everMounted || question.mkfs === "done") {
    const lost = question.mkfs === "none"
      ? `it was used here before, and holds no ${nameOf(wanted)}`
      : `the ${nameOf(wanted)} made here is gone`;
    const advice = `; find out first what happened to the data${probe.blank ? wipeAdvice(question) : ""}`;
    return refuse("precondition", "filesystem-lost", `${lost}: volume=${question.volumeId}`, advice);
  }
  if (question.mkfs === "started") {
    return decideInterrupted(question, `the beginnings of ${beginnings(wanted)}`);
  }
  if (!probe.blank) {
    return refuseFormat(question, "unknown-data", "it holds data of no known kind", contentAdvice());
  }
  const obstacle = obstacleToFormat(question);
  if (obstacle === undefined) return { action: "format" };
  return refuseFormat(question, ...obstacle, formatAdvice(question) + consentAdvice(question, obstacle));
}

function decideFound(question: FormatQuestion, type: string): FormatDecision {
  const { wanted } = question;
  if (type !== wanted) {
    return refuseFormat(question, "other-filesystem", `it holds ${type}, not ${wanted}`, contentAdvice(type));
  }
  const endOnRecord = question.mkfs !== "started" || question.everMounted;
  if (endOnRecord || question.complete) return { action: "mount-existing" };
  return decideInterrupted(question, `an incomplete ${nameOf(wanted)}`);
}

function decideInterrupted(question: FormatQuestion, found: string): FormatDecision {
  const obstacle = obstacleToFormat(question) ?? (question.sameDevice ? undefined : startedElsewhere);
  if (obstacle === undefined) return { action: "reformat-interrupted" };
  const [refusal, reason] = obstacle;
  return refuseFormat(question, refusal, `it holds ${found}, and ${reason}`, formatAdvice(question));
}

function nameOf(wanted: FormatQuestion["wanted"]): string {
  return wanted === headerType ? "encryption header" : `${wanted} file system`;
}

function beginnings(wanted: FormatQuestion["wanted"]): string {
  return wanted === headerType ? "an encryption header" : "a file system";
}

type Obstacle = readonly [FormatRefusal, string];

const startedElsewhere: Obstacle = ["other-device", "it is not the device that formatting was started on"];

function obstacleToFormat(question: FormatQuestion): Obstacle | undefined {
  if (question.readOnly) return ["read-only", "it is to be used read-only"];
  if (!question.mayFormat) return ["not-blank-on-record", "the volume is not on record as never written"];
  if (!question.sameEpoch) {
    return ["other-epoch", "this node's state is of another epoch than the publish context"];
  }
  if (!question.sizeMatches) return ["other-size", "its size is not the one it was published with"];
  return undefined;
}

/** The consent of the claim's owner helps only where the record is the only obstacle. */
function consentAdvice({ volumeId, epoch, claim }: FormatQuestion, [refusal]: Obstacle): string {
  const counter = parseEpoch(epoch)?.counter;
  if (refusal !== "not-blank-on-record" || claim === undefined || counter === undefined) return "";
  return "; or, as the owner of the claim, delete its pods and run: " +
    `${consentCommand(volumeId, counter, claim)}`;
}

function formatAdvice(question: FormatQuestion): string {
  const { probe, readOnly } = question;
  return readOnly && probe.blank ? "; let a pod write to it first" : wipeAdvice(question);
}

/** The name of a snapshot does not tell what it holds, and what it holds may be the only copy. */
function contentAdvice(found?: string): string {
  const wanted = found === "ext4" || found === "xfs"
    ? `fsType ${found}`
    : found === headerType
    ? "encrypted=true"
    : "the fsType or volumeMode of that";
  return `; nothing was changed: a volume holds what its snapshot, source or imported disk held, so use it with ${wanted}`;
}

/** What is not empty is refused again, whoever allows a format. */
function wipeAdvice({ volumeId, probe }: FormatQuestion): string {
  return probe.blank
    ? `; if nothing on it is needed, unpublish it and run: rds-csi allow-format ${volumeId}`
    : "; if nothing on it is needed, delete its claim";
}

function refuseFormat(
  question: FormatQuestion,
  refusal: FormatRefusal,
  reason: string,
  advice: string,
): FormatDecision {
  return refuse("precondition", refusal, `${reason}: volume=${question.volumeId}`, advice);
}

function refuse(
  kind: VolumeErrorKind,
  refusal: FormatRefusal,
  reason: string,
  advice: string,
): FormatDecision {
  return { action: "refuse", kind, reason: `Cannot use the device because ${reason}${advice}`, refusal };
}

/** The command by which the owner of the claim allows a format in the epoch after that one. */
export function consentCommand(
  volumeId: string,
  epochCounter: number,
  { namespace, name }: ClaimName,
): string {
  return `kubectl annotate --overwrite -n ${namespace} pvc ${name} ` +
    `${formatConsentAnnotation}=${formatConsent(volumeId, epochCounter + 1)}`;
}
