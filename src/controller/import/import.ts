import { assertGone } from "../../volume/rules/absence.ts";
import {
  formatCapabilities,
  kindName,
  parseRecordedCapabilities,
  sameKind,
  type VolumeKind,
} from "../../volume/model/capabilities.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import { isImported } from "../../volume/model/sources.ts";
import { importableImage, type ImportClaim } from "../../volume/rules/import.ts";
import { isImageOf } from "../../volume/model/image_names.ts";
import { plainLocation } from "../../volume/model/layout.ts";
import { assertNotForeign, assertOwned, judgeOwnership } from "../../volume/rules/ownership.ts";
import { mayBeShared } from "../../volume/rules/publish.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { CreateView, StoredVolume } from "../../volume/model/inventory.ts";
import { isEncrypted, type OwnedVolume, rewritten, type VolumeRecord } from "../../volume/model/record.ts";
import { assertMayBeImported, firstComment, importing, readAround } from "./import_disk.ts";
import { assertNotShared, assertOwnImage, notFound, ownFilePrefix, withImage } from "../load.ts";
import { adding } from "../records/add.ts";
import { changeByRule, type Decision } from "../records/loop.ts";
import { type Mark, marking } from "../records/mark.ts";
import { type Step, withdrawal } from "../records/steps.ts";
import { readSlot, type View } from "../records/view.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/** What is to become a volume. */
export interface ImportRequest extends Omit<ImportClaim, "kind" | "encrypted"> {
  /** The slot: that of the disk, or of the one to be made. */
  readonly id: string;
  /** The file that a disk is to be made of; undefined for a disk that is there. */
  readonly imagePath: string | undefined;
  /** Undefined where the record tells. */
  readonly kind: VolumeKind | undefined;
  /** Whether only to look. */
  readonly dryRun: boolean;
}

/** What an import came to. */
export interface Import {
  /** `would`: it can be imported, and was not asked to be. `own`: this driver made it, and nothing was changed. */
  readonly outcome: "imported" | "already" | "own" | "would";
  readonly id: string;
  readonly sizeBytes: bigint;
  readonly imagePath: string;
  readonly kind: VolumeKind;
  /** Whether nodes encrypt it, by its record. */
  readonly encrypted: boolean;
  /** The NQN whose export was withdrawn, or would be, "" for one without a name; undefined when none was on. */
  readonly withdrawn: string | undefined;
}

/**
 * Makes a disk that somebody else made, or a file without a disk, a volume of this cluster; of one that is a volume already
 * it says what it is. Three commands; four for a file, and up to two more to withdraw an export. What is cut off anywhere is
 * done by the same call again.
 *
 * @throws {VolumeError} not-found, invalid, unavailable; precondition on any doubt whose it is or who uses it
 */
export async function importVolume(
  deps: ControllerDeps,
  request: ImportRequest,
  context: CallContext,
): Promise<Import> {
  const call = { ...deps, context };
  const { id } = request;
  const read = () => readSlot(call, id);
  let marked: Import | undefined;
  const imported = (done: Import) => {
    marked = done;
    return done.withdrawn === undefined ? done : "again" as const;
  };
  const rule = async (view: View): Promise<Decision<Import>> => {
    const done = marked;
    if (done === undefined) return await decideImporting(call, view, request, imported);
    const volume = assertOwned(view.volume!, deps.settings.cluster, "import");
    return { step: withdrawal(call, volume), next: () => done };
  };
  return await changeByRule(call, { id, verb: "import", first: await read(), read }, rule);
}

