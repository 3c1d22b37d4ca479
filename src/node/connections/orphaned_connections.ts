import { describeUser } from "../../volume/model/host/device_user.ts";
import { parseEpoch } from "../../volume/model/epoch.ts";
import { isOfHost } from "../../volume/rules/fence.ts";
import { parseExportNqn } from "../../volume/model/nqn.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { usersOf } from "../../volume/rules/host/device_users.ts";
import type { NodeDeps, VolumeLock } from "../deps.ts";

/**
 * Connections under this driver's prefix that have no state file: a state folder was lost, or another program made
 * them. A connection that existed when the driver started is dropped if this node certainly made it and it is certainly
 * unused. Any other is only reported.
 *
 * The driver writes a state file before it connects. So a later connection without a state file was made by a person,
 * who may be saving data.
 */
export class OrphanedConnections {
  readonly #deps: NodeDeps;
  readonly #lock: VolumeLock;
  #atStart: ReadonlySet<string> | undefined;
  #reported = new Map<string, string>();

  constructor(deps: NodeDeps, lock: VolumeLock) {
    this.#deps = deps;
    this.#lock = lock;
  }

  /** Checks all connections, and drops those that may be dropped. Returns the NQNs that were connected. */
  async check(context: CallContext): Promise<readonly string[]> {
    const known = new Set(await this.#deps.stagingStore.ids());
    const connected = await this.#deps.connector.connected(context);
    const orphans = connected.filter((nqn) => !known.has(this.#split(nqn).volumeId));
    this.#atStart ??= new Set(orphans);
    const reported = new Map<string, string>();
    for (const nqn of orphans) {
      const why = await this.#drop(nqn, context);
      if (why === undefined) continue;
      reported.set(nqn, why);
      if (this.#reported.get(nqn) !== why) {
        this.#deps.notes?.warn("left an unknown connection alone", { nqn, why });
      }
    }
    this.#reported = reported;
    return connected;
  }

  /** Drops the connection, or returns why it stays. */
  async #drop(nqn: string, context: CallContext): Promise<string | undefined> {
    const { volumeId, hasEpoch } = this.#split(nqn);
    if (!hasEpoch) return "it has no epoch: the legacy driver may have made it";
    if (this.#atStart?.has(nqn) !== true) return "it was made since this driver started, and not by it";
    const release = this.#lock.tryTake([volumeId]);
    if (release === undefined) return "a call is changing the volume";
    try {
      if ((await this.#deps.stagingStore.ids()).includes(volumeId)) return undefined;
      const use = await this.#use(nqn, context);
      if (use !== undefined) return use;
      this.#deps.notes?.warn("dropping an unknown connection that is unused", { nqn });
      await this.#deps.connector.disconnect(nqn, context);
      return undefined;
    } finally {
      release();
    }
  }

  /** Returns why the connection has to stay; undefined when this node made it and its device is unused. */
  async #use(nqn: string, context: CallContext): Promise<string | undefined> {
    const { connector } = this.#deps;
    const connections = await connector.connections(nqn, context);
    if (!connections.every((path) => isOfHost(path, connector.host))) return "another host made it";
    const device = await connector.find(nqn, context);
    if (device === undefined) return "it has no device to check";
    const [user] = await usersOf(this.#deps, device, "unused", context);
    return user === undefined ? undefined : describeUser(user).words;
  }

  #split(nqn: string): { readonly volumeId: string; readonly hasEpoch: boolean } {
    const { nqnPrefix } = this.#deps.settings;
    const name = parseExportNqn(nqn, nqnPrefix);
    // A connection with an unreadable name is reported, never dropped.
    if (name === undefined) return { volumeId: nqn.slice(nqnPrefix.length + 1), hasEpoch: false };
    return { volumeId: name.volumeId, hasEpoch: parseEpoch(name.epoch) !== undefined };
  }
}
