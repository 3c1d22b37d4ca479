import { isLegacyEpoch } from "../../volume/model/epoch.ts";
import { VolumeError } from "../../volume/errors.ts";
import { isLegacyId } from "../../volume/model/ids.ts";
import { isImported } from "../../volume/model/sources.ts";
import { nodeIdsOf, type OwnedVolume } from "../../volume/model/record.ts";
import { assertOwned, isNamedAsOwn, judgeOwnership } from "../../volume/rules/ownership.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import { exportedPrefix, isExportedAsRecorded } from "../../volume/rules/publish.ts";
import { commentWithoutRecord } from "../../volume/rules/legacy_migration.ts";
import { assertImageUsable, assertOwnImage, readAt } from "../load.ts";
import { changeVolume } from "../change.ts";
import { waitForGrace } from "./withdrawal.ts";
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
  const { cluster, nqnPrefix, nvmePort } = deps.settings;
  const view = await readAt(call, id, "release");
  if (judgeOwnership(view.volume, cluster).state === "earlier-driver") {
    return { already: true, nqn: view.volume.exported ? view.volume.exportNqn : "", nodes: [] };
  }
  const ownership = judgeOwnership(view.volume, cluster);
  const isOthers = ownership.state === "no-record" &&
    !isNamedAsOwn(view.volume, cluster, deps.settings.basePaths);
  if (isOthers) return { already: true, nqn: view.volume.exported ? view.volume.exportNqn : "", nodes: [] };
  const volume = assertOwned(view.volume, cluster, "release");
  if (isImported(volume.record)) return await releaseImported(call, volume);
  assertEarliers(volume);
  assertImageUsable(deps, volume, view, "release");
  const { stored, record } = volume;
  const nodes = nodeIdsOf(record.holders);
  const comment = commentWithoutRecord(volume.comment);
  const isAsLeft = stored.exported && stored.exportNqn.endsWith(`:${id}`);
  const nqn = isAsLeft ? stored.exportNqn : `${prefixOf(stored, nqnPrefix)}:${id}`;
  const port = stored.exportPort === 0 ? nvmePort : stored.exportPort;
  if (!isAsLeft) await waitForGrace(call, volume, "release");
  // Whoever has it must not even feel it: an export that is right is not set again.
  const change = isAsLeft ? { comment } : { comment, export: { nqn, port } };
  const wanted = (after: StoredVolume) =>
    after.comment === comment && after.exported && after.exportNqn === nqn;
  await changeVolume(call, "release", stored, change, wanted);
  return { already: false, nqn, nodes };
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
async function releaseImported(
  call: ControllerCall,
  volume: OwnedVolume,
): Promise<Release> {
  const { stored, record } = volume;
  const nodes = nodeIdsOf(record.holders).join(", ");
  if (nodes !== "" || stored.exported) {
    const reason = nodes === "" ? `it is exported: nqn=${stored.exportNqn}` : `a node has it: node=${nodes}`;
    throw new VolumeError(
      "precondition",
      `Cannot release the volume because ${reason}; unpublish it first: volume=${stored.id}`,
    );
  }
  assertOwnImage(call, volume, "release");
  await waitForGrace(call, volume, "release");
  const comment = commentWithoutRecord(volume.comment);
  const wanted = (after: StoredVolume) => after.comment === comment && !after.exported;
  await changeVolume(call, "release", stored, { comment }, wanted);
  return { already: false, nqn: "", nodes: [] };
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
    ? `it is exported though nobody has it: nqn=${stored.exportNqn}; unpublish it first`
    : undefined;
  if (reason === undefined) return;
  throw new VolumeError("precondition", `Cannot release the volume because ${reason}: volume=${stored.id}`);
}
