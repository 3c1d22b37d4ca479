import { assertReadable } from "../../volume/rules/ownership.ts";
import { SingleFlight } from "../../async/single_flight.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type {
  CreateView,
  FileView,
  Inventory,
  Pool,
  RouterState,
  SourceQuery,
  SourceView,
  StoredFile,
  StoredVolume,
  VolumeView,
  Wanted,
} from "../../volume/model/inventory.ts";
import type { BtrfsFilesystem } from "../../volume/model/health/hardware.ts";
import type { HardwareReader, RouterDrives } from "../../volume/ports/hardware.ts";
import { anySnapshot } from "../../volume/model/snapshots/snapshots.ts";
import type { Fragment } from "../console/command.ts";
import { type Answer, Exchange, type ExchangeOptions, type Question } from "../console/exchange.ts";
import { assertSupported, parseResource, type RouterInfo } from "../console/router_info.ts";
import type { RouterObserver } from "../ssh/observer.ts";
import { arraysQuery, filesystemsQuery, hardwareQuery, parseFilesystems, parseHardware } from "./hardware.ts";
import { listDisksInParts, listFilesInParts } from "./paged_lists.ts";
import {
  allDisksQuery,
  createBaseQueries,
  createQueries,
  divideIntoQuestions,
  fileViewQueries,
  namedFilesViewQueries,
  poolsQuery,
  resourceQuery,
  someDisksQuery,
  someFilesQuery,
  sourceViewQueries,
  uncleanArraysQuery,
  viewQueries,
} from "./queries.ts";
import { type Disks, parseDisks, parseFiles, withUnsoundArrays } from "./rows.ts";
import { RouterUptime } from "./uptime.ts";

/** The most calls that wait for one inventory; one more is refused at once. */
const maxJoined = 1024;

/** What a {@linkcode RouterReader} needs. */
export interface RouterReaderOptions extends ExchangeOptions {
  readonly observer?: RouterObserver;
}

/**
 * The half of a router's `VolumeStore` that only reads. It remembers what every answer says about the router: its version,
 * and how long it is up.
 */
export class RouterReader implements HardwareReader {
  protected readonly exchange: Exchange;
  protected readonly observer: RouterObserver | undefined;
  readonly #options: Pick<ExchangeOptions, "clock" | "session">;
  readonly #inventories = new SingleFlight<Inventory>();
  /** The connection on which each call has looked. */
  readonly #reads = new WeakMap<CallContext, number>();
  readonly #uptime = new RouterUptime();
  /** The volumes of the last look at all of them: later looks share those that are as they were. */
  #known: ReadonlyMap<string, StoredVolume> = new Map();
  #pools: readonly Pool[] = [];
  #info: RouterInfo | undefined;
  #saidLimited = false;

  constructor(options: RouterReaderOptions) {
    this.exchange = new Exchange(options);
    this.observer = options.observer;
    this.#options = options;
  }

  /** What the router said about itself last; undefined before it was asked anything. */
  get routerInfo(): RouterInfo | undefined {
    return this.#info;
  }

  /** See `VolumeStore.lastPools`. */
  get lastPools(): readonly Pool[] {
    return this.#pools;
  }

  /**
   * The connection on which a call has looked last at what it is about; undefined when it has not. A router that has just
   * booted may not show a disk yet, and would give its image away as unused.
   */
  protected readFrom(context: CallContext): number | undefined {
    return this.#reads.get(context);
  }

  /** See `VolumeStore.view()`; without a file-name prefix no files and no sharers. */
  async view(
    id: string,
    filePrefix: string | undefined,
    context: CallContext,
    folder?: string,
  ): Promise<VolumeView> {
    const queries = viewQueries(id, filePrefix, folder);
    const answer = await this.exchange.ask({ kind: "view", key: id, queries, context });
    this.#reads.set(context, answer.connection);
    const view = this.viewOf(id, filePrefix, answer);
    if (filePrefix === undefined || folder === undefined) return view;
    const isShown = (path: string) => path.includes(filePrefix) || path === folder;
    return { ...view, files: parseFiles(answer.frames[1]!, isShown) };
  }