async function decideImporting(
  call: ControllerCall,
  view: View,
  request: ImportRequest,
  imported: (done: Import) => Import | "again",
): Promise<Decision<Import>> {
  const { id, imagePath } = request;
  const { cluster, basePaths, settleMs } = call.settings;
  const { volume: stored } = view;
  assertNotForeign(view.foreign, "import");
  if (stored === undefined) {
    if (imagePath !== undefined) return await importingFile(call, view, { ...request, imagePath });
    assertGone(id, ownFilePrefix(call, id), view, basePaths, settleMs);
    throw notFound("import", id);
  }
  if (imagePath !== undefined && imagePath !== stored.imagePath) {
    throw refused(id, `the disk in that slot uses another file: path=${stored.imagePath}`);
  }
  if (judgeOwnership(stored, cluster).state === "owned") {
    return await importingAgain(call, view, assertOwned(stored, cluster, "import"), request);
  }
  const claim = claimed(request);
  assertMayBeImported(call, stored, claim, await readAround(call, id, stored.imagePath));
  const withdrawn = exportOf(stored);
  if (request.dryRun) return { answer: reported("would", stored, claim.kind, withdrawn) };
  const mark = await importing(call, stored, claim);
  return marking(call, mark, (after) => imported(reported("imported", after, claim.kind, withdrawn)));
}

/** What has a record is told about, and changed only where an earlier import of it was cut off or said something else. */
async function importingAgain(
  call: ControllerCall,
  view: View,
  volume: OwnedVolume,
  request: ImportRequest,
): Promise<Decision<Import>> {
  const { stored, record } = volume;
  const recorded = parseRecordedCapabilities(record.capabilities);
  if (recorded === undefined) {
    throw refused(stored.id, `its record names a kind that is not known: kind=${record.capabilities}`);
  }
  const { kind = recorded.kind } = request;
  if (!isImported(record)) {
    assertNotShared(call, stored.id, view, "import");
    assertOwnImage(call, volume, "import");
    if (!sameKind(kind, recorded.kind)) throw otherKind(stored.id, recorded.kind, kind);
    return { answer: reported("own", stored, recorded.kind, undefined, record) };
  }
  const around = await withImage(call, view, "import");
  // The answer to an earlier try may have been lost, before what the router has made was compared with the file.
  if (request.imagePath !== undefined) assertWholeFile(stored, around);
  const left = record.holders.length === 0 ? exportOf(stored) : undefined;
  const isSame = sameKind(kind, recorded.kind) && mayBeShared(record, request.mode);
  if (!isSame && (record.holders.length > 0 || stored.exported)) {
    throw refused(stored.id, "it was imported as another kind or for another access mode, and is published");
  }
  if (left !== undefined && !request.exportIsUnused) {
    throw refused(
      stored.id,
      `it is exported, but no node holds it: nqn=${left}; --exported-is-unused withdraws the export`,
    );
  }
  const already = reported("already", stored, kind, left, record);
  if (request.dryRun) return { answer: isSame ? already : { ...already, outcome: "would" } };
  if (isSame && left === undefined) return { answer: already };
  if (isSame) return { step: withdrawal(call, volume), next: () => already };
  // A record that says something else, of which everything that was withdrawn stays known.
  const capabilities = formatCapabilities({
    kind,
    modes: [request.mode],
    encrypted: isEncrypted(record),
  });
  const step: Step = {
    kind: "rewrite",
    volume,
    record: rewritten({ ...record, capabilities }),
    change: {},
    isDone: (after) => !after.exported,
  };
  return { step, next: (after) => reported("imported", after.stored, kind, undefined, record) };
}

/**
 * A disk of a file: the router takes the file as it is, as no size is given to it, and the record is written in the same command.
 */
async function importingFile(
  call: ControllerCall,
  view: View,
  request: ImportRequest & { readonly imagePath: string },
): Promise<Decision<Import>> {
  const { id, imagePath } = request;
  const claim = claimed(request);
  const own = view.files.find((file) => !file.directory && isImageOf(file.path, ownFilePrefix(call, id)));
  if (own !== undefined) {
    throw refused(id, `the image of a volume of that name exists: path=${own.path}; choose another --slot`);
  }
  const around = await readAround(call, id, imagePath);
  assertNotForeign(around.foreign, "import");
  const { sizeBytes } = importableImage(id, imagePath, { ...call.settings, ...around });
  if (request.dryRun) return { answer: reported("would", { id, imagePath, sizeBytes }, claim.kind) };
  const comment = await firstComment(call, { id, imagePath, comment: "" }, claim);
  const volume = { id, location: plainLocation(imagePath), sizeBytes: undefined, comment, imported: true };
  return adding({ volume }, async ({ volume: { stored } }) => {
    await assertTakenAsItWas(call, stored, around, sizeBytes);
    return reported("imported", stored, claim.kind);
  });
}

