import assert from "node:assert/strict";
import { findLeftovers } from "../../sanity/leftovers.ts";
import type { Cluster } from "./cluster.ts";
import { type Attachment, paths, type Pod, statefulSetOf } from "./objects.ts";
import { allShown } from "./attachments.ts";
import { until } from "./waiting.ts";
import { Workload } from "./workload.ts";

/** Pods that write to raw block volumes all the time, and report what they found there when they began. */
export class Writers {
  readonly names: readonly string[];
  readonly #cluster: Cluster;
  readonly #signal: AbortSignal;
  readonly #work: Workload;

  constructor(cluster: Cluster, count: number, signal: AbortSignal) {
    this.names = Array.from({ length: count }, (_, index) => `writer-${index}`);
    this.#cluster = cluster;
    this.#signal = signal;
    this.#work = new Workload(cluster, signal);
  }

  /** Their number. */
  get count(): number {
    return this.names.length;
  }

  /** Makes them, with a volume each. */
  async create(): Promise<void> {
    const data = { mode: "Block", mebibytes: 1024, storageClass: "rds-ext4" } as const;
    await this.#work.create(paths.statefulSets, statefulSetOf("writer", this.count, writing, { data }));
  }

  /** Prevents new pods from being scheduled to a node, or allows it again. */
  cordon(node: string, unschedulable: boolean): Promise<void> {
    return this.#work.cordon(node, unschedulable);
  }

  /** Evicts all, as draining their node does. */
  async evict(): Promise<void> {
    await Promise.all(this.names.map((name) => {
      const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name } };
      return this.#cluster.api.create(`${paths.pods}/${name}/eviction`, eviction);
    }));
  }

  /** Waits until all run on a node. */
  async runAt(node: string): Promise<void> {
    const run = async () =>
      (await this.pods()).filter(({ metadata, spec, status }) =>
        spec.nodeName === node && status.phase === "Running" && metadata.deletionTimestamp === undefined
      ).length;
    await until(`${this.count} pods to run at ${node}`, async () => await run() === this.count, {
      limitSeconds: 400,
      everyMs: 500,
      signal: this.#signal,
      state: async () => `${await run()} do; ${await this.#work.trouble()}`,
    });
  }

  /** Waits until each of these pods runs in another container. */
  async begunAnew(former: readonly string[]): Promise<void> {
    const same = async () => {
      const pods = (await this.pods()).filter(({ status }) => status.phase === "Running");
      return this.count - identities(pods).filter((one) => !former.includes(one)).length;
    };
    await until("every pod to run in another container", async () => await same() === 0, {
      limitSeconds: 400,
      everyMs: 500,
      signal: this.#signal,
      state: async () => `${await same()} do not; ${await this.#work.trouble()}`,
    });
  }

  /** Asserts that each pod has found its last write, has written at least so often, and goes on writing. */
  async compare(before: readonly number[]): Promise<void> {
    await this.progress();
    const found = await Promise.all(this.names.map((name) => this.#work.exec(name, "cat /tmp/found")));
    for (const [index, name] of this.names.entries()) {
      const [, who, count] = /^(\S+) (\d+)$/.exec(found[index]!) ?? [];
      assert.equal(who, name, `${name} found what another pod wrote: ${found[index]}`);
      assert(
        Number(count) >= before[index]!,
        `${name} had written ${before[index]} times and found ${count}`,
      );
    }
  }

  /** Asserts that a node has none of the volumes, and that they are attached only where the pods are. */
  async assertLeft(node: string): Promise<string> {
    const { kubelet } = this.#cluster.node(node);
    const left = async () => {
      const { mounts, loops } = await findLeftovers(kubelet.location.folder);
      return [...mounts, ...loops];
    };
    await until(`${node} to be rid of its volumes`, async () => (await left()).length === 0, {
      limitSeconds: 60,
      signal: this.#signal,
      state: async () => (await left()).join(", "),
    });
    const attachments = await this.#cluster.api.list<Attachment>(paths.attachments);
    assert.equal(attachments.length, this.count);
    assert(attachments.every(({ spec }) => spec.nodeName !== node), "a volume is still attached there");
    await allShown(this.#cluster, this.#signal);
    return "no mount, loop device, attachment; the volumes' objects say so too";
  }

  /** Deletes them and their volumes. */
  async remove(): Promise<void> {
    await this.#work.remove(paths.statefulSets, "writer");
    await this.#work.gone(paths.pods);
    await this.#work.gone(paths.attachments);
    await this.#work.remove(paths.claims, ...this.names.map((name) => `data-${name}`));
    await this.#work.gone(paths.volumes);
  }

  /** Their present pods. */
  pods(): Promise<readonly Pod[]> {
    return this.#cluster.api.list<Pod>(paths.pods);
  }

  /** How often each pod has written; each has written once more before this resolves. */
  async progress(): Promise<number[]> {
    const read = async (name: string) =>
      Number(await this.#work.exec(name, "cat /tmp/count 2>/dev/null || echo 0"));
    const before = await Promise.all(this.names.map(read));
    return await Promise.all(this.names.map(async (name, index) => {
      let count = before[index]!;
      await until(`${name} to write once more`, async () => (count = await read(name)) > before[index]!, {
        limitSeconds: 60,
        everyMs: 500,
        signal: this.#signal,
      });
      return count;
    }));
  }
}

/** Values that change when a pod is replaced or restarted. */
export function identities(pods: readonly Pod[]): string[] {
  return pods.map(({ metadata, status }) =>
    `${metadata.name} ${metadata.uid} ${status.containerStatuses?.[0]?.containerID}`
  ).toSorted();
}

/**
 * Keeps the content of the first block, then writes its own name and the number of its writes there, reads that back
 * past the cache, and counts. A wrong read ends the pod's container.
 */
const writing = `set -e
read_block() { dd if=/dev/data bs=4096 count=1 iflag=direct 2>/dev/null | tr -d '\\000' | head -n 1; }
found=$(read_block)
echo "$found" >/tmp/found
n=\${found##* }
n=\${n:-0}
while :; do
  n=$((n + 1))
  echo "$POD_NAME $n" | dd of=/dev/data bs=4096 conv=notrunc,fsync,sync 2>/dev/null
  [ "$(read_block)" = "$POD_NAME $n" ]
  echo $n >/tmp/count.new
  mv /tmp/count.new /tmp/count
  sleep 1
done`;

/** A script that writes a block with the number of its writes, reads it back past the cache, and counts. */
export function writingTo(device: string): string {
  return `set -e
n=$(dd if=/dev/${device} bs=4096 count=1 iflag=direct 2>/dev/null | tr -d '\\000' | head -n 1)
n=\${n:-0}
echo $n >/tmp/found
while :; do
  n=$((n + 1))
  echo $n | dd of=/dev/${device} bs=4096 conv=notrunc,fsync,sync 2>/dev/null
  [ "$(dd if=/dev/${device} bs=4096 count=1 iflag=direct 2>/dev/null | head -n 1)" = $n ]
  echo $n >/tmp/count
  sleep 0.2
done`;
}

/** A script that appends to a file of the file system of that name, syncs it, and counts. */
export function appendingTo(filesystem: string): string {
  return `set -e
cd /${filesystem}
touch lines
wc -l <lines >/tmp/found
while :; do
  echo line >>lines
  sync
  wc -l <lines >/tmp/count
  sleep 0.2
done`;
}
