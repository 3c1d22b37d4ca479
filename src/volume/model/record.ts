import { digest } from "./digest.ts";
import { type Epoch, formatEpoch, parseEpoch } from "./epoch.ts";
import { VolumeError } from "../errors.ts";
import { type AccessMode, modeLetters, parseRecordedCapabilities } from "./capabilities.ts";
import type { StoredVolume } from "./inventory.ts";
import { isMachineHash } from "./host/machine.ts";

/**
 * The longest comment that is sent to the router, in bytes. A probe may find that a router keeps less; more is not
 * used, because every comment has to fit into a command twice.
 *
 * The budget, each with its separator: holders 3 and for each the id and 12 (id at most 64, time 7, marks 5; one comma
 * less), machines 3 and for each holder 9 (one comma less), source 45, epoch 21, name 15, kind 16, blank epoch 12,
 * parameters 11, check 11, cluster 10, withdrawal 10, growths 7, frame 7. One holder of any legal id always fits, in
 * 254 bytes. Two fit when their ids have 44 bytes together (about 105 in the usual record). What does not fit is
 * refused before anything is changed. The mark of a first holder that has left takes 4 bytes of the room that this
 * holder had; a node that could not be shut out takes 11, or up to 28 where there is more room. The mark of an epoch
 * with a device layer takes 4, and is left out where there is no room for it.
 */
export const maxCommentBytes = 255;

/** The highest count of growths that a record can hold. */
export const maxGrowths = 36 ** 4 - 1;

/** A node that holds a volume. */
export interface Holder {
  readonly nodeId: string;
  /** Seconds since the Unix epoch. */
  readonly sinceSeconds: number;
  readonly readOnly: boolean;
  readonly mode: AccessMode;
  /**
   * The machine behind the node id, see `machineHash()`; absent where it is not known, or the node only reads beside
   * others.
   */
  readonly machine?: string;
}

/** Returns the ids of the nodes. */
export function nodeIdsOf(holders: readonly Pick<Holder, "nodeId">[]): string[] {
  return holders.map(({ nodeId }) => nodeId);
}

/** The holder of that node id; undefined where the node holds nothing. */
export function holderOf({ holders }: Pick<VolumeRecord, "holders">, nodeId: string): Holder | undefined {
  return holders.find((holder) => holder.nodeId === nodeId);
}

/** A node that has left a volume while another one kept it, and that the router could not shut out. */
export interface UnfencedNode {
  /** See {@linkcode nodeDigest}. */
  readonly nodeDigest: string;
  /** Since when it held the volume, in seconds since the Unix epoch; absent where the record had no room. */
  readonly sinceSeconds?: number;
  /** The machine behind its id; absent where it was not known, or the record had no room. */
  readonly machine?: string;
}

/** Eight hex digits that represent a node id: after the node has left, the record has no room for the id. */
export function nodeDigest(nodeId: string): string {
  return digest(nodeId, 8);
}

/** What the record keeps of a holder that leaves and cannot be shut out. */
export function unfencedNode({ nodeId, sinceSeconds, machine }: Holder): UnfencedNode {
  const node = { nodeDigest: nodeDigest(nodeId), sinceSeconds };
  return machine === undefined ? node : { ...node, machine };
}

/**
 * Whether that is the node that has left. If its machine is recorded, a node of unknown machine does not match: it may
 * be another machine of that name, while the one that left goes on writing.
 */
export function isSameNode(left: UnfencedNode, nodeId: string, machine: string | undefined): boolean {
  return left.nodeDigest === nodeDigest(nodeId) && (left.machine === undefined || left.machine === machine);
}

