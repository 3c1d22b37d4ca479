import { VolumeError } from "../volume/errors.ts";
import type {
  CallContext,
  Clock,
  CreateView,
  Inventory,
  MutationOutcome,
  NewVolume,
  Random,
  StoredVolume,
  VolumeChange,
  VolumeStore,
  VolumeView,
} from "../volume/ports.ts";
import type { Fragment } from "./command.ts";
import { type Answer, Exchange, fitsOneExec, type Question, ReadRefused } from "./exchange.ts";
import { assertFit } from "./fitness.ts";
import { addStatements, changeStatements, removeStatements } from "./mutations.ts";
import type { RouterObserver } from "./observer.ts";
import { listInParts } from "./parts.ts";
import {
  allDisksQuery,
  disksQuery,
  filesQuery,
  imagePathOf,
  packagesQuery,
  poolsQuery,
  resourceQuery,
  someDisksQuery,
} from "./queries.ts";
import { parseDisks, parseFiles, parseResource } from "./rows.ts";
import type { Session } from "./session.ts";
import { SharedRead } from "./shared_read.ts";
import { UptimeAnchor } from "./uptime_anchor.ts";
import { parseRouterInfo, type RouterInfo } from "./version.ts";
import {
  assertComparable,
  createBaseQueries,
  createQueries,
  filesOf,
  groups,
  ifReadable,
  sortDisks,
  viewQueries,
} from "./views.ts";

/** What a {@linkcode RouterVolumeStore} needs. */
export interface RouterVolumeStoreOptions {
  readonly session: Session;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer?: RouterObserver;
  /** Milliseconds for which a successful probe of the same connection is believed. @default {5000} */
  readonly probeCacheMs?: number;
}

/** A mutation and how its result is read. */
interface Mutation<View> {
  readonly kind: string;
  readonly id: string;
  readonly statements: readonly Fragment[];
  /** The frames that `read` needs; where they do not fit, the state is read in a command of its own. */
  readonly queries: readonly Fragment[];
  /** Undefined when the frames alone do not tell everything. */
  readonly read: (answer: Answer) => View | undefined;
  /** Reads everything in a command of its own. */
  readonly readAgain: () => Promise<View>;
  readonly context: CallContext;
  readonly onlyOn?: number;
}

/** The volumes of one router, over one SSH session. */
export class RouterVolumeStore implements VolumeStore {
  readonly #session: Session;
  readonly #exchange: Exchange;
  readonly #clock: Clock;
  readonly #observer: RouterObserver | undefined;
  readonly #probeCacheMs: number;
  readonly #uptime = new UptimeAnchor();
  readonly #inventories: SharedRead<Inventory>;
  /** The connection on which each call has looked last. */
  readonly #looks = new WeakMap<CallContext, number>();
  #info: RouterInfo | undefined;
  #saidLimited = false;
  /** The last successful probe. */
  #probed: { readonly connection: number; readonly atMs: number } | undefined;

