import type { Holder } from "../../src/volume/model/record.ts";
import { nodeDigest } from "../../src/volume/model/record.ts";
import { anyPair, type DetachedNodes, type MigrationPairs } from "../../src/volume/ports/cluster_ports.ts";
import {
  type ClusterNode,
  reasonAgainstDetached,
  reasonKubeletIsSilent,
} from "../../src/volume/rules/detached_nodes.ts";
import { type ClaimUser, reasonAgainstPair } from "../../src/volume/rules/migration_pairs.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import type { FakeClock } from "../fakes/clock.ts";
import type { ClusterObjects } from "./cluster_objects.ts";
import type { HistoryEvent } from "./events.ts";
import type { Process } from "./process.ts";
import type { PodStep } from "./schedule.ts";

/** What a kubelet has last reported of its node. */
interface Report {
  readonly atMs: number;
  readonly volumesInUse: readonly string[];
}

/** The parts that these objects come from. */
export interface SharedParts {
  readonly clock: FakeClock;
  readonly objects: ClusterObjects;
  readonly nodeNames: readonly string[];
  /** Whether only pods of one virtual machine let two nodes share a volume. */
  readonly pairs: boolean;
  /** The volumes that a node's kubelet uses now; undefined while it does not reach the API server. */
  readonly usedOn: (node: string) => readonly string[] | undefined;
  readonly record: (event: HistoryEvent) => void;
}

/** After how long without a report a Node is not ready, in milliseconds. */
const notReadyMs = 40_000;

/**
 * The cluster's objects by which two nodes may share a volume: the pods of one virtual machine that uses it, and what kubelets
 * report. They are read as the product reads them, and judged by its rules.
 */
export class SharedVolumes {
  readonly #parts: SharedParts;
  /** The pods of the virtual machine of each volume, by `volume node`, and whether they have ended. */
  readonly #pods = new Map<string, boolean>();
  readonly #reports = new Map<string, Report>();

  constructor(volumeIds: readonly string[], parts: SharedParts) {
    this.#parts = parts;
    for (const of of volumeIds) parts.record({ kind: "pods", of, nodes: [], pairs: parts.pairs });
  }

  /** A pod of the volume's virtual machine starts on a node, ends there, or is removed. */
  pod(of: string, { node, what }: PodStep): void {
    const key = `${of} ${node}`;
    if (what === "runs") this.#pods.set(key, false);
    else if (what === "gone") this.#pods.delete(key);
    else if (this.#pods.has(key)) this.#pods.set(key, true);
    const nodes = this.#parts.nodeNames.filter((name) => this.#pods.get(`${of} ${name}`) === false);
    this.#parts.record({ kind: "pods", of, nodes, pairs: this.#parts.pairs });
  }

  /** Kubelets report what they use. */
  report(): void {
    for (const node of this.#parts.nodeNames) {
      const volumesInUse = this.#parts.usedOn(node);
      if (volumesInUse !== undefined) {
        this.#reports.set(node, { atMs: this.#parts.clock.now(), volumesInUse });
      }
    }
  }

  /** Which nodes may share a volume, as a process reads it. */
  pairsFor(process: Process): MigrationPairs {
    if (!this.#parts.pairs) return anyPair;
    return {
      reasonAgainst: async ({ volumeId, nodeId, holders }, signal) => {
        await this.#parts.objects.ask(process, signal);
        const reason = this.#reasonAgainst(volumeId, nodeId, holders);
        await process.alive();
        return reason;
      },
    };
  }

  /** What is known of nodes that have left a volume, as a process reads it. */
  detachedNodesFor(process: Process): DetachedNodes {
    return {
      reasonAgainst: async ({ volumeId, nodeDigest: digest, sinceSeconds, machine }, signal) => {
        const { objects, nodeNames, clock } = this.#parts;
        try {
          await objects.ask(process, signal);
        } catch (error) {
          if (!VolumeError.is(error)) throw error;
          return "the cluster does not say whether it uses the volume";
        }
        const name = nodeNames.find((one) => nodeDigest(one) === digest)!;
        const reason = reasonAgainstDetached({
          ...sinceSeconds && { sinceSeconds },
          ...machine && { machine },
        }, {
          nodeNames: [name],
          node: this.#node(name),
          isAttached: objects.hasAttachment(volumeId, name),
          volumeInUse: volumeId,
          nowSeconds: Math.floor(clock.now() / 1000),
        });
        await process.alive();
        return reason;
      },
    };
  }

  #reasonAgainst(volumeId: string, nodeId: string, holders: readonly Holder[]): string | undefined {
    const { nodeNames, clock } = this.#parts;
    const users = nodeNames.flatMap((nodeName): ClaimUser[] => {
      const hasEnded = this.#pods.get(`${volumeId} ${nodeName}`);
      if (hasEnded === undefined) return [];
      const name = `virt-launcher-${nodeName}`;
      return [{ name, uid: name, nodeName, usesClaim: !hasEnded, hasEnded, machine: "vm", owners: [] }];
    });
    const nodes = [...holders.map((one) => one.nodeId), nodeId].map((id) => ({
      nodeId: id,
      nodeNames: [id],
    }));
    const reason = reasonAgainstPair(users, nodes);
    if (reason !== undefined) return reason;
    const nowSeconds = Math.floor(clock.now() / 1000);
    return holders.map(({ nodeId: name, machine }) =>
      reasonKubeletIsSilent({ name, node: this.#node(name), machine, nowSeconds })
    ).find((silent) => silent !== undefined);
  }

  #node(name: string): ClusterNode {
    const { atMs, volumesInUse } = this.#reports.get(name)!;
    return {
      createdSeconds: 0,
      machine: undefined,
      isReady: this.#parts.clock.now() - atMs < notReadyMs,
      heartbeatSeconds: Math.floor(atMs / 1000),
      isOutOfService: false,
      volumesInUse,
    };
  }
}
