import { VolumeError } from "../../volume/errors.ts";
import type {
  DirectoryStore,
  DirectoryView,
  RemovalPart,
  RemovalView,
  ShareView,
} from "../../volume/ports/directory_store.ts";
import type { MutationOutcome } from "../../volume/ports/store.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { isInside } from "../../volume/model/directory/handle.ts";
import { pathBeforeDeletion } from "../../volume/model/directory/names.ts";
import { poolOf } from "../../volume/model/ids/ids.ts";
import type { Fragment } from "../console/command.ts";
import { type Answer, Exchange, type ExchangeOptions, type Question } from "../console/exchange.ts";
import { eachRow, parseJson } from "../console/json.ts";
import { assertSupported, parseResource } from "../console/router_info.ts";
import { listFilesInParts } from "../store/paged_lists.ts";
import { imagePathOf, resourceQuery } from "../store/queries.ts";
import { mayBeMounted, parseFiles } from "../store/rows.ts";
import { RouterUptime } from "../store/uptime.ts";
import {
  countQuery,
  directoriesQuery,
  findQuery,
  makeStatement,
  markedQuery,
  removeStatement,
  renameStatement,
  shareQuery,
} from "./statements.ts";

/** How long the router may take to remove a part of a directory, in milliseconds. */
const removalTimeoutMs = 600_000;

/** Options of {@linkcode RouterDirectoryStore}. */
export interface RouterDirectoryStoreOptions extends ExchangeOptions {
  /** Resolves when the router can be asked, and is fit for this driver. */
  readonly probe: (context: CallContext) => Promise<void>;
  /** Receives the state of a share each time it is read. */
  readonly observe?: (view: ShareView, mountPoint: string) => void;
}

/** The directories of one router, over one SSH session. */
export class RouterDirectoryStore implements DirectoryStore {
  readonly #exchange: Exchange;
  readonly #observe: RouterDirectoryStoreOptions["observe"];
  readonly #uptime = new RouterUptime();
  /** The connection of each call's last read. */
  readonly #reads = new WeakMap<CallContext, number>();
  readonly probe: (context: CallContext) => Promise<void>;

  constructor(options: RouterDirectoryStoreOptions) {
    this.#exchange = new Exchange(options);
    this.#observe = options.observe;
    this.probe = options.probe;
  }

  async find(paths: readonly string[], context: CallContext, deleted?: string): Promise<DirectoryView> {
    const queries = [...findQueries(paths, deleted), resourceQuery];
    const kind = "find-directories";
    const answer = await this.#ask({ kind, key: paths[0] ?? "", queries, context });
    return this.#viewOf(paths, answer, deleted);
  }

  async list(folder: string, mark: string, context: CallContext): Promise<DirectoryView> {
    const queries = [markedQuery(folder, mark), shareQuery(folder), resourceQuery];
    const answer = await this.#ask({ kind: "list-directories", key: "", queries, context }, "return");
    if (answer === "cut") return await this.#listInParts(folder, mark, context);
    const entries = parseFiles(answer.frames[0]!, (path) => isInside(path, folder));
    return { ...this.#shareOf(folder, answer.frames[1]!, answer), entries };
  }

  async #listInParts(folder: string, mark: string, context: CallContext): Promise<DirectoryView> {
    const question = { kind: "list-directories", key: "", context };
    const entries = await listFilesInParts(`.${mark}`, async (pattern) => {
      const queries = [markedQuery(folder, mark, pattern)];
      const answer = await this.#exchange.ask({ ...question, queries }, "return");
      return answer === "cut" ? undefined : answer.frames[0];
    });
    const answer = await this.#ask({ ...question, queries: [shareQuery(folder), resourceQuery] });
    return {
      ...this.#shareOf(folder, answer.frames[0]!, answer),
      entries: entries.filter(({ path }) => isInside(path, folder)),
    };
  }

  make(path: string, context: CallContext): Promise<MutationOutcome<DirectoryView>> {
    return this.#change("make-directory", makeStatement(path), [path], context);
  }

  rename(from: string, to: string, context: CallContext): Promise<MutationOutcome<DirectoryView>> {
    const onlyOn = this.#reads.get(context);
    return this.#change("rename-directory", renameStatement(from, to), [from, to], context, onlyOn);
  }

  async left(path: string, context: CallContext): Promise<RemovalView> {
    const queries = [...removalQueries(path), resourceQuery];
    const answer = await this.#ask({ kind: "find-directories", key: path, queries, context });
    return this.#removalOf(path, answer);
  }

  async directoriesBelow(path: string, depth: number, context: CallContext): Promise<number> {
    const queries = [directoriesQuery(path, depth)];
    const answer = await this.#exchange.ask({ kind: "find-directories", key: path, queries, context });
    return parseCount(answer.frames[0]!);
  }

