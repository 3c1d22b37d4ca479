import { VolumeError } from "../../volume/errors.ts";
import type { CallContext, Clock } from "../../volume/ports/system.ts";
import type {
  DiskGuard,
  KnownDisk,
  MutationOutcome,
  NewFolder,
  NewSubvolume,
  NewVolume,
  Unseen,
  VolumeChange,
  VolumeStore,
} from "../../volume/ports/store.ts";
import type { FileView, ImageLocation, Inventory, VolumeView } from "../../volume/model/inventory.ts";
import { locationOf } from "../../volume/model/layout.ts";
import { type Fragment, isSendable } from "../console/command.ts";
import {
  type Answer,
  divideIntoExecs,
  type ExecOutcome,
  fitsOneExec,
  type Question,
} from "../console/exchange.ts";
import { assertStoragePackage } from "../console/router_info.ts";
import type { Session } from "../ssh/session.ts";
import {
  addStatements,
  changeStatements,
  copyStatement,
  folderStatement,
  noFile,
  removeImageStatement,
  removeStatements,
  renameStatement,
  subvolumeStatements,
  unseenDiskStatement,
  unseenExportStatement,
  unseenGrowthStatement,
  unseenRemovalStatements,
} from "./mutations.ts";
import {
  allDisksInFullQuery,
  allDisksQuery,
  disksQuery,
  filesQuery,
  fileViewQueries,
  packagesQuery,
  resourceQuery,
  viewQueries,
} from "./queries.ts";
import { filesHolding, RouterReader, type RouterReaderOptions } from "./reader.ts";

/** Milliseconds for which a successful probe of the same connection is believed. */
const probeCacheMs = 5000;

/** What a {@linkcode RouterVolumeStore} needs. */
export interface RouterVolumeStoreOptions extends RouterReaderOptions {
  /** Milliseconds that copying a file may take. @default {86400000} */
  readonly copyTimeoutMs?: number;
}

/** A mutation and how its result is read. */
interface Mutation<View> {
  readonly kind: string;
  readonly key: string;
  readonly statements: readonly Fragment[];
  /**
   * The frames that `read` needs, in every way in which they can be asked for, the best first; where none fits, the state
   * is read in a command of its own.
   */
  readonly queries: readonly (readonly Fragment[])[];
  /** Undefined when the frames alone do not tell everything. */
  readonly read: (answer: Answer) => View | undefined;
  /** Reads everything in a command of its own. */
  readonly readAgain: () => Promise<View>;
  readonly context: CallContext;
  readonly onlyOn?: number;
}

/** The volumes of one router, over one SSH session. */
export class RouterVolumeStore extends RouterReader implements VolumeStore {
  readonly #session: Session;
  readonly #clock: Clock;
  readonly #copyTimeoutMs: number;
  /** The last connection of which it was told that its router cannot be used. */
  #reportedUnfit: number | undefined;
  /** The last successful probe. */
  #probed: { readonly connection: number; readonly atMs: number } | undefined;

  constructor(options: RouterVolumeStoreOptions) {
    super(options);
    this.#session = options.session;
    this.#clock = options.clock;
    this.#copyTimeoutMs = options.copyTimeoutMs ?? 86_400_000;
  }

  /** How many commands wait, and how many were sent and have not ended. */
  get load(): { readonly waiting: number; readonly running: number } {
    return this.#session.load;
  }

  /** Ends the connection; later calls fail as unavailable. */
  close(): void {
    this.#session.close();
  }

