import { VolumeError } from "../../volume/errors.ts";
import type { CallContext, Clock } from "../../volume/ports/system.ts";
import { type NotSent, sent } from "../../volume/ports/not_sent.ts";
import type { Premise } from "../../volume/ports/premise.ts";
import {
  type Commit,
  type CommittedView,
  type DiskGuard,
  type FolderChange,
  idOfWrite,
  type MutationOutcome,
  type NewFolder,
  type NewSubvolume,
  type VolumeStore,
  type Write,
} from "../../volume/ports/store.ts";
import type { FileView, ImageLocation, Inventory, VolumeView } from "../../volume/model/inventory.ts";
import { type Fragment, isSendable } from "../console/command.ts";
import { type Answer, divideIntoExecs, type ExecOutcome, fitsOneExec } from "../console/exchange.ts";
import { assertStoragePackage } from "../console/router_info.ts";
import type { Session } from "../ssh/session.ts";
import {
  copyStatement,
  folderStatement,
  poolFolderStatement,
  removeFolderStatement,
  removeImageStatement,
  renameStatement,
  subvolumeStatements,
  writeStatements,
} from "./mutations.ts";
import { noFile } from "./premises.ts";
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

  async commit(
    write: Write,
    premises: readonly Premise[],
    context: CallContext,
  ): Promise<Commit | NotSent> {
    const key = idOfWrite(write);
    const refusal = incomparable(write, premises);
    if (refusal !== undefined) return { notSent: refusal };
    const onlyOn = this.#connectionFor(write, premises, context);
    if (onlyOn === "unknown") return { notSent: notSent("it is not known to be up for long enough") };
    const statements = writeStatements(write, premises);
    const readAgain = async () =>
      isReadingAll(write)
        ? viewIn(await this.inventory(context), key)
        : await this.view(key, write.filePrefix, context);
    if (statements.length === 0) return { after: await readAgain(), refusal: undefined, ended: true };
    const { queries, read } = this.#readBack(write, premises);
    // Where more than the comment is compared, the disk alone does not show whether that held: all in one command, or nothing.
    const fits = hasCommentOnly(premises) || queries.some((some) => fitsOneExec(statements, some));
    if (!fits) return { notSent: notSent("its conditions do not fit into one command") };
    return await this.#mutate({
      kind: kindOf(write),
      key,
      statements,
      queries,
      read,
      readAgain,
      context,
      onlyOn,
    });
  }

  /** The connection on which alone a write may go; undefined for any. */
  #connectionFor(
    write: Write,
    premises: readonly Premise[],
    context: CallContext,
  ): number | "unknown" | undefined {
    const upFor = premises.find((premise) => premise.is === "up-for");
    if (upFor !== undefined) return this.connectionUpFor(upFor.ms) ?? "unknown";
    return "remove" in write ? this.readFrom(context) : undefined;
  }

  /** How a write is read back in its own command. There is no room to ask who else uses an image. */
  #readBack(
    write: Write,
    premises: readonly Premise[],
  ): Pick<Mutation<CommittedView>, "queries" | "read"> {
    const id = idOfWrite(write);
    if (isReadingAll(write)) {
      // Uptime has no room in this command, nor in that of a removal: it is carried over from the read before.
      return {
        queries: [[allDisksQuery()], [allDisksInFullQuery]],
        read: (answer) => ifShown(this.inventoryOf(answer), id),
      };
    }
    if ("remove" in write && hasCommentOnly(premises)) {
      return {
        queries: [[disksQuery(id), filesQuery(write.filePrefix)]],
        read: (answer) =>
          wholeIf(this.leftOf(id, write.filePrefix, answer), ({ files }) => files.length === 0),
      };
    }
    const isWhole = "remove" in write
      ? isGone
      : "add" in write && premises.length === 0
      ? isThere
      : () => true;
    // Each statement takes a router time: the uptime is read only where none is known on this connection.
    if ("set" in write && hasCommentOnly(premises) && this.connectionUpFor(0) === undefined) {
      return { queries: [viewQueries(id, undefined)], read: (answer) => this.viewOf(id, undefined, answer) };
    }
    return {
      queries: [[disksQuery(id)]],
      read: (answer) => wholeIf(this.leftOf(id, undefined, answer), isWhole),
    };
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
    return sent(
      await this.#mutate<Pick<FileView, "files">>({
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
      }),
    );
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

  async changeFolders({ add, remove }: FolderChange, context: CallContext): Promise<string | undefined> {
    const statements = [
      ...add.map(poolFolderStatement),
      ...remove.map(removeFolderStatement),
    ];
    const question = { kind: "folders", key: "", queries: [], context };
    const todo = divideIntoExecs(statements).filter((some) => some.length > 0);
    let firstRefusal: string | undefined;
    for (let some = todo.shift(); some !== undefined; some = todo.shift()) {
      const { answer, refusal } = await this.exchange.exec(some, question);
      if (answer !== undefined) continue;
      if (refusal === undefined) return "the router's answer was lost";
      firstRefusal ??= refusal;
      // Nothing says which one was refused, and what is behind it did not run.
      if (some.length > 1) todo.unshift(...some.map((one) => [one]));
    }
    return firstRefusal;
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
    return sent(
      await this.#mutate({
        kind,
        key: part,
        statements: [statement],
        queries: [fileViewQueries(part)],
        read: (answer) => this.fileViewOf(part, answer),
        readAgain: () => this.files(part, context),
        context,
        onlyOn,
      }),
    );
  }

  async #mutate<View>(mutation: Mutation<View>): Promise<MutationOutcome<View> | NotSent> {
    const { kind, key, context, onlyOn, readAgain } = mutation;
    const execs = divideIntoExecs(mutation.statements);
    for (const [index, statements] of execs.entries()) {
      const isLast = index === execs.length - 1;
      const queries = isLast ? mutation.queries.find((some) => fitsOneExec(statements, some)) : undefined;
      const question = { kind, key, queries: queries ?? [], context, onlyOn };
      const outcome = await unlessUnsent(this.exchange.exec(statements, question), context.signal);
      if ("notSent" in outcome && index === 0) return outcome;
      // What went before may have changed something.
      if ("notSent" in outcome) throw outcome.notSent;
      const { answer, refusal } = outcome;
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
 * How an exec ended, if it was sent. A call that ends may do so as unavailable, too, as when the lead runs out: what it has sent
 * is on its way.
 */
async function unlessUnsent(
  exec: Promise<ExecOutcome>,
  signal: AbortSignal,
): Promise<ExecOutcome | NotSent> {
  try {
    return await exec;
  } catch (error) {
    if (VolumeError.is(error, "unavailable") && !signal.aborted) return { notSent: error };
    throw error;
  }
}

function notSent(reason: string): VolumeError {
  return new VolumeError("unavailable", `Cannot write to the router without a read because ${reason}`);
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

function kindOf(write: Write): string {
  return "add" in write ? "add" : "set" in write ? "change" : "remove";
}

function isReadingAll(write: Write): boolean {
  return "add" in write && write.readsAll === true;
}

function hasCommentOnly(premises: readonly Premise[]): boolean {
  return premises.every(({ is }) => is === "comment");
}

function wholeIf(
  shown: VolumeView | undefined,
  isWhole: (shown: VolumeView) => boolean,
): VolumeView | undefined {
  return shown !== undefined && isWhole(shown) ? shown : undefined;
}

function isThere({ volume }: VolumeView): boolean {
  return volume !== undefined;
}

function isGone({ volume, foreign }: VolumeView): boolean {
  return volume === undefined && foreign === undefined;
}

/** A read of all disks as one of a volume that it shows; else undefined. */
function ifShown(inventory: Inventory | undefined, id: string): CommittedView | undefined {
  const shown = inventory && viewIn(inventory, id);
  return shown?.volume === undefined ? undefined : shown;
}

function viewIn({ pools, upMs, volumes }: Inventory, id: string): CommittedView {
  const volume = volumes.find((volume) => volume.id === id);
  return { pools, upMs, volume, foreign: undefined, sharers: [], files: [], all: volumes };
}

/** Why a comment that the router would have to compare cannot be sent back to it; undefined where every one can. */
function incomparable(write: Write, premises: readonly Premise[]): VolumeError | undefined {
  const guard = "add" in write ? write.add.subvolume?.guard : undefined;
  const own = premises.flatMap((premise) =>
    premise.is === "comment" ? [{ id: idOfWrite(write), comment: premise.text }] : []
  );
  const odd = [...own, ...guard === undefined ? [] : [guard]].find(({ comment }) => !isSendable(comment));
  return odd && incomparableComment(odd.id);
}

/**
 * Checks that the comment of a guard, where there is one, can be sent back to the router for comparison.
 *
 * @throws {VolumeError} precondition when a person put characters into it that cannot
 */
function assertComparable(guard: DiskGuard | undefined): void {
  if (guard !== undefined && !isSendable(guard.comment)) throw incomparableComment(guard.id);
}

function incomparableComment(id: string): VolumeError {
  return new VolumeError(
    "precondition",
    `Cannot change the volume because its comment on the router holds control or non-ASCII characters: volume=${id}; ` +
      "remove them from the disk's comment, and do not change the part in braces",
  );
}