  async remove(
    path: string,
    part: RemovalPart,
    context: CallContext,
  ): Promise<MutationOutcome<RemovalView>> {
    const queries = removalQueries(path);
    const kind = "remove-directory";
    const { answer, refusal } = await this.#exchange.exec([removeStatement(path, part)], {
      ...{ kind, key: path, queries, context },
      timeoutMs: removalTimeoutMs,
      onlyOn: this.#reads.get(context),
    });
    const readAgain = () => this.left(path, context);
    const after = answer === undefined
      ? await this.#exchange.settle(readAgain, context)
      : this.#removalOf(path, answer);
    return { after, refusal, ended: answer !== undefined };
  }

  async #change(
    kind: string,
    statement: Fragment,
    paths: readonly string[],
    context: CallContext,
    onlyOn?: number,
  ): Promise<MutationOutcome<DirectoryView>> {
    const queries = findQueries(paths);
    const { answer, refusal } = await this.#exchange.exec([statement], {
      ...{ kind, key: paths[0]!, queries, context, onlyOn },
    });
    const readAgain = () => this.find(paths, context);
    const after = answer === undefined
      ? await this.#exchange.settle(readAgain, context)
      : this.#viewOf(paths, answer);
    return { after, refusal, ended: answer !== undefined };
  }

  /** Asks a question whose last frame is the router's own row. */
  #ask(question: Question): Promise<Answer>;
  #ask(question: Question, whenCut: "return"): Promise<Answer | "cut">;
  async #ask(question: Question, whenCut?: "return"): Promise<Answer | "cut"> {
    const answer =
      await (whenCut === undefined ? this.#exchange.ask(question) : this.#exchange.ask(question, whenCut));
    if (answer === "cut") return answer;
    const { info, upMs } = parseResource(answer.frames.at(-1)!);
    assertSupported(info);
    this.#uptime.note(answer, upMs);
    this.#reads.set(question.context, answer.connection);
    return answer;
  }

  #viewOf(paths: readonly string[], answer: Answer, deleted?: string): DirectoryView {
    const isAsked = (path: string) => paths.includes(path) || pathBeforeDeletion(path) === deleted;
    const entries = parseFiles(answer.frames[0]!, isAsked);
    return { ...this.#shareOf(paths[0]!, answer.frames[1]!, answer), entries };
  }

  #removalOf(path: string, answer: Answer): RemovalView {
    const [shareFrame, countFrame] = answer.frames;
    const count = parseCount(countFrame!);
    return {
      ...this.#shareOf(path, shareFrame!, answer),
      exists: count > 0,
      count: Math.max(0, count - 1),
    };
  }

  /** What reads a change back has no room for the router's own row: the uptime is carried over from the look before. */
  #shareOf(path: string, frame: string, answer: Answer): ShareView {
    const mountPoint = poolOf(path);
    const view = { ...parseShare(mountPoint, frame), upMs: this.#uptime.carriedMs(answer) ?? 0 };
    this.#observe?.(view, mountPoint);
    return view;
  }
}

function findQueries(paths: readonly string[], deleted?: string): Fragment[] {
  return [findQuery(paths, deleted), shareQuery(paths[0]!)];
}

function removalQueries(path: string): Fragment[] {
  return [shareQuery(path), countQuery(path)];
}

function parseCount(frame: string): number {
  const value = parseJson(frame, "number of files");
  if (typeof value === "bigint" || typeof value === "string" && /^\d+$/.test(value)) return Number(value);
  throw new VolumeError(
    "unavailable",
    `Cannot read the number of files from the router: ${frame.slice(0, 80)}`,
  );
}

/** The state of a share in a frame of {@linkcode shareQuery}. */
function parseShare(mountPoint: string, frame: string): Omit<ShareView, "upMs"> {
  let share: ShareView["share"];
  const [images, mountsBelow]: [string[], string[]] = [[], []];
  const root = `/${mountPoint}`;
  for (const row of eachRow(frame, "list of disks")) {
    const image = row.text("type", "") === "file" ? imagePathOf(row.text("file-path", "")) : "";
    if (image !== "" && isInside(image, root)) images.push(image);
    if (!mayBeMounted(row)) continue;
    const mount = `/${row.text("mount-point", "").replace(/^\/+|\/+$/g, "")}`;
    if (mount !== root) {
      if (isInside(mount, root)) mountsBelow.push(mount);
      continue;
    }
    // One that may be mounted or not is no share: it throws.
    row.flag("mounted");
    share = {
      slot: row.text("slot"),
      isShared: row.isSet("nfs-sharing"),
      freeBytes: row.integer("free"),
      filesystemUuid: row.find("fs-uuid") ?? "",
    };
  }
  return { share, images, mountsBelow };
}
