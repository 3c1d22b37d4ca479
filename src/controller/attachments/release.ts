import { parseEpoch } from "../../volume/model/epoch.ts";
import { isLegacyEpoch } from "../../volume/model/epoch.ts";
import { VolumeError } from "../../volume/errors.ts";
import { isLegacyId } from "../../volume/model/ids/ids.ts";
import { isImported } from "../../volume/model/sources.ts";
import { commentWithoutRecord, nodeIdsOf, type OwnedVolume } from "../../volume/model/record.ts";
import { assertOwned, isNamedAsOwn, judgeOwnership } from "../../volume/rules/ownership.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import { isExportedAsRecorded } from "../../volume/rules/publish.ts";
import { assertImageUsable, assertOwnImage } from "../load.ts";
import { readAt } from "../reads.ts";
import { changeByRule, type Decision } from "../records/loop.ts";
import { marking } from "../records/mark.ts";
import { isExportedAs } from "../records/steps.ts";
import type { View } from "../records/view.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/** What giving a volume back came to. */
export interface Release {
  /** Whether it was given back before. */
  readonly already: boolean;
  /** The NQN that it is exported under now; "" when it is not. */
  readonly nqn: string;
  /** The nodes that have it, and go on having it. */
  readonly nodes: readonly string[];
}

/**
 * Gives a volume back to the legacy driver: its record is taken away and its export is on under the NQN without an epoch,
 * in one command. Only one that nobody has, or that its nodes have as the legacy driver gave it to them. Of one that was
 * imported only the record is taken away. Two commands.
 *
 * @throws {VolumeError} not-found, unavailable; precondition when the legacy driver could not go on with it
 */
export async function releaseVolume(
  deps: ControllerDeps,
  id: string,
  context: CallContext,
): Promise<Release> {
  const call = { ...deps, context };
  const read = () => readAt(call, id, "release");
  const rule = (view: View) => Promise.resolve(decideReleasing(call, view));
  return await changeByRule(call, { id, verb: "release", first: await read(), read }, rule);
}

function decideReleasing(call: ControllerCall, view: View): Decision<Release> {
  const { cluster, nqnPrefix, nvmePort, basePaths } = call.settings;
  const { id } = view;
  const stored = view.volume!;
  const { state } = judgeOwnership(stored, cluster);
  const isOthers = state === "no-record" && !isNamedAsOwn(stored, cluster, basePaths);
  if (state === "earlier-driver" || isOthers) {
    return { answer: { already: true, nqn: stored.exported ? stored.exportNqn : "", nodes: [] } };
  }
  const volume = assertOwned(stored, cluster, "release");
  if (isImported(volume.record)) return releasingImported(call, volume);
  assertEarliers(volume);
  assertImageUsable(call, volume, view, "release");
  const nodes = nodeIdsOf(volume.record.holders);
  const disk = { disk: stored, comment: commentWithoutRecord(volume.comment) };
  if (stored.exported && stored.exportNqn.endsWith(`:${id}`)) {
    // Whoever has it must not even feel it: an export that is right is not set again.
    const mark = { kind: "mark", ...disk, isDone: isExportedAs(stored) } as const;
    return marking(call, mark, (after) => ({ already: false, nqn: after.exportNqn, nodes }));
  }
  const nqn = `${prefixOf(stored, nqnPrefix)}:${id}`;
  const port = stored.exportPort === 0 ? nvmePort : stored.exportPort;
  const isDone = (after: StoredVolume) => after.exported && after.exportNqn === nqn;
  const mark = { kind: "release", ...disk, change: { export: { nqn, port } }, isDone } as const;
  return marking(call, mark, () => ({ already: false, nqn, nodes }));
}

/**
 * The prefix that its PersistentVolume names, whatever this process is told: under any other, no node finds it.
 *
 * @throws {VolumeError} precondition when the router knows it under a name that does not tell
 */
function prefixOf(stored: StoredVolume, nqnPrefix: string): string {
  const { id, exportNqn } = stored;
  const own = exportNqn === "" ? nqnPrefix : exportedPrefix(stored);
  if (own !== undefined) return own;
  throw new VolumeError(
    "precondition",
    `Cannot release the volume because its export has another name than this driver gives, so that its prefix is unknown: volume=${id} ` +
      `nqn=${exportNqn}; set nvme-tcp-server-nqn of its disk to the nqn of its PersistentVolume's volumeAttributes`,
  );
}

/** Its disk, its file and the note in its comment stay, and its export is off: nobody knows under which name it was on before. */
function releasingImported(call: ControllerCall, volume: OwnedVolume): Decision<Release> {
  const { stored: disk, record } = volume;
  const nodes = nodeIdsOf(record.holders).join(", ");
  if (nodes !== "" || disk.exported) {
    const reason = nodes === "" ? `it is exported: nqn=${disk.exportNqn}` : `a node has it: node=${nodes}`;
    throw new VolumeError(
      "precondition",
      `Cannot release the volume because ${reason}; unpublish it first: volume=${disk.id}`,
    );
  }
  assertOwnImage(call, volume, "release");
  const comment = commentWithoutRecord(volume.comment);
  const mark = { kind: "release", disk, comment, isDone: (after: StoredVolume) => !after.exported } as const;
  return marking(call, mark, () => ({ already: false, nqn: "", nodes: [] }));
}

/** @throws {VolumeError} precondition when it is not in a state that the legacy driver knows */
function assertEarliers(volume: OwnedVolume): void {
  const { stored, record } = volume;
  const nodes = nodeIdsOf(record.holders).join(", ");
  const isHeldAsLeft = isLegacyEpoch(record.epoch) && isExportedAsRecorded(volume);
  const reason = !isLegacyId(stored.id)
    ? "this driver made it, and the legacy driver would not find its image"
    : record.holders.length > 0 && !isHeldAsLeft
    ? `a node has it under an NQN that the legacy driver does not know: node=${nodes}; unpublish it first`
    : record.holders.length === 0 && stored.exported && !stored.exportNqn.endsWith(`:${stored.id}`)
    ? `it is exported though no node has it: nqn=${stored.exportNqn}; unpublish it first`
    : undefined;
  if (reason === undefined) return;
  throw new VolumeError("precondition", `Cannot release the volume because ${reason}: volume=${stored.id}`);
}

/**
 * The prefix of the name under which the router exports the volume, or last did; undefined when that is no name of the
 * volume.
 */
function exportedPrefix(
  { id, exportNqn }: Pick<StoredVolume, "id" | "exportNqn">,
): string | undefined {
  const parts = exportNqn.split(":");
  if (parseEpoch(parts.at(-1)!) !== undefined) parts.pop();
  return parts.length > 1 && parts.pop() === id ? parts.join(":") : undefined;
}