/** What the router stores about a volume for this driver. */
export interface VolumeRecord {
  /** Hash of the cluster that owns the volume, see `clusterHash()`. */
  readonly cluster: string;
  /** Digest of the CSI name, see `nameDigest()`. */
  readonly name: string;
  /** Kind and access modes it was created for, see `formatCapabilities()`. */
  readonly capabilities: string;
  /** Digest of the StorageClass parameters, see `parametersDigest()`. */
  readonly parameters: string;
  /** The running epoch while there are holders, else the last one; counter 0 before the first. */
  readonly epoch: Epoch | undefined;
  /** The counter of the only epoch in which the volume may be formatted; 0 when it may not be any more. */
  readonly blankEpoch: number;
  /** When the export was last withdrawn, in seconds since the Unix epoch. */
  readonly withdrawnAtSeconds: number | undefined;
  /**
   * The source of the volume: `v:` or `s:` and the id; for an imported one `i:` and a digest that binds it to slot and
   * file.
   */
  readonly source: string | undefined;
  /**
   * How often the volume was grown or its record rewritten. It makes each comment unique, so that a command that the
   * router runs late never finds the comment it expects.
   */
  readonly growths?: number;
  readonly holders: readonly Holder[];
  /** The holder that began this read-only epoch has left the volume to the others: none of them may replay a log. */
  readonly firstHolderLeft?: true;
  /** A node that has left this epoch and may still write: only that node may join before the epoch ends. */
  readonly unfenced?: UnfencedNode;
  /** Every node of this epoch got a publish context that only a node with a device layer accepts. */
  readonly layered?: true;
  /** Fields that only a newer version of this driver knows, word for word. Absent where there are none. */
  readonly newerFields?: readonly string[];
}

/** Whether nodes encrypt the volume. */
export function isEncrypted({ capabilities }: Pick<VolumeRecord, "capabilities">): boolean {
  return parseRecordedCapabilities(capabilities)?.encrypted === true;
}

/** A parsed comment: the record, and what people wrote around it. */
export interface RecordComment {
  readonly record: VolumeRecord;
  readonly before: string;
  readonly after: string;
}

/** The result of parsing a comment. */
export type ParsedComment =
  | { readonly state: "record"; readonly comment: RecordComment }
  /** No record at all: a disk that this driver did not make. */
  | { readonly state: "none" }
  /** There was a record. Its content is never guessed. */
  | { readonly state: "damaged"; readonly reason: string };

/** A volume whose record is complete and belongs to this cluster. Only such volumes are ever changed. */
export interface OwnedVolume {
  readonly stored: StoredVolume;
  readonly comment: RecordComment;
  readonly record: VolumeRecord;
}

