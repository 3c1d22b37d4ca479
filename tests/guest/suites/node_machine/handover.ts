import assert from "node:assert/strict";
import { type Attachment, claimOf, type Event, paths, podOf } from "../../../cluster/kit/objects.ts";
import { secondsSince, until } from "../../../cluster/kit/waiting.ts";
import { Workload } from "../../../cluster/kit/workload.ts";
import type { Bench } from "../../kit/suite.ts";
import type { MachineCluster } from "../../machine/cluster.ts";
import type { Steps } from "./on_machines.ts";
import { progressText, WritingPod, writingTo } from "./writing.ts";

/** Longest until a pod runs, in seconds. */
const startSeconds = 600;

const claim = "shared";
const [source, target] = ["source", "target"];
const targets = { [claim]: `/dev/${claim}` };

/** A raw block volume that two nodes have at once while a virtual machine moves, whose parts pods play. */
export class MachineHandover {
  readonly #bench: Bench;
  readonly #cluster: MachineCluster;
  readonly #from: string;
  readonly #to: string;
  readonly #work: Workload;
  readonly #source: WritingPod;
  readonly #target: WritingPod;

  constructor(bench: Bench, cluster: MachineCluster, from: string, to: string) {
    this.#bench = bench;
    this.#cluster = cluster;
    this.#from = from;
    this.#to = to;
    this.#work = new Workload(cluster, bench.signal);
    this.#source = new WritingPod(source, targets, this.#work, bench.signal);
    this.#target = new WritingPod(target, targets, this.#work, bench.signal);
  }

  /** The steps, in their order. */
  steps(): Steps {
    return [
      [`a shared raw block volume is written at ${this.#from}, and ${this.#to} gets it too`, () => {
        return this.join();
      }],
      [`the one at ${this.#to} writes on from the last write, and ${this.#from} leaves`, () => this.leave()],
    ];
  }

  async join(): Promise<string> {
    await this.#work.create(
      paths.claims,
      claimOf(claim, { mode: "Block", mebibytes: 1024, storageClass: "rds-block", shared: true }),
    );
    await this.#run(source, writingTo(targets), this.#from);
    await this.#source.progress();
    const started = performance.now();
    await this.#run(target, `until [ -e /tmp/begin ]; do sleep 0.1; done\n${writingTo(targets)}`, this.#to);
    const seconds = secondsSince(started);
    const attachments = await this.#work.attachments();
    assert.deepEqual(attachments.map(({ spec }) => spec.nodeName).toSorted(), [this.#from, this.#to]);
    const [nqn, ...others] = [...new Set(attachments.map(nqnOf))];
    assert.match(nqn ?? "", /^nqn\./);
    assert.deepEqual(others, [], "both are in one epoch");
    return `it is there after ${seconds} s; ${progressText(await this.#source.progress())}`;
  }

  async leave(): Promise<string> {
    const last = await this.#source.progress();
    await this.#source.exec("kill -STOP -1");
    // What the kernel of its node has not written yet would come after the first write of the other.
    await this.#source.exec("sync");
    await this.#target.exec("touch /tmp/begin");
    const [first] = await this.#target.progress();
    assert(first!.found >= last[0]!.writes, `after ${last[0]!.writes} writes ${first!.found} were found`);
    const started = performance.now();
    await this.#work.remove(paths.pods, source);
    await until(`${this.#from} to have left`, async () => {
      const [only, ...others] = await this.#work.attachments();
      return only?.spec.nodeName === this.#to && others.length === 0;
    }, { limitSeconds: startSeconds, everyMs: 500, signal: this.#bench.signal });
    const seconds = secondsSince(started);
    assert.equal(await this.#cluster.node(this.#from).guest.sh("ls /sys/class/nvme"), "");
    await this.#reported();
    const progress = await this.#target.progress();
    await this.#work.remove(paths.pods, target);
    await this.#work.gone(paths.attachments);
    await this.#work.remove(paths.claims, claim);
    await this.#work.gone(paths.volumes);
    return `it has left after ${seconds} s; ${progressText(progress)}`;
  }

  /** Waits until it is said that nothing keeps the node out that left. */
  async #reported(): Promise<void> {
    await until(`${this.#from} to be reported`, async () => {
      const events = await this.#cluster.api.list<Event>(paths.events);
      return events.some(({ reason, message }) =>
        reason === "LeaverNotFenced" && message.includes(this.#from)
      );
    }, { limitSeconds: 60, everyMs: 1000, signal: this.#bench.signal });
  }

  /** Runs a pod at a node. */
  async #run(name: string, script: string, node: string): Promise<void> {
    const other = node === this.#from ? this.#to : this.#from;
    await this.#work.cordon(other, true);
    await this.#work.create(paths.pods, podOf(name, script, { devices: [claim] }));
    await this.#work.running(name, startSeconds);
    await this.#work.cordon(other, false);
  }
}

function nqnOf({ status }: Attachment): string | undefined {
  return status?.attachmentMetadata?.["nqn"];
}