  async add(volume: NewVolume, context: CallContext): Promise<MutationOutcome<Inventory>> {
    const { id } = volume;
    assertComparable(volume.subvolume?.guard);
    // Uptime has no room in this command, nor in that of remove: it is carried over from the look before.
    return await this.#mutate({
      kind: "add",
      key: id,
      statements: addStatements(volume),
      queries: [[allDisksQuery()], [allDisksInFullQuery]],
      read: (answer) => {
        const after = this.inventoryOf(answer);
        return after?.volumes.some((volume) => volume.id === id) ? after : undefined;
      },
      readAgain: () => this.inventory(context),
      context,
    });
  }

  async addAlone(volume: NewVolume, context: CallContext): Promise<MutationOutcome<VolumeView>> {
    const { id } = volume;
    assertComparable(volume.subvolume?.guard);
    return await this.#mutate({
      kind: "add",
      key: id,
      statements: addStatements(volume),
      queries: [[disksQuery(id)]],
      read: (answer) => {
        const after = this.leftOf(id, undefined, answer);
        return after?.volume === undefined ? undefined : after;
      },
      readAgain: () => this.view(id, undefined, context),
      context,
    });
  }

  async addUnseen(
    volume: NewVolume,
    unseen: Unseen,
    context: CallContext,
  ): Promise<MutationOutcome<VolumeView> | undefined> {
    const { id } = volume;
    const onlyOn = this.connectionUpFor(unseen.settleMs);
    const statements = [unseenDiskStatement(volume, unseen)];
    const queries = [disksQuery(id)];
    if (onlyOn === undefined || !fitsOneExec(statements, queries)) return undefined;
    assertComparable(volume.subvolume?.guard);
    const question = { kind: "add", key: id, queries, context, onlyOn };
    return await this.#mutateUnseen(statements, question, unseen);
  }

  /**
   * Sends it once, and reads back the disk of the question's key.
   *
   * @param isAll whether what is read back in the same command tells everything; else a second one reads it
   */
  async #mutateUnseen(
    statements: readonly Fragment[],
    question: Question,
    { filePrefix, folder }: Partial<Unseen> = {},
    isAll: (after: VolumeView) => boolean = () => true,
  ): Promise<MutationOutcome<VolumeView> | undefined> {
    const { key: id, context } = question;
    const outcome = await ifSent(this.exchange.exec(statements, question), context.signal);
    if (outcome === undefined) return undefined;
    const { answer, refusal } = outcome;
    const shown = answer === undefined ? undefined : ifAvailable(() => this.leftOf(id, undefined, answer));
    const after = shown !== undefined && isAll(shown) ? shown : undefined;
    const readAgain = () => this.view(id, filePrefix, context, folder);
    const ended = answer !== undefined;
    return { after: after ?? await this.exchange.settle(readAgain, context), refusal, ended };
  }

  async change(
    id: string,
    expectedComment: string,
    change: VolumeChange,
    context: CallContext,
  ): Promise<MutationOutcome<VolumeView>> {
    assertComparable({ id, comment: expectedComment });
    const statements = changeStatements(id, expectedComment, change);
    const readAgain = () => this.view(id, undefined, context);
    if (statements.length === 0) return { after: await readAgain(), refusal: undefined, ended: true };
    // Each statement takes a router time: the uptime is read only where none is known on this connection.
    const isUpKnown = this.connectionUpFor(0) !== undefined;
    return await this.#mutate({
      kind: "change",
      key: id,
      statements,
      queries: [isUpKnown ? [disksQuery(id)] : viewQueries(id, undefined)],
      read: (answer) => isUpKnown ? this.leftOf(id, undefined, answer) : this.viewOf(id, undefined, answer),
      readAgain,
      context,
    });
  }

  async exportUnseen(
    disk: Pick<KnownDisk, "id" | "comment" | "imagePath">,
    change: VolumeChange,
    filePrefix: string,
    context: CallContext,
  ): Promise<MutationOutcome<VolumeView> | undefined> {
    const { id } = disk;
    if (!isSendable(disk.comment)) return undefined;
    const statements = [unseenExportStatement(disk, change, filePrefix)];
    const queries = [disksQuery(id)];
    if (!fitsOneExec(statements, queries)) return undefined;
    return await this.#mutateUnseen(statements, { kind: "change", key: id, queries, context }, {
      filePrefix,
    });
  }

  async growUnseen(
    disk: KnownDisk,
    change: Required<Pick<VolumeChange, "comment" | "sizeBytes">>,
    context: CallContext,
  ): Promise<MutationOutcome<VolumeView> | undefined> {
    const { id } = disk;
    if (!isSendable(disk.comment)) return undefined;
    const statements = [unseenGrowthStatement(disk, change)];
    const queries = [disksQuery(id)];
    if (!fitsOneExec(statements, queries)) return undefined;
    return await this.#mutateUnseen(statements, { kind: "change", key: id, queries, context });
  }

  async remove(
    disk: DiskGuard,
    location: ImageLocation,
    filePrefix: string,
    context: CallContext,
  ): Promise<MutationOutcome<VolumeView>> {
    const { id } = disk;
    assertComparable(disk);
    return await this.#mutate({
      kind: "remove",
      key: id,
      statements: removeStatements(disk, location),
      // There is no room to ask who else uses the image: that is asked when anything of it is still there.
      queries: [[disksQuery(id), filesQuery(filePrefix)]],
      read: (answer) => {
        const after = this.leftOf(id, filePrefix, answer);
        return after?.files.length === 0 ? after : undefined;
      },
      readAgain: () => this.view(id, filePrefix, context),
      context,
      onlyOn: this.readFrom(context),
    });
  }

  async removeUnseen(
    disk: DiskGuard,
    imagePath: string,
    { filePrefix, settleMs }: Pick<Unseen, "filePrefix" | "settleMs">,
    context: CallContext,
  ): Promise<MutationOutcome<VolumeView> | undefined> {
    const { id } = disk;
    const onlyOn = this.connectionUpFor(settleMs);
    const location = ifAvailable(() => locationOf(imagePath, this.lastPools));
    if (onlyOn === undefined || location === undefined || !isSendable(disk.comment)) return undefined;
    const statements = unseenRemovalStatements(disk, location, filePrefix);
    const queries = [disksQuery(id)];
    if (!fitsOneExec(statements, queries)) return undefined;
    const question = { kind: "remove", key: id, queries, context, onlyOn };
    // Where files are left nothing is read back in the same command.
    const isGone = ({ volume, foreign }: VolumeView) => volume === undefined && foreign === undefined;
    return await this.#mutateUnseen(statements, question, { filePrefix }, isGone);
  }

  async removeImage(
    location: ImageLocation,
    part: string,
    context: CallContext,
  ): Promise<MutationOutcome<FileView>> {
    const onlyOn = this.readFrom(context);
    return await this.#changeFiles("remove-image", removeImageStatement(location), part, context, onlyOn);
  }

  async addSubvolume(
    subvolume: NewSubvolume,
    part: string,
    context: CallContext,
  ): Promise<MutationOutcome<Pick<FileView, "files">>> {
    assertComparable(subvolume.guard);
    return await this.#mutate<Pick<FileView, "files">>({
      kind: "add-subvolume",
      key: part,
      statements: subvolumeStatements(subvolume, part),
      // A file that is shown is there; that there is none is worth something only with the pools and the uptime.
      queries: [[filesQuery(part)]],
      read: ({ frames }) => {
        const files = filesHolding(part, frames[0]!);
        return files.length === 0 ? undefined : { files };
      },
      readAgain: () => this.files(part, context),
      context,
    });
  }

  async renameFile(
    from: string,
    to: string,
    guard: DiskGuard | undefined,
    part: string,
    context: CallContext,
  ): Promise<MutationOutcome<FileView>> {
    assertComparable(guard);
    return await this.#changeFiles("rename", renameStatement(from, to, guard), part, context);
  }

  async copyFile(
    from: string,
    to: string,
    context: CallContext,
    makeFolder?: NewFolder,
  ): Promise<{ readonly done: boolean; readonly refusal?: string }> {
    const folder = makeFolder === undefined ? [] : [folderStatement(makeFolder)];
    const { answer, refusal } = await this.exchange.exec([...folder, copyStatement(from, to)], {
      kind: "copy",
      key: to,
      queries: [],
      conditions: [noFile(to)],
      timeoutMs: this.#copyTimeoutMs,
      context,
    });
    if (answer !== undefined) return { done: true };
    return { done: false, ...refusal === undefined ? {} : { refusal } };
  }

  async probe(context: CallContext): Promise<void> {
    const connection = this.#session.connection;
    const atMs = this.#clock.monotonicMs();
    if (this.#probed !== undefined && this.#probed.connection === connection) {
      if (atMs - this.#probed.atMs < probeCacheMs) return;
      // A package comes and goes only with a reboot, which ends the connection: asking for a sign of life is enough.
      const answer = await this.#askProbe([resourceQuery], context);
      if (answer.connection === connection) {
        this.#probed = { connection, atMs };
        return;
      }
    }
    const answer = await this.#askProbe([packagesQuery, resourceQuery], context);
    this.#probed = { connection: answer.connection, atMs };
  }

  async #askProbe(queries: readonly Fragment[], context: CallContext): Promise<Answer> {
    const answer = await this.exchange.ask({ kind: "probe", key: "", queries, context });
    const { frames, connection } = answer;
    try {
      this.readResource(answer);
      if (queries.includes(packagesQuery)) assertStoragePackage(this.routerInfo!, frames[0]!);
    } catch (error) {
      if (VolumeError.is(error, "precondition") && connection !== this.#reportedUnfit) {
        this.observer?.unfit?.(error.message);
        this.#reportedUnfit = connection;
      }
      throw error;
    }
    return answer;
  }

  async #changeFiles(
    kind: string,
    statement: Fragment,
    part: string,
    context: CallContext,
    onlyOn?: number,
  ): Promise<MutationOutcome<FileView>> {
    return await this.#mutate({
      kind,
      key: part,
      statements: [statement],
      queries: [fileViewQueries(part)],
      read: (answer) => this.fileViewOf(part, answer),
      readAgain: () => this.files(part, context),
      context,
      onlyOn,
    });
  }

  async #mutate<View>(mutation: Mutation<View>): Promise<MutationOutcome<View>> {
    const { kind, key, context, onlyOn, readAgain } = mutation;
    const execs = divideIntoExecs(mutation.statements);
    for (const [index, statements] of execs.entries()) {
      const isLast = index === execs.length - 1;
      const queries = isLast ? mutation.queries.find((some) => fitsOneExec(statements, some)) : undefined;
      const question = { kind, key, queries: queries ?? [], context, onlyOn };
      const { answer, refusal } = await this.exchange.exec(statements, question);
      // What follows rests on what went before.
      if (answer !== undefined && !isLast) continue;
      const after = answer !== undefined && queries !== undefined
        ? ifAvailable(() => mutation.read(answer))
        : undefined;
      const ended = answer !== undefined;
      return { after: after ?? await this.exchange.settle(readAgain, context), refusal, ended };
    }
    throw new VolumeError("internal", `Cannot send a change without a statement: what=${kind}`);
  }
}