// What outlives a version of this driver may be read by another one, after a rollback. From the first release on:
// - A field of the record never changes its meaning: a new meaning gets a new letter. Fields with unknown letters are kept
//   word for word. As they may change the meaning of the others, such a record is read, unpublished and withdrawn, and the
//   volume is used for nothing else.
// - Another opening of a record, or another version in a file of a node's state, is refused: nothing of it is known.
// - Unknown keys of a node's state survive; those of contexts and of a router's profile are ignored.
const opening = "{rds1 ";
const anyOpening = /\{rds[0-9]/g;
const recordForm = /\{rds1 ([\x21-\x7c\x7e ]*) x=([0-9a-f]{8})\}/;
const knownFields = "cnkpbewsghjlmu";
const unfencedForm = /^([0-9a-f]{8})(?:@([0-9a-z]{1,8}))?(?:\/([0-9a-f]{8}))?$/;
/** Represents an unknown machine. */
const noMachine = "-";
const fieldForm = /^[a-z]=\S+$/;
const holderForm = /^([A-Za-z0-9.-]{1,64})@([0-9a-z]{1,8})\/([a-z])(r?)$/;

/** The cluster that the record in a comment names, even a damaged record; undefined when it names none. */
export function clusterOfComment(text: string): string | undefined {
  return /\{rds1 c=([0-9a-f]{8}) /.exec(text)?.[1];
}

/** Parses a comment. Pure and total: anything but a complete record is "none" or "damaged". */
export function parseComment(text: string): ParsedComment {
  const openings = text.match(anyOpening)?.length ?? 0;
  if (openings === 0) return { state: "none" };
  if (openings > 1) return damaged("it holds more than one record");
  if (!text.includes(opening)) return damaged("it was written by another version of this driver");
  const match = recordForm.exec(text);
  if (match === null) return damaged("it is not complete");
  const [whole, body, check] = [match[0], match[1]!, match[2]!];
  if (digest(body, 8) !== check) return damaged("its check digits do not match");
  const record = parseBody(body);
  if (typeof record === "string") return damaged(record);
  return {
    state: "record",
    comment: { record, before: text.slice(0, match.index), after: text.slice(match.index + whole.length) },
  };
}

/**
 * Writes a record into a comment, and keeps what people wrote around it.
 *
 * @throws {VolumeError} precondition when it does not fit into what the router keeps
 */
export function formatComment(comment: RecordComment, maxBytes = maxCommentBytes): string {
  const text = commentText(comment);
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > maxBytes) {
    throw new VolumeError(
      "precondition",
      `Cannot write the volume's record because it would not fit: bytes=${bytes} most=${maxBytes}; ` +
        "fewer or shorter node ids, or a shorter note in the disk's comment, make room",
    );
  }
  return text;
}

/** The text of a comment, however long it is. */
export function commentText(comment: RecordComment): string {
  const body = formatBody(comment.record);
  return `${comment.before}${opening}${body} x=${digest(body, 8)}}${comment.after}`;
}

/** Returns the same record with a different comment than before. */
export function rewritten(record: VolumeRecord): VolumeRecord {
  return { ...record, growths: (record.growths ?? 0) + 1 };
}

/** A comment that contains only the record. */
export function newComment(record: VolumeRecord): RecordComment {
  return { record, before: "", after: "" };
}

/** A comment without its record: what it was before the disk became a volume. */
export function commentWithoutRecord({ before, after }: RecordComment): string {
  return after === "" ? before.replace(/ $/, "") : before + after;
}

function damaged(reason: string): ParsedComment {
  return { state: "damaged", reason };
}

function formatBody(record: VolumeRecord): string {
  const fields = [
    `c=${record.cluster}`,
    `n=${record.name}`,
    `k=${record.capabilities}`,
    `p=${record.parameters}`,
    `b=${record.blankEpoch}`,
  ];
  if (record.epoch !== undefined) fields.push(`e=${formatEpoch(record.epoch)}`);
  if (record.withdrawnAtSeconds !== undefined) {
    fields.push(`w=${formatWithdrawal(record.withdrawnAtSeconds)}`);
  }
  if (record.source !== undefined) fields.push(`s=${record.source}`);
  if (record.growths) fields.push(`g=${record.growths.toString(36)}`);
  if (record.holders.length > 0) fields.push(`h=${record.holders.map(formatHolder).join(",")}`);
  if (record.firstHolderLeft) fields.push("j=1");
  if (record.unfenced) fields.push(`u=${formatUnfenced(record.unfenced)}`);
  if (record.layered) fields.push("l=1");
  const machines = record.holders.map(({ machine }) => machine);
  if (machines.some((machine) => machine !== undefined)) {
    fields.push(`m=${machines.map((machine) => machine ?? noMachine).join(",")}`);
  }
  return [...fields, ...record.newerFields ?? []].join(" ");
}

function formatHolder(holder: Holder): string {
  const mark = holder.readOnly ? "r" : "";
  return `${holder.nodeId}@${holder.sinceSeconds.toString(36)}/${modeLetters[holder.mode]}${mark}`;
}

function formatUnfenced({ nodeDigest, sinceSeconds, machine }: UnfencedNode): string {
  const since = sinceSeconds === undefined ? "" : `@${sinceSeconds.toString(36)}`;
  return nodeDigest + since + (machine === undefined ? "" : `/${machine}`);
}

/** For a time that is not known: it counts as infinitely late, so that the whole grace period is waited for. */
const unknownTime = "-";

function formatWithdrawal(seconds: number): string {
  return seconds === Number.MAX_SAFE_INTEGER ? unknownTime : seconds.toString(36);
}

/** Returns the record; for an invalid body, why it is none. */
function parseBody(body: string): VolumeRecord | string {
  const fields = new Map<string, string>();
  const newerFields: string[] = [];
  for (const word of body.split(" ")) {
    if (!fieldForm.test(word)) return `it holds something that is no field: ${JSON.stringify(word)}`;
    const name = word[0]!;
    if (fields.has(name)) return `it holds the field ${name} twice`;
    fields.set(name, word.slice(2));
    if (!knownFields.includes(name)) newerFields.push(word);
  }
  const cluster = fields.get("c") ?? "";
  const name = fields.get("n") ?? "";
  const capabilities = fields.get("k") ?? "";
  const parameters = fields.get("p") ?? "";
  const blank = fields.get("b") ?? "";
  if (!/^[0-9a-f]{8}$/.test(cluster)) return "its cluster is not readable";
  if (!/^[0-9a-f]{12}$/.test(name)) return "its name digest is not readable";
  if (capabilities === "") return "its kind is missing";
  if (!/^[0-9a-f]{8}$/.test(parameters)) return "its parameter digest is not readable";
  if (!/^[0-9]{1,9}$/.test(blank)) return "its blank epoch is not readable";
  const epochText = fields.get("e");
  const epoch = epochText === undefined ? undefined : parseEpoch(epochText);
  if (epochText !== undefined && epoch === undefined) return "its epoch is not readable";
  const withdrawnAtSeconds = fields.has("w") ? parseWithdrawal(fields.get("w")!) : undefined;
  if (fields.has("w") && withdrawnAtSeconds === undefined) return "its time of withdrawal is not readable";
  const growths = fields.get("g");
  if (growths !== undefined && !/^[1-9a-z][0-9a-z]{0,3}$/.test(growths)) {
    return "its growths are not readable";
  }
  const firstHolderLeft = fields.get("j");
  if (firstHolderLeft !== undefined && firstHolderLeft !== "1") {
    return "its first holder's mark is not readable";
  }
  const layered = fields.get("l");
  if (layered !== undefined && layered !== "1") return "its mark of a device layer is not readable";
  const unfenced = fields.has("u") ? parseUnfenced(fields.get("u")!) : undefined;
  if (fields.has("u") && unfenced === undefined) return "its node that left is not readable";
  const held = parseHolders(fields.get("h"));
  if (typeof held === "string") return held;
  const holders = withMachines(held, fields.get("m"));
  if (holders === undefined) return "its holders' machines are not readable";
  if (holders.length > 0 && epoch === undefined) return "it has holders but no epoch";
  return {
    cluster,
    name,
    capabilities,
    parameters,
    epoch,
    blankEpoch: Number(blank),
    withdrawnAtSeconds,
    source: fields.get("s"),
    ...(growths === undefined ? {} : { growths: parseInt(growths, 36) }),
    holders,
    ...(firstHolderLeft === undefined ? {} : { firstHolderLeft: true as const }),
    ...(unfenced === undefined ? {} : { unfenced }),
    ...(layered === undefined ? {} : { layered: true as const }),
    ...(newerFields.length === 0 ? {} : { newerFields }),
  };
}

function parseUnfenced(text: string): UnfencedNode | undefined {
  const match = unfencedForm.exec(text);
  if (match === null) return undefined;
  return {
    nodeDigest: match[1]!,
    ...(match[2] === undefined ? {} : { sinceSeconds: parseInt(match[2], 36) }),
    ...(match[3] === undefined ? {} : { machine: match[3] }),
  };
}

/** In seconds since the Unix epoch; undefined for a text that is no time. */
function parseWithdrawal(text: string): number | undefined {
  if (text === unknownTime) return Number.MAX_SAFE_INTEGER;
  return /^[0-9a-z]{1,8}$/.test(text) ? parseInt(text, 36) : undefined;
}

/** Returns the holders with their machines; undefined when the field is not readable, or has another number of them. */
function withMachines(holders: readonly Holder[], text: string | undefined): readonly Holder[] | undefined {
  if (text === undefined) return holders;
  const machines = text.split(",");
  if (machines.length !== holders.length) return undefined;
  if (!machines.every((machine) => machine === noMachine || isMachineHash(machine))) return undefined;
  return holders.map((holder, at) =>
    machines[at] === noMachine ? holder : { ...holder, machine: machines[at]! }
  );
}

function parseHolders(text: string | undefined): Holder[] | string {
  if (text === undefined) return [];
  const holders: Holder[] = [];
  for (const part of text.split(",")) {
    const match = holderForm.exec(part);
    const mode = match === null
      ? undefined
      : (Object.keys(modeLetters) as AccessMode[]).find((mode) => modeLetters[mode] === match[3]);
    if (match === null || mode === undefined) return "its holders are not readable";
    if (holders.some((holder) => holder.nodeId === match[1])) return "it names a holder twice";
    holders.push({
      nodeId: match[1]!,
      sinceSeconds: parseInt(match[2]!, 36),
      mode,
      readOnly: match[4] === "r",
    });
  }
  return holders;
}
