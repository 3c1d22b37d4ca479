import { paths, type Pod } from "../../../cluster/kit/objects.ts";
import { until } from "../../../cluster/kit/waiting.ts";
import type { Workload } from "../../../cluster/kit/workload.ts";
import type { MachineCluster } from "../../machine/cluster.ts";

/**
 * Longest until a pod runs, in seconds: in emulation each program of the kubelet and of the driver starts slowly, and the
 * kubelet waits for up to two minutes before it tries again.
 */
export const startSeconds = 600;

/** A StatefulSet with one pod, whose volumes come and go with it. */
export class OnePodSet {
  readonly name: string;
  readonly pod: string;
  readonly #cluster: MachineCluster;
  readonly #work: Workload;
  readonly #signal: AbortSignal;

  constructor(name: string, cluster: MachineCluster, work: Workload, signal: AbortSignal) {
    this.name = name;
    this.pod = `${name}-0`;
    this.#cluster = cluster;
    this.#work = work;
    this.#signal = signal;
  }

  /** The claim of its pod for a volume. */
  claim(volume: string): string {
    return `${volume}-${this.pod}`;
  }

  /** Waits until the pod runs, which the API does not have at once. */
  async runs(): Promise<void> {
    await until(`the pod ${this.pod}`, () => this.#cluster.api.find<Pod>(`${paths.pods}/${this.pod}`), {
      limitSeconds: startSeconds,
      signal: this.#signal,
    });
    await this.#work.running(this.pod, startSeconds);
  }

  /** Takes the pod away, with all its volumes, or brings it back. */
  async scale(replicas: 0 | 1): Promise<void> {
    await this.#cluster.api.patch(`${paths.statefulSets}/${this.name}`, { spec: { replicas } });
    if (replicas === 1) return await this.runs();
    await this.#work.gone(paths.pods);
    await this.attached(0);
  }

  /** Waits until only so many volumes are attached: the kubelet has unstaged all others. */
  async attached(count: number): Promise<void> {
    await attached(this.#work, count, this.#signal);
  }
}

/** Waits until only so many volumes are attached: the kubelets have unstaged all others. */
export async function attached(work: Workload, count: number, signal: AbortSignal): Promise<void> {
  await until(`${count} volumes to be attached`, async () => (await work.attachments()).length === count, {
    limitSeconds: startSeconds,
    everyMs: 500,
    signal,
    state: async () => JSON.stringify((await work.attachments()).map(({ spec }) => spec)),
  });
}