/**
 * How an exec ended; undefined when it was certainly not sent. A call that ends may do so as unavailable, too, as when the
 * lead runs out: what it has sent is on its way.
 */
async function ifSent(
  exec: Promise<ExecOutcome>,
  signal: AbortSignal,
): Promise<ExecOutcome | undefined> {
  try {
    return await exec;
  } catch (error) {
    if (VolumeError.is(error, "unavailable") && !signal.aborted) return undefined;
    throw error;
  }
}

/** The result of `read`; undefined when it throws that it has none, as for a whole answer that cannot be read all the same. */
function ifAvailable<Result>(read: () => Result): Result | undefined {
  try {
    return read();
  } catch (error) {
    if (VolumeError.is(error, "unavailable")) return undefined;
    throw error;
  }
}

/**
 * Checks that the comment of a guard, where there is one, can be sent back to the router for comparison.
 *
 * @throws {VolumeError} precondition when a person put characters into it that cannot
 */
function assertComparable(guard: DiskGuard | undefined): void {
  if (guard === undefined || isSendable(guard.comment)) return;
  throw new VolumeError(
    "precondition",
    `Cannot change the volume because its comment on the router holds control or non-ASCII characters: volume=${guard.id}; ` +
      "remove them from the disk's comment, and do not change the part in braces",
  );
}
