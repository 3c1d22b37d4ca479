import { limitCall, type LimitedCall } from "../../async/deadline.ts";
import { VolumeError } from "../../volume/errors.ts";
import { Exchange } from "../../routeros/console/exchange.ts";
import type { RouterProfile } from "../../router_profile/profile.ts";
import type { Session } from "../../routeros/ssh/session.ts";
import { resourceQuery } from "../../routeros/store/queries.ts";
import { RouterVolumeStore } from "../../routeros/store/volume_store.ts";
import type { CallContext, Clock, Random } from "../../volume/ports/system.ts";
import type { HardwareReading } from "../../volume/model/health/hardware.ts";
import type { Inventory } from "../../volume/model/inventory.ts";
import { namesById, parsePlates, platesFolder } from "../../volume/model/name_plates.ts";
import type { Fragment } from "../../routeros/console/command.ts";
import type { Finding } from "../../volume/model/finding.ts";

/** The options of a {@linkcode RouterClient}. */
interface RouterClientOptions {
  readonly session: Session;
  readonly clock: Clock;
  readonly random: Random;
  /** The context of every command. */
  readonly context: CallContext;
}

/** How long the router may take to report the health of its drives, in milliseconds: a dying one may keep it busy. */
const hardwareMs = 20_000;

/** How long it may take to list the name plates, in milliseconds: they are for people alone. */
const namesMs = 10_000;

/** Sends commands to a router over one session. */
export class RouterClient {
  readonly #exchange: Exchange;
  readonly #store: RouterVolumeStore;
  readonly #context: CallContext;
  readonly #clock: Clock;

  constructor(options: RouterClientOptions) {
    this.#exchange = new Exchange(options);
    this.#store = new RouterVolumeStore(options);
    this.#context = options.context;
    this.#clock = options.clock;
  }

  /**
   * Reads the result of a query.
   *
   * @param what names it in errors and logs
   * @throws {VolumeError} unavailable when the router refuses or cannot be asked
   */
  async read(what: string, query: Fragment): Promise<string> {
    return (await this.readAll(what, [query]))[0]!;
  }

  /**
   * Reads the results of several queries in one command.
   *
   * @throws {VolumeError} unavailable when the router refuses one of them, or cannot be asked
   */
  async readAll(what: string, queries: readonly Fragment[]): Promise<readonly string[]> {
    const question = { kind: what, key: "", queries, context: this.#context };
    return (await this.#exchange.ask(question)).frames;
  }

  /**
   * Tries a change that changes nothing.
   *
   * @returns the router's refusal; undefined when it accepted the change
   * @throws {VolumeError} unavailable when the router cannot be asked
   */
  async attempt(what: string, statement: Fragment): Promise<string | undefined> {
    const question = { kind: what, key: "", queries: [resourceQuery], context: this.#context };
    const { answer, refusal } = await this.#exchange.exec([statement], question);
    return answer === undefined ? refusal ?? "it did not answer" : undefined;
  }

  /**
   * Every file-backed disk, and the mounted pools.
   *
   * @throws {VolumeError} unavailable when the router refuses or cannot be asked
   */
  inventory(): Promise<Inventory> {
    return this.#store.inventory(this.#context);
  }

  /**
   * Arrays and drives, see `HardwareReader`.
   *
   * @throws {VolumeError} unavailable when the router cannot be asked
   */
  async drives(): Promise<HardwareReading["disks"]> {
    using limited = this.#limited();
    return (await this.#store.drives(limited.context)).disks;
  }

  /**
   * Btrfs file systems, see `HardwareReader`.
   *
   * @throws {VolumeError} unavailable when the router cannot be asked
   */
  async filesystems(disks: HardwareReading["disks"]): Promise<HardwareReading["filesystems"]> {
    using limited = this.#limited();
    return await this.#store.filesystems(disks, limited.context);
  }

  #limited(): LimitedCall {
    const late = new VolumeError("unavailable", `the router did not answer within ${hardwareMs / 1000} s`);
    return limitCall(this.#clock, this.#context, hardwareMs, late);
  }

  /**
   * What people call the volumes and snapshots of a cluster, by id, after its name plates. Empty where they cannot be read, or
   * not soon.
   *
   * @throws {VolumeError} cancelled, deadline when the call ends
   */
  async names(cluster: string, basePaths: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const late = new VolumeError("unavailable", `the router did not answer within ${namesMs / 1000} s`);
    using limited = limitCall(this.#clock, { ...this.#context, aside: true }, namesMs, late);
    try {
      const { files } = await this.#store.files(platesFolder(cluster), limited.context);
      return namesById(parsePlates(files, cluster, basePaths));
    } catch (error) {
      this.#context.signal.throwIfAborted();
      if (!VolumeError.is(error)) throw error;
      return new Map();
    }
  }
}

/** The driver's settings for the router, and this machine's clock. */
export interface CheckSettings {
  readonly user: string;
  /** What its volumes are. @default {"block"} */
  readonly kind?: "block" | "directory" | undefined;
  /** The TCP port of the exports. */
  readonly nvmePort: number;
  /** Where nodes reach them, several separated by commas. @default {""} */
  readonly nvmeAddress?: string;
  /** With one leading slash. */
  readonly basePaths: readonly string[];
  /** Hash of the cluster's id; undefined when no id is given. */
  readonly cluster: string | undefined;
  /** How much of a pool may be promised; 1 is exactly its size. */
  readonly overcommit: number;
  /** What the driver is told of the router. */
  readonly profile?: RouterProfile | undefined;
  readonly clock: Clock;
}

/** One check on the router itself. It reads, and leaves the judgement to a function without side effects. */
export interface RouterCheck {
  readonly name: string;
  /** Whether a failed read is a problem: nothing else would find what it checks. */
  readonly essential: boolean;
  /** Whether its warnings and problems name volumes: people's names for them are put behind their ids. */
  readonly namesVolumes?: true;
  /** @throws {VolumeError} unavailable when the router refuses or cannot be asked */
  run(router: RouterClient, settings: CheckSettings): Promise<readonly Finding[]>;
}
