import assert from "node:assert/strict";
import { join } from "node:path";
import { formatProfile } from "../../../../src/router_profile/profile.ts";
import { profiles } from "../../../../src/simulator/profile.ts";
import { settleTimesToUnstage } from "../../../../src/volume/rules/fence.ts";
import type { HostController } from "../../kit/host_controller.ts";
import { GuestVolume, untilOk } from "../../kit/volume.ts";
import type { FoundStamp, Writer } from "../writers/writer.ts";
import { type Field, type FieldNode, imageOf } from "./field.ts";

/** The settle time of the nodes, in milliseconds. */
export const settleMs = 3_000;
/** How long a lack lasts before an unstage may cut a volume off, in milliseconds. */
const lackMs = settleTimesToUnstage * settleMs;
/** Longest that an unpublish and an unstage may take each then, in seconds. */
const unstageSeconds = 4 * lackMs / 1000;
/** Longest until a connection is back or given up, in seconds; a few where nothing else runs. */
const queueSeconds = 90;

/** Writes what a probe would have found out about the simulated router: its list of hosts, what a toggle does. */
export async function listProfile(folder: string): Promise<string> {
  const path = join(folder, "profile.json");
  const answers = { allowHost: "list", identity: "kept", withdrawal: "ends-sessions", unexport: 0 } as const;
  await Deno.writeTextFile(path, formatProfile({ ...profiles[0]!, answers }));
  return path;
}

/** A raw block volume that two nodes have at once, as while a virtual machine moves. */
export class Migration {
  readonly #field: Field;
  readonly #volume: GuestVolume;
  readonly #image: string;
  readonly #writers = new Map<FieldNode, Writer>();

  private constructor(field: Field, volume: GuestVolume, image: string) {
    this.#field = field;
    this.#volume = volume;
    this.#image = image;
  }

  /** Lets the first node have the volume and write, and the second one have it too. */
  static async begin(field: Field, name: string, sizeBytes: number): Promise<Migration> {
    const { controller } = field.controller.clients;
    const volume = await GuestVolume.create(controller, name, "shared block", sizeBytes);
    const migration = new Migration(field, volume, await imageOf(field, volume));
    const [first, second] = field.nodes as [FieldNode, FieldNode];
    await migration.#join(first);
    await migration.#write(first, 1);
    await migration.#join(second);
    assert.equal(volume.nqn(second.id), volume.nqn(first.id), "both are in one epoch");
    return migration;
  }

  /**
   * The first node leaves without being asked; not one block of its comes to the disk any more. It sees only that its
   * target lacks the volume, so that its connection lasts until its kubelet asks to unpublish: its writer hangs till
   * then, whoever kills it.
   */
  async leaveFenced(): Promise<string> {
    const [detachingNode, other] = this.#field.nodes as [FieldNode, FieldNode];
    const nqn = this.#volume.nqn(detachingNode.id);
    await this.#writers.get(detachingNode)!.progresses();
    await this.#volume.unpublish(detachingNode.id);
    const unpublishedMs = performance.now();
    const before = await this.#stampsOf(detachingNode);
    await other.guest.until(
      `grep -l live $(grep -lxF '${nqn}' /sys/class/nvme/*/subsysnqn | sed s/subsysnqn/state/)`,
      {
        limitSeconds: queueSeconds,
      },
    );
    const backMs = performance.now() - unpublishedMs;
    const writer = this.#writers.get(detachingNode)!;
    await writer.beginKill();
    const askedMs = performance.now();
    const { node } = detachingNode.driver.clients;
    // The target is busy for as long as the writer hangs.
    await untilOk(() => this.#volume.unpublishOn(node), unstageSeconds, ["FAILED_PRECONDITION"]);
    await untilOk(() => this.#volume.unstage(node), unstageSeconds);
    const releaseMs = performance.now() - askedMs;
    await writer.ended(queueSeconds);
    const left = await detachingNode.guest.run(
      `grep -lxF '${nqn}' /sys/class/nvme/*/subsysnqn; grep -F ${this.#volume.id} /proc/self/mountinfo`,
    );
    assert.equal(left.stdout, "");
    assert.ok(
      releaseMs > lackMs,
      `it was cut off after ${releaseMs} ms, for a lack of less than ${lackMs} ms`,
    );
    assert.deepEqual(await this.#stampsOf(detachingNode), before, "blocks of the node that left have come");
    await this.#write(other, 1_000_000);
    return `not one block came; the other was back after ${(backMs / 1000).toFixed(1)} s, ` +
      `and the detaching node has released it ${(releaseMs / 1000).toFixed(1)} s after the request`;
  }

  /** The first node joins again, and leaves where the router's list is not known: that is said, and it is so. */
  async leaveUnfenced(controller: HostController): Promise<string> {
    const [detachingNode, other] = this.#field.nodes as [FieldNode, FieldNode];
    await this.#writers.get(other)!.kill();
    await this.#join(detachingNode);
    const writer = await this.#write(detachingNode, 2_000_000);
    await controller.clients.controller.call("ControllerUnpublishVolume", {
      volumeId: this.#volume.id,
      nodeId: detachingNode.id,
    });
    const report = controller.lines.find((line) => line.includes("the node that left is not fenced"));
    assert.ok(report?.includes(`"${detachingNode.id}"`), controller.tail());
    await writer.progresses();
    await this.#leave(detachingNode);
    await this.#leave(other);
    await this.#volume.unpublish(other.id);
    return "it is reported, and its writes still came";
  }

  async #join(node: FieldNode): Promise<void> {
    await node.guest.sh(`mkdir -p ${this.#volume.target.replace(/[^/]*$/, "")}`);
    await this.#volume.publish(node.id);
    await this.#volume.attach(node.driver.clients.node, node.id);
  }

  async #write(node: FieldNode, first: number): Promise<Writer> {
    const writer = await this.#field.stamping.write(node.guest, this.#volume.target, node.id, first);
    this.#writers.set(node, writer);
    await writer.progresses();
    return writer;
  }

  async #leave(node: FieldNode): Promise<void> {
    await this.#writers.get(node)!.kill();
    await this.#volume.detach(node.driver.clients.node);
  }

  async #stampsOf(node: FieldNode): Promise<readonly FoundStamp[]> {
    const [found] = await this.#field.stamping.scan(this.#field.routerGuest, [this.#image]);
    return found!.filter(([, writer]) => writer === node.id);
  }
}