  /** See `VolumeStore.createView()`. */
  async createView(wanted: Wanted | undefined, context: CallContext): Promise<CreateView> {
    const queries = createQueries(wanted);
    const question = { kind: "create-view", key: wanted?.id ?? "", queries, context };
    const answer = await this.exchange.ask(question, "return");
    if (answer === "cut") return await this.#createViewInParts(wanted, context);
    this.#reads.set(context, answer.connection);
    const { volumes, others, state } = this.#disksOf(answer);
    const foreign = others.find((disk) => disk.id === wanted?.id);
    return this.#reported({ ...state, volumes, foreign, files: createFilesOf(wanted, answer.frames[1]!) });
  }

  /** See `VolumeStore.sourceView()`. */
  async sourceView(wanted: Wanted, source: SourceQuery, context: CallContext): Promise<SourceView> {
    const { id, filePrefix, folder } = wanted;
    const queries = sourceViewQueries(wanted, source);
    const answer = await this.exchange.ask({ kind: "view", key: id, queries, context });
    this.#reads.set(context, answer.connection);
    const isOwn = (path: string) => path.includes(filePrefix) || path === folder;
    const isShown = (path: string) => isOwn(path) || "part" in source && path.includes(source.part);
    return {
      ...this.viewOf(id, filePrefix, answer),
      source: this.#sourceOf(answer, source),
      files: parseFiles(answer.frames[1]!, isShown),
    };
  }