  constructor(options: RouterVolumeStoreOptions) {
    this.#session = options.session;
    this.#exchange = new Exchange(options);
    this.#clock = options.clock;
    this.#observer = options.observer;
    this.#probeCacheMs = options.probeCacheMs ?? 5000;
    this.#inventories = new SharedRead({
      clock: options.clock,
      read: (context, onSent) => this.#readInventory(context, onSent),
      refusal: () => options.session.refusal(),
    });
  }

  /** What the router said about itself last; undefined before it was asked anything. */
  get routerInfo(): RouterInfo | undefined {
    return this.#info;
  }

  /** Ends the connection; later calls fail as unavailable. */
  close(): void {
    this.#session.close();
  }

  async view(id: string, imagePaths: readonly string[], context: CallContext): Promise<VolumeView> {
    const views: VolumeView[] = [];
    for (const paths of groups(imagePaths, (paths) => viewQueries(id, paths))) {
      const answer = await this.#exchange.ask({
        kind: "view",
        key: id,
        queries: viewQueries(id, paths),
        context,
      });
      this.#looks.set(context, answer.connection);
      views.push(this.#viewOf(id, paths, answer));
    }
    const last = views.at(-1)!;
    return {
      ...last,
      sharers: views.flatMap((view) => view.sharers),
      files: views.flatMap((view) => view.files),
    };
  }

  async createView(id: string, imagePaths: readonly string[], context: CallContext): Promise<CreateView> {
    const [paths = [], ...others] = groups(imagePaths, (paths) => createQueries(true, id, paths));
    const question = { kind: "create-view", key: id, context };
    const answer = await this.#list(question, (nqn) => createQueries(nqn, id, paths));
    const view = answer === "cut"
      ? await this.#createViewInParts(id, paths, context)
      : this.#createViewOf(id, paths, answer);
    if (answer !== "cut") this.#looks.set(context, answer.connection);
    const files = [...view.files];
    for (const more of others) {
      const question = { kind: "files", key: id, queries: [filesQuery(more)], context };
      files.push(...parseFiles((await this.#exchange.ask(question)).frames[0]!, more));
    }
    return { ...view, files };
  }

  async inventory(context: CallContext): Promise<Inventory> {
    return await this.#inventories.run(context);
  }

  async #readInventory(context: CallContext, onSent: () => void): Promise<Inventory> {
    const question = { kind: "inventory", key: "", context, onSent };
    const answer = await this.#list(question, (nqn) => [allDisksQuery(nqn), resourceQuery]);
    if (answer !== "cut") {
      const { volumes, pools } = parseDisks(answer.frames[0]!);
      return { volumes, pools, upMs: this.#readResource(answer.frames[1]!, answer) };
    }
    const volumes = await this.#volumesInParts("", context);
    const queries = [poolsQuery, resourceQuery];
    const base = await this.#exchange.ask({ kind: "inventory", key: "", queries, context });
    const { pools } = parseDisks(base.frames[0]!);
    return { volumes, pools, upMs: this.#readResource(base.frames[1]!, base) };
  }

  async add(volume: NewVolume, context: CallContext): Promise<MutationOutcome<Inventory>> {
    const { id } = volume;
    const imagePath = imagePathOf(volume.imagePath);
    // Uptime has no room in this command, nor in that of remove: it is carried over from the look before.
    return await this.#mutate({
      kind: "add",
      id,
      statements: addStatements({ ...volume, imagePath }),
      queries: [allDisksQuery(this.#supportsNqn)],
      read: (answer) => {
        const { volumes, pools } = parseDisks(answer.frames[0]!);
        const upMs = this.#uptime.upMsAt(answer);
        const added = volumes.some((volume) => volume.id === id);
        return added && upMs !== undefined ? { volumes, pools, upMs } : undefined;
      },
      readAgain: () => this.inventory(context),
      context,
    });
  }

  async change(
    id: string,
    expectedComment: string,
    change: VolumeChange,
    context: CallContext,
  ): Promise<MutationOutcome<VolumeView>> {
    assertComparable(id, expectedComment);
    if (change.export !== undefined && change.export !== false) this.#assertNqn(id);
    const statements = changeStatements(id, expectedComment, change);
    if (statements.length === 0) return { after: await this.view(id, [], context), refusal: undefined };
    return await this.#mutate({
      kind: "change",
      id,
      statements,
      queries: viewQueries(id, []),
      read: (answer) => this.#viewOf(id, [], answer),
      readAgain: () => this.view(id, [], context),
      context,
    });
  }

  async remove(
    id: string,
    expectedComment: string | undefined,
    imagePath: string,
    context: CallContext,
  ): Promise<MutationOutcome<VolumeView>> {
    if (expectedComment !== undefined) assertComparable(id, expectedComment);
    const paths = [imagePathOf(imagePath)];
    return await this.#mutate({
      kind: "remove",
      id,
      statements: removeStatements(id, expectedComment, paths[0]!),
      // There is no room to ask who else uses the image: that is asked when it is still there.
      queries: [disksQuery(id, []), filesQuery(paths)],
      read: (answer) => {
        const disks = sortDisks(id, [], parseDisks(answer.frames[0]!));
        const upMs = this.#uptime.upMsAt(answer);
        const files = filesOf(paths, answer);
        return upMs === undefined || files.length > 0 ? undefined : { ...disks, files, upMs };
      },
      readAgain: () => this.view(id, paths, context),
      context,
      // A router that has just booted may not show a disk yet, and would give its image away as unused.
      onlyOn: this.#looks.get(context),
    });
  }

  async probe(context: CallContext): Promise<void> {
    const connection = this.#session.connection;
    const atMs = this.#clock.monotonicMs();
    if (this.#probed !== undefined && this.#probed.connection === connection) {
      if (atMs - this.#probed.atMs < this.#probeCacheMs) return;
      // A package comes and goes only with a reboot, which ends the connection: asking for a sign of life is enough.
      const answer = await this.#askProbe([resourceQuery], context);
      if (answer.connection === connection) {
        this.#probed = { connection, atMs };
        return;
      }
    }
    const answer = await this.#askProbe([resourceQuery, packagesQuery], context);
    assertFit(this.#info!, answer.frames[1]!);
    this.#probed = { connection: answer.connection, atMs };
  }

  async #askProbe(queries: readonly Fragment[], context: CallContext): Promise<Answer> {
    const answer = await this.#exchange.ask({ kind: "probe", key: "", queries, context });
    this.#readResource(answer.frames[0]!, answer);
    return answer;
  }

  async #mutate<View>(mutation: Mutation<View>): Promise<MutationOutcome<View>> {
    const { kind, id, statements, context, onlyOn, readAgain } = mutation;
    const whole = fitsOneExec(statements, mutation.queries);
    const queries = whole ? mutation.queries : [resourceQuery];
    const question = { kind, key: id, queries, context, onlyOn };
    const { answer, refusal } = await this.#exchange.tell(statements, question);
    const after = answer !== undefined && whole ? ifReadable(() => mutation.read(answer)) : undefined;
    return { after: after ?? await this.#exchange.settle(readAgain, context), refusal };
  }

  /**
   * Lists disks with the keys that this RouterOS knows. Its version is learnt from any answer; where it was not known,
   * or has changed, the router's refusal of an unknown key is the occasion to ask for it.
   */
  async #list(
    question: Omit<Question, "queries">,
    queriesFor: (supportsNqn: boolean) => readonly Fragment[],
  ): Promise<Answer | "cut"> {
    const assumed = this.#supportsNqn;
    try {
      return await this.#exchange.askOrCut({ ...question, queries: queriesFor(assumed) });
    } catch (error) {
      if (!(error instanceof ReadRefused)) throw error;
      const answer = await this.#exchange.ask({ ...question, queries: [resourceQuery] });
      this.#readResource(answer.frames[0]!, answer);
      if (this.#supportsNqn === assumed) throw error;
    }
    return await this.#exchange.askOrCut({ ...question, queries: queriesFor(this.#supportsNqn) });
  }

  get #supportsNqn(): boolean {
    return this.#info?.supportsNqn ?? true;
  }

  /** The uptime is read last: a reboot in the middle of the list, after which disks come late, shows in it. */
  async #createViewInParts(
    id: string,
    paths: readonly string[],
    context: CallContext,
  ): Promise<CreateView> {
    const volumes = await this.#volumesInParts(id, context);
    const queries = createBaseQueries(id, paths);
    const answer = await this.#exchange.ask({ kind: "create-view", key: id, queries, context });
    return { ...this.#createViewOf(id, paths, answer), volumes };
  }

  #volumesInParts(key: string, context: CallContext): Promise<StoredVolume[]> {
    if (!this.#saidLimited) {
      this.#observer?.warning?.("The router's output is limited: its disks are listed in parts");
    }
    this.#saidLimited = true;
    return listInParts(async (pattern) => {
      const queries = [someDisksQuery(this.#supportsNqn, pattern)];
      const answer = await this.#exchange.askOrCut({ kind: "inventory-part", key, queries, context });
      return answer === "cut" ? undefined : answer.frames[0];
    });
  }

  #viewOf(id: string, paths: readonly string[], answer: Answer): VolumeView {
    const upMs = this.#readResource(answer.frames.at(-1)!, answer);
    return { ...sortDisks(id, paths, parseDisks(answer.frames[0]!)), files: filesOf(paths, answer), upMs };
  }

  #createViewOf(id: string, paths: readonly string[], answer: Answer): CreateView {
    const { volumes, others, pools } = parseDisks(answer.frames[0]!);
    const foreign = others.find((disk) => disk.id === id);
    const upMs = this.#readResource(answer.frames.at(-1)!, answer);
    return { volumes, foreign, pools, files: filesOf(paths, answer), upMs };
  }

  /** Reads the router's own row and remembers what it says; gives the uptime in milliseconds. */
  #readResource(frame: string, answer: Answer): number {
    const { row, upMs } = parseResource(frame);
    this.#info = parseRouterInfo(row);
    this.#uptime.set(upMs, answer);
    return upMs;
  }

  #assertNqn(id: string): void {
    if (this.#info === undefined || this.#info.supportsNqn) return;
    throw new VolumeError(
      "precondition",
      `Cannot export the volume as RouterOS before 7.21 has no NQN of its own for each export, so that a node could ` +
        `not be fenced: volume=${id} version=${this.#info.version}; upgrade the router`,
    );
  }
}
