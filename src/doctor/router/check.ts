import type { Clock, Inventory } from "../../volume/ports/ports.ts";
import type { Fragment } from "../../routeros/console/command.ts";
import type { Finding } from "../../volume/model/finding.ts";

/** What a check may ask of a router that let it in. */
export interface Asking {
  /**
   * Reads something.
   *
   * @param what names it in errors and logs
   * @throws {VolumeError} unavailable when the router refuses or cannot be asked
   */
  read(what: string, query: Fragment): Promise<string>;
  /**
   * Tries a change that changes nothing.
   *
   * @returns the words of the router's refusal; undefined when it took it
   * @throws {VolumeError} unavailable when the router cannot be asked
   */
  attempt(what: string, statement: Fragment): Promise<string | undefined>;
  /**
   * Every file-backed disk, and the mounted pools.
   *
   * @throws {VolumeError} unavailable when the router refuses or cannot be asked
   */
  inventory(): Promise<Inventory>;
}

/** What the driver is going to be told about the router, and what time it is here. */
export interface CheckSettings {
  readonly user: string;
  /** With one leading slash. */
  readonly basePaths: readonly string[];
  /** Hash of the cluster's id; undefined when no id is given. */
  readonly cluster: string | undefined;
  /** Whether publishing without a fence is allowed. */
  readonly allowUnfenced: boolean;
  readonly clock: Clock;
}

/** One thing to look at on the router itself. It asks, and leaves the judgement to a function without side effects. */
export interface RouterCheck {
  readonly name: string;
  /** Whether it is a problem when it cannot be asked: nothing else would show what it looks for. */
  readonly essential: boolean;
  /** @throws {VolumeError} unavailable when the router refuses or cannot be asked */
  run(router: Asking, settings: CheckSettings): Promise<readonly Finding[]>;
}