  #sourceOf(answer: Answer, source: SourceQuery): StoredVolume | undefined {
    const found = this.#disksOf(answer).volumes.find((volume) => "id" in source && volume.id === source.id);
    assertReadable(found, "read");
    return found;
  }

  /** See `VolumeStore.inventory()`. */
  async inventory(context: CallContext): Promise<Inventory> {
    const { session } = this.#options;
    const joined = this.#inventories.calls();
    const refusal = joined === 0 ? undefined : session.refusal();
    if (refusal !== undefined) throw refusal;
    if (joined >= maxJoined) {
      throw new VolumeError(
        "unavailable",
        `Cannot ask the router because ${joined} calls already wait for the same; try again`,
      );
    }
    const { requestId } = context;
    return await this.#inventories.runDuringCall(
      context.signal,
      (signal, onSent) => this.#readInventory({ requestId, signal }, onSent),
    );
  }

  /** See `VolumeStore.state()`. */
  async state(context: CallContext): Promise<RouterState> {
    const queries = [poolsQuery, resourceQuery];
    const answer = await this.exchange.ask({ kind: "pools", key: "", queries, context });
    return this.#disksOf(answer).state;
  }

  /** See `VolumeStore.poolHealth()`. */
  async poolHealth(context: CallContext): Promise<readonly Pool[]> {
    const queries = [poolsQuery, uncleanArraysQuery, resourceQuery];
    const answer = await this.exchange.ask({ kind: "pool-health", key: "", queries, context });
    return withUnsoundArrays(this.#disksOf(answer), answer.frames[1]!);
  }

  /** See `HardwareReader.drives()`. */
  async drives(context: CallContext): Promise<RouterDrives> {
    const answer = await this.#askAside([hardwareQuery, resourceQuery], context) ??
      await this.#askAside([arraysQuery, resourceQuery], context);
    return {
      disks: answer && parseHardware(answer.frames[0]!),
      upMs: answer && this.readResource(answer),
    };
  }

  /** See `HardwareReader.filesystems()`. */
  async filesystems(
    disks: RouterDrives["disks"],
    context: CallContext,
  ): Promise<readonly BtrfsFilesystem[] | undefined> {
    // One that lacks a device may not be mounted after a boot.
    const hasBtrfs = disks?.some(({ filesystem }) => filesystem === "btrfs") ??
      this.#pools.some(({ filesystem }) => filesystem === "btrfs");
    if (!hasBtrfs) return disks?.every(({ filesystem }) => filesystem !== undefined) ? [] : undefined;
    const listed = await this.#askAside([filesystemsQuery], context);
    return listed && parseFilesystems(listed.frames[0]!);
  }

  /**
   * The answer to what nothing depends on; undefined when the router refuses. It is not asked again for an answer that was
   * lost or cut: that is none, and no sign of what the router knows.
   *
   * @throws {VolumeError} unavailable when the answer is lost or cut, or the router could not be asked
   */
  async #askAside(queries: readonly Fragment[], context: CallContext): Promise<Answer | undefined> {
    const aside = { ...context, aside: true } as const;
    const question = { kind: "hardware", key: "hardware", queries, context: aside };
    const { answer, refusal, cut } = await this.exchange.exec([], question);
    if (answer !== undefined || refusal !== undefined) return answer;
    const { target } = this.#options.session;
    const reason = cut ? "its answer was cut off" : "its answer was lost";
    throw new VolumeError(
      "unavailable",
      `Cannot read from the router because ${reason}: router=${target} what=${question.kind}`,
    );
  }

  /** See `VolumeStore.files()`. */
  async files(part: string, context: CallContext): Promise<FileView> {
    const question = { kind: "files", key: part, context };
    const answer = await this.exchange.ask({ ...question, queries: fileViewQueries(part) }, "return");
    if (answer !== "cut") {
      // What is decided may rest on an earlier look; only the first connection vouches for both.
      if (!this.#reads.has(context)) this.#reads.set(context, answer.connection);
      return this.fileViewOf(part, answer);
    }
    const files = await this.#filesInParts(part, part, context);
    const base = await this.exchange.ask({ ...question, queries: [poolsQuery, resourceQuery] });
    return { ...this.#disksOf(base).state, files };
  }

  /** See `VolumeStore.filesAt()`. */
  async filesAt(paths: readonly string[], context: CallContext): Promise<FileView> {
    const files: StoredFile[] = [];
    let state: RouterState | undefined;
    for (const some of divideIntoQuestions(paths)) {
      const queries = namedFilesViewQueries(some);
      const answer = await this.exchange.ask({ kind: "files-at", key: "", queries, context });
      ({ state } = this.#disksOf(answer, 1));
      files.push(...parseFiles(answer.frames[0]!, (path) => some.includes(path)));
    }
    if (state === undefined) throw new VolumeError("internal", "Cannot look for no file at all");
    return { ...state, files };
  }

  /**
   * The volume of an answer to `viewQueries()`. The router's `where` has only narrowed disks and files down: slot and path
   * are compared again here, to the letter.
   */
  protected viewOf(
    id: string,
    filePrefix: string | undefined,
    answer: Answer,
    upMs = this.readResource(answer),
  ): VolumeView {
    const { volumes, others, state } = this.#disksOf(answer, 0, upMs);
    const volume = volumes.find((volume) => volume.id === id);
    assertReadable(volume, "read");
    return {
      ...state,
      volume,
      foreign: others.find((disk) => disk.id === id),
      sharers: volumes.filter((volume) =>
        volume.id !== id && filePrefix !== undefined && volume.imagePath.includes(filePrefix)
      ),
      files: filePrefix === undefined ? [] : filesHolding(filePrefix, answer.frames[1]!),
    };
  }

  /** The files of an answer to `fileViewQueries()`. */
  protected fileViewOf(part: string, answer: Answer): FileView {
    return { ...this.#disksOf(answer, 1).state, files: filesHolding(part, answer.frames[0]!) };
  }

  /** All disks of an answer to `allDisksQuery()` alone; undefined under the same condition as {@linkcode leftOf}. */
  protected inventoryOf(answer: Answer): Inventory | undefined {
    const upMs = this.#uptime.carriedMs(answer);
    if (upMs === undefined) return undefined;
    const { volumes, state } = this.#disksOf(answer, 0, upMs);
    return this.#reported({ ...state, volumes });
  }

  /**
   * What is there of a volume, of an answer to `disksQuery()` and, with a file-name prefix, `filesQuery()`. The command has no room for the
   * router's own row: the uptime is carried over, and where none was read on this connection the result is undefined.
   */
  protected leftOf(id: string, filePrefix: string | undefined, answer: Answer): VolumeView | undefined {
    const upMs = this.#uptime.carriedMs(answer);
    return upMs === undefined ? undefined : this.viewOf(id, filePrefix, answer, upMs);
  }

  /** The connection that is ready, if its router is known to be up for so long, in milliseconds; else undefined. */
  protected connectionUpFor(ms: number): number | undefined {
    const { clock, session: { connection } } = this.#options;
    if (connection === undefined) return undefined;
    const upMs = this.#uptime.carriedMs({ connection, receivedMs: clock.monotonicMs() });
    return upMs !== undefined && upMs >= ms ? connection : undefined;
  }

  /**
   * Reads the router's own row, the last frame, and remembers what it says; returns the uptime in milliseconds.
   *
   * @throws {VolumeError} precondition when RouterOS is too old
   */
  protected readResource(answer: Answer): number {
    const { info, upMs } = parseResource(answer.frames.at(-1)!);
    if (info.version !== this.#info?.version) this.observer?.identified?.(info);
    this.#info = info;
    assertSupported(info);
    if (this.#uptime.note(answer, upMs)) this.observer?.booted?.();
    return upMs;
  }

  /** The disks in one frame of an answer, and the state of the router that every read returns with its subject. */
  #disksOf(answer: Answer, index = 0, upMs = this.readResource(answer)): Disks & { state: RouterState } {
    const disks = parseDisks(answer.frames[index]!, this.#known);
    const { pools, unreadablePools } = disks;
    this.#pools = pools;
    return { ...disks, state: { pools, ...unreadablePools && { unreadablePools }, upMs } };
  }

  #reported<Look extends Inventory>(reading: Look): Look {
    this.#known = new Map(reading.volumes.map((volume) => [volume.id, volume]));
    this.observer?.inventory?.(reading);
    return reading;
  }

  async #readInventory(context: CallContext, onSent: () => void): Promise<Inventory> {
    const question = {
      kind: "inventory",
      key: "",
      queries: [allDisksQuery(), resourceQuery],
      context,
      onSent,
    };
    let answer = await this.exchange.ask(question, "return");
    let inParts: StoredVolume[] | undefined;
    if (answer === "cut") {
      inParts = await this.#volumesInParts("", context);
      const queries = [poolsQuery, resourceQuery];
      answer = await this.exchange.ask({ kind: "inventory", key: "", queries, context });
    }
    const { volumes, state } = this.#disksOf(answer);
    return this.#reported({ ...state, volumes: inParts ?? volumes });
  }

  /** The uptime is read last: a reboot in the middle of the list, after which disks come late, shows in it. */
  async #createViewInParts(wanted: Wanted | undefined, context: CallContext): Promise<CreateView> {
    const key = wanted?.id ?? "";
    const volumes = await this.#volumesInParts(key, context);
    const snapshots = await this.#filesInParts(anySnapshot, key, context);
    const queries = createBaseQueries(wanted);
    const answer = await this.exchange.ask({ kind: "create-view", key, queries, context });
    const { others, state } = this.#disksOf(answer);
    const foreign = others.find((disk) => disk.id === wanted?.id);
    const own = wanted === undefined ? [] : createFilesOf(wanted, answer.frames[1]!);
    const files = [...own.filter((file) => !file.path.includes(anySnapshot)), ...snapshots];
    return this.#reported({ ...state, volumes, foreign, files });
  }

  #volumesInParts(key: string, context: CallContext): Promise<StoredVolume[]> {
    const ask = this.#partOf({ kind: "inventory-part", key, context }, someDisksQuery);
    return listDisksInParts(ask, this.#known);
  }

  #filesInParts(text: string, key: string, context: CallContext): Promise<StoredFile[]> {
    return listFilesInParts(text, this.#partOf({ kind: "files-part", key, context }, someFilesQuery));
  }

  /** How to ask for what matches a pattern; undefined when that comes cut too. */
  #partOf(question: Omit<Question, "queries">, query: (pattern: string, ending?: string) => Fragment) {
    if (!this.#saidLimited) {
      this.observer?.warning?.("the router's output is limited; listing its contents in parts");
    }
    this.#saidLimited = true;
    return async (pattern: string, ending?: string) => {
      const answer = await this.exchange.ask({ ...question, queries: [query(pattern, ending)] }, "return");
      return answer === "cut" ? undefined : answer.frames[0];
    };
  }
}

/** The files of a frame whose path holds the text. */
export function filesHolding(part: string, frame: string): StoredFile[] {
  return parseFiles(frame, (path) => path.includes(part));
}

/** The files of a frame that a create asked for. */
function createFilesOf(wanted: Wanted | undefined, frame: string): StoredFile[] {
  return parseFiles(frame, (path) => {
    if (path.includes(anySnapshot)) return true;
    return wanted !== undefined && (path.includes(wanted.filePrefix) || path === wanted.folder);
  });
}