/** @throws {VolumeError} precondition when the disk is not of the whole file, or not the only one of it */
function assertWholeFile({ id, imagePath, sizeBytes }: StoredVolume, { files, sharers }: View): void {
  const image = files.find((file) => file.path === imagePath);
  const sharer = sharers.find((other) => other.imagePath === imagePath);
  if (sharer !== undefined) throw refused(id, `another disk was made of its file: disk=${sharer.id}`);
  if (image?.sizeBytes === sizeBytes) return;
  throw refused(
    id,
    `its disk is not of the whole file: file=${image?.sizeBytes ?? "gone"} disk=${sizeBytes}; ` +
      "check the file before anything uses it",
  );
}

/** A disk that is not what the file was must not become a volume: its record is taken away, and nothing else touched. */
async function assertTakenAsItWas(
  call: ControllerCall,
  stored: StoredVolume,
  before: CreateView,
  sizeBytes: bigint,
): Promise<void> {
  const { id, imagePath } = stored;
  const view = { ...await call.store.view(id, imagePath, call.context), id, isAssumed: false };
  const image = view.files.find((file) => file.path === imagePath);
  const sharer = view.sharers.find((other) => other.imagePath === imagePath);
  const isAsItWas = stored.imagePath === imagePath && stored.sizeBytes === sizeBytes &&
    image?.sizeBytes === sizeBytes && sharer === undefined;
  if (isAsItWas && before.files.some(({ path }) => path === imagePath)) return;
  const reason = sharer === undefined
    ? `the router did not take the file as it was: before=${sizeBytes} file=${image?.sizeBytes ?? "gone"} ` +
      `disk=${stored.sizeBytes}; check the file before anything else uses it`
    : `another disk was made of its file at the same time: disk=${sharer.id}`;
  const mark: Mark = { kind: "mark", disk: stored, comment: "", isDone: () => true };
  const about = { id, verb: "import", first: { ...view, volume: stored }, read: () => readSlot(call, id) };
  let left = "";
  try {
    await changeByRule(call, about, () => Promise.resolve(marking(call, mark, (last) => last)));
  } catch (error) {
    left = `; its record may still be there: ${messageOf(error)}`;
  }
  throw refused(id, reason + left);
}

function claimed(request: ImportRequest): ImportClaim {
  const { kind, mode, exportIsUnused } = request;
  if (kind !== undefined) return { kind, mode, exportIsUnused };
  throw new VolumeError(
    "invalid",
    `Cannot import the disk without --kind because the driver cannot see what it holds: volume=${request.id}`,
  );
}

/** The NQN of an export that is on, which may have none. */
function exportOf({ exported, exportNqn }: StoredVolume): string | undefined {
  return exported ? exportNqn : undefined;
}

function reported(
  outcome: Import["outcome"],
  { id, sizeBytes, imagePath }: Pick<StoredVolume, "id" | "sizeBytes" | "imagePath">,
  kind: VolumeKind,
  withdrawn?: string,
  record?: VolumeRecord,
): Import {
  const encrypted = record !== undefined && isEncrypted(record);
  return { outcome, id, sizeBytes, imagePath, kind, encrypted, withdrawn };
}

function otherKind(id: string, recorded: VolumeKind, asked: VolumeKind): VolumeError {
  return refused(id, `it is of another kind: kind=${kindName(recorded)} requested=${kindName(asked)}`);
}

function refused(id: string, reason: string): VolumeError {
  return new VolumeError("precondition", `Cannot import the disk because ${reason}: volume=${id}`);
}
