import { messageOf } from "../volume/error_messages.ts";
import type { Clock } from "../volume/ports/system.ts";
import { ApiError, type KubernetesApi } from "./api.ts";
import { csiNodesPath, listKept, type Metadata, parseCsiNode, type RawCsiNode } from "./objects.ts";

/** A taint with all its fields: it is written back as it was read. */
interface RawTaint {
  readonly key?: string;
}

interface RawNode {
  readonly metadata?: Metadata;
  readonly spec?: { readonly taints?: readonly RawTaint[] };
}

/** The needed fields of a node, which is a large object. */
interface TaintedNode {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly taints: readonly RawTaint[];
}

/** Options of {@linkcode StartupTaint}. */
export interface StartupTaintOptions {
  readonly api: KubernetesApi;
  readonly clock: Clock;
  readonly driverName: string;
  /** Key of the taint, of any value and effect. */
  readonly key: string;
  /** Receives warnings for an operator. */
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** Receives information about normal operation. */
  readonly report: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

const nodesPath = "/api/v1/nodes";

/** How often CSINodes are listed, and how often nodes without the taint are checked again, in milliseconds. */
const passMs = 5_000;
const againMs = 5 * 60_000;

/** How often to read a node again after a conflicting change. */
const maxReads = 5;

/**
 * Removes a taint from nodes once this driver is registered there, according to their CSINodes. Node provisioners set
 * the taint, so that no pod that needs a volume is scheduled before the driver is ready.
 */
export class StartupTaint {
  readonly #options: StartupTaintOptions;
  /** Uids of nodes on which nothing is left to do. */
  readonly #clean = new Set<string>();
  #cleanSinceMs = -Infinity;
  #complaint: string | undefined;

  constructor(options: StartupTaintOptions) {
    this.#options = options;
  }

  /** Runs until the signal ends it. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      await this.pass(signal);
      await clock.sleep(passMs, signal).catch(() => {
        // Only the signal ends a sleep, and the loop checks it.
      });
    }
  }

  /** Checks once. A failure is logged, and left to the next time. */
  async pass(signal: AbortSignal): Promise<void> {
    try {
      await this.#check(signal);
      this.#complaint = undefined;
    } catch (error) {
      if (signal.aborted) return;
      const reason = messageOf(error);
      if (reason !== this.#complaint) {
        this.#options.warn("cannot remove the start-up taint from nodes; retrying", {
          taint: this.#options.key,
          reason,
        });
      }
      this.#complaint = reason;
    }
  }

  /** Nodes are large, and change all the time: they are listed only when there is one that was not checked. */
  async #check(signal: AbortSignal): Promise<void> {
    const { api, clock } = this.#options;
    const registered = await this.#listRegistered(signal);
    const uids = new Set(registered.values());
    this.#forget(uids, clock.monotonicMs());
    if (uids.isSubsetOf(this.#clean)) return;
    const nodes = await listKept(api, { path: nodesPath, signal }, (raw: RawNode) => {
      const node = parseNode(raw);
      return registered.get(node.name) === node.uid ? node : undefined;
    });
    // A node that is gone never comes back: another node of that name has another uid.
    const there = new Set(nodes.map(({ uid }) => uid));
    for (const uid of uids) if (!there.has(uid)) this.#clean.add(uid);
    const failures: unknown[] = [];
    for (const node of nodes) {
      try {
        await this.#cleanse(node, signal);
      } catch (error) {
        signal.throwIfAborted();
        failures.push(error);
      }
    }
    // A node that cannot be changed does not delay the others.
    if (failures.length > 0) throw failures[0];
  }

  #forget(registered: ReadonlySet<string>, nowMs: number): void {
    if (nowMs - this.#cleanSinceMs >= againMs) {
      this.#clean.clear();
      this.#cleanSinceMs = nowMs;
    }
    for (const uid of this.#clean) if (!registered.has(uid)) this.#clean.delete(uid);
  }

  /** Nodes by name, with the uid of the registered Node: another one may have taken the name since. */
  async #listRegistered(signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
    const { api, driverName } = this.#options;
    const pairs = await listKept(api, { path: csiNodesPath, signal }, (raw: RawCsiNode) => {
      const { name, nodeUid } = parseCsiNode(raw, driverName) ?? {};
      return name && nodeUid !== undefined ? [name, nodeUid] as const : undefined;
    });
    return new Map(pairs);
  }

  /** Writes the other taints back unchanged, and only over the state that was read. */
  async #cleanse(read: TaintedNode, signal: AbortSignal): Promise<void> {
    const { api, key, report } = this.#options;
    const { name, uid } = read;
    const path = `${nodesPath}/${name}`;
    let node = read;
    for (let reads = 1; node.uid === uid; reads++) {
      const others = node.taints.filter((taint) => taint.key !== key);
      if (others.length === node.taints.length) {
        this.#clean.add(uid);
        return;
      }
      const metadata = { uid, resourceVersion: node.resourceVersion };
      const body = { metadata, spec: { taints: others.length === 0 ? null : others } };
      try {
        await api.request({ method: "PATCH", path, body, signal });
        this.#clean.add(uid);
        report("removed the start-up taint from a node", { node: name, taint: key });
        return;
      } catch (error) {
        if (ApiError.is(error, 404)) return;
        if (!ApiError.is(error, 409) || reads === maxReads) throw error;
      }
      node = parseNode(await api.request<RawNode>({ method: "GET", path, signal }));
    }
  }
}

function parseNode({ metadata = {}, spec }: RawNode): TaintedNode {
  const { name = "", uid = "", resourceVersion = "" } = metadata;
  return { name, uid, resourceVersion, taints: spec?.taints ?? [] };
}
