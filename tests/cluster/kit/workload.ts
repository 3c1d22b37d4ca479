import assert from "node:assert/strict";
import type { Api, KubeObject } from "./api.ts";
import {
  type Attachment,
  type Claim,
  type Event,
  type Node,
  paths,
  type Pod,
  type Snapshot,
  type VolumeMode,
} from "./objects.ts";
import { until } from "./waiting.ts";

/** Default time limit for waiting for one condition, in seconds. */
const timeoutSeconds = 180;

const unschedulableTaint = "node.kubernetes.io/unschedulable";
const outOfService = {
  key: "node.kubernetes.io/out-of-service",
  value: "nodeshutdown",
  effect: "NoExecute",
};

/** The location of a container. */
interface Container {
  readonly node: string;
  readonly id: string;
}

/** The cluster of a workload. */
export interface WorkloadCluster {
  readonly api: Api;
  /** A node by its name, which runs scripts in containers. */
  node(name: string): { readonly runtime: { exec(container: string, script: string): Promise<string> } };
  /** The programs of the control plane that have ended unexpectedly. */
  fallen(): Promise<readonly string[]>;
}

/** A person's actions in a cluster: makes objects, and waits for their effects. */
export class Workload {
  readonly #cluster: WorkloadCluster;
  readonly #signal: AbortSignal;
  /** Containers by the names of their pods, for when the API is not available. */
  readonly #known = new Map<string, Container>();

  constructor(cluster: WorkloadCluster, signal: AbortSignal) {
    this.#cluster = cluster;
    this.#signal = signal;
  }

  /** Adds an object to a collection. */
  async create(path: string, object: object): Promise<void> {
    await this.#cluster.api.create(path, object);
  }

  /** Waits until a claim is bound; returns its PersistentVolume's name. */
  bound(claim: string): Promise<string> {
    return this.#wait(`claim ${claim} to be bound`, async () => {
      const { spec, status } = await this.#cluster.api.get<Claim>(`${paths.claims}/${claim}`);
      return status.phase === "Bound" && spec.volumeName;
    }, claim);
  }

  /** Waits until a pod runs; returns the name of its node. */
  running(pod: string, limitSeconds?: number): Promise<string> {
    return this.#wait(
      `pod ${pod} to run`,
      async () => {
        const { spec, status } = await this.#cluster.api.get<Pod>(`${paths.pods}/${pod}`);
        return status.phase === "Running" && status.containerStatuses?.[0]?.containerID !== undefined &&
          spec.nodeName;
      },
      pod,
      limitSeconds,
    );
  }

  /** Waits until a snapshot can be used. */
  async snapshotReady(name: string): Promise<void> {
    await this.#wait(`snapshot ${name} to be ready`, async () => {
      const { status } = await this.#cluster.api.get<Snapshot>(`${paths.snapshots}/${name}`);
      return status?.readyToUse === true;
    }, name);
  }

  /** Changes a claim's request to so many MiB, and waits until the node has grown the volume too. */
  async expand(claim: string, mebibytes: number): Promise<void> {
    const storage = `${mebibytes}Mi`;
    const spec = { resources: { requests: { storage } } };
    await this.#cluster.api.patch(`${paths.claims}/${claim}`, { spec });
    await this.#wait(`claim ${claim} to have ${storage}`, async () => {
      const { status } = await this.#cluster.api.get<Claim>(`${paths.claims}/${claim}`);
      return parseMebibytes(status.capacity?.storage) >= mebibytes && (status.conditions ?? []).length === 0;
    }, claim);
  }

  /** Runs a shell script in a pod and returns what it printed; throws unless it succeeds. */
  async exec(pod: string, script: string): Promise<string> {
    const { node, id } = this.#known.get(pod) ?? await this.#container(pod);
    return await this.#cluster.node(node).runtime.exec(id, script);
  }

  /** Remembers a pod's container, so that scripts run in it while there is no API. */
  async remember(pod: string): Promise<void> {
    this.#known.set(pod, await this.#container(pod));
  }

  /** How often a pod's container was started again. */
  async restarts(pod: string): Promise<number> {
    const { status } = await this.#cluster.api.get<Pod>(`${paths.pods}/${pod}`);
    return status.containerStatuses?.[0]?.restartCount ?? NaN;
  }

  async #container(pod: string): Promise<Container> {
    const { spec, status } = await this.#cluster.api.get<Pod>(`${paths.pods}/${pod}`);
    const id = status.containerStatuses?.[0]?.containerID?.replace("containerd://", "");
    assert(id !== undefined && spec.nodeName !== undefined, `pod ${pod} does not run`);
    return { node: spec.nodeName, id };
  }

  /** Requests the deletion of objects of a collection, and waits until they are gone. */
  async remove(path: string, ...names: readonly string[]): Promise<void> {
    await Promise.all(names.map((name) => this.#cluster.api.remove(`${path}/${name}`)));
    for (const name of names) await this.gone(path, (object) => object.metadata.name === name, name);
  }

  /** Waits until a collection has no such object. */
  async gone(path: string, isMeant: (object: KubeObject) => boolean = () => true, about = ""): Promise<void> {
    await this.#wait(`nothing to be left at ${path}`, async () => {
      return !(await this.#cluster.api.list(path)).some(isMeant);
    }, about);
  }

  /** Prevents new pods from being scheduled to a node, or allows it again. */
  async cordon(node: string, unschedulable: boolean): Promise<void> {
    await this.#cluster.api.patch(`${paths.nodes}/${node}`, { spec: { unschedulable } });
    await this.#wait(`the taint of ${node}`, async () => {
      const { spec } = await this.#cluster.api.get<Node>(`${paths.nodes}/${node}`);
      return (spec.taints ?? []).some(({ key }) => key === unschedulableTaint) === unschedulable;
    }, node);
  }

  /** Says that a node is gone for good, as a person does. */
  async setOutOfService(node: string): Promise<void> {
    const path = `${paths.nodes}/${node}`;
    const { spec } = await this.#cluster.api.get<Node>(path);
    await this.#cluster.api.patch(path, { spec: { taints: [...spec.taints ?? [], outOfService] } });
  }

  /** Waits until a node counts as gone, because it does not answer. */
  async notReady(node: string): Promise<void> {
    await this.#wait(`node ${node} to count as gone`, async () => {
      const { status } = await this.#cluster.api.get<Node>(`${paths.nodes}/${node}`);
      return !status.conditions?.some(({ type, status }) => type === "Ready" && status === "True");
    }, node);
  }

  /** The present VolumeAttachments. */
  attachments(): Promise<readonly Attachment[]> {
    return this.#cluster.api.list<Attachment>(paths.attachments);
  }

  /** Waits for a result that is neither undefined nor false; the error contains the events about `about`. */
  #wait<T>(
    what: string,
    ask: () => Promise<T | undefined | false>,
    about: string,
    limitSeconds = timeoutSeconds,
  ): Promise<T> {
    const state = () => this.eventsAbout(about);
    return until(what, ask, { limitSeconds, everyMs: 300, signal: this.#signal, state });
  }

  /** The last problems, for people. */
  async trouble(): Promise<string> {
    const events = await this.#cluster.api.list<Event>(paths.events);
    const reported = events.filter(({ type }) => type === "Warning")
      .map(({ reason, message, involvedObject }) => `\n  ${involvedObject.name}: ${reason}: ${message}`);
    return [...reported.slice(-10), ...await this.#cluster.fallen()].join("\n");
  }

  /** The last events about an object, for people. */
  async eventsAbout(name: string): Promise<string> {
    const events = await this.#cluster.api.list<Event>(paths.events);
    const reported = events.filter(({ involvedObject }) => involvedObject.name === name)
      .map(({ reason, message }) => `\n  ${reason}: ${message}`);
    return [...reported.slice(-10), ...await this.#cluster.fallen()].join("\n");
  }
}

/** A quantity such as `1Gi` in MiB; NaN for an invalid one. */
export function parseMebibytes(quantity = ""): number {
  const [, digits, unit = ""] = /^(\d+)(|Ki|Mi|Gi|Ti)$/.exec(quantity) ?? [];
  const bytes = { "": 2 ** -20, "Ki": 2 ** -10, "Mi": 1, "Gi": 2 ** 10, "Ti": 2 ** 20 };
  return Number(digits ?? NaN) * bytes[unit as keyof typeof bytes];
}

/** The use of a volume of that mode in a pod, for {@linkcode podOf}. */
export function uses(mode: VolumeMode, claim: string) {
  return mode === "Block" ? { devices: [claim] } : { filesystems: [claim] };
}
