import assert from "node:assert/strict";
import { GuestVolume } from "../../kit/volume.ts";
import type { Writer } from "../writers/writer.ts";
import type { Field, FieldNode } from "./field.ts";

/** A raw block volume that two nodes have at once, as while a virtual machine moves. */
export class Migration {
  readonly #field: Field;
  readonly #volume: GuestVolume;
  readonly #writers = new Map<FieldNode, Writer>();

  private constructor(field: Field, volume: GuestVolume) {
    this.#field = field;
    this.#volume = volume;
  }

  /** Lets the first node have the volume and write, and the second one have it too. */
  static async begin(field: Field, name: string, sizeBytes: number): Promise<Migration> {
    const { controller } = field.controller.clients;
    const volume = await GuestVolume.create(controller, name, "shared block", sizeBytes);
    const migration = new Migration(field, volume);
    const [first, second] = field.nodes as [FieldNode, FieldNode];
    await migration.#join(first);
    await migration.#write(first, 1);
    await migration.#join(second);
    assert.equal(volume.nqn(second.id), volume.nqn(first.id), "both are in one epoch");
    return migration;
  }

  /** The first node leaves without being asked, while it writes: that is said, and it is so. The other one then writes. */
  async leave(): Promise<string> {
    const [detachingNode, other] = this.#field.nodes as [FieldNode, FieldNode];
    const { controller } = this.#field;
    const writer = this.#writers.get(detachingNode)!;
    await writer.progresses();
    await this.#volume.unpublish(detachingNode.id);
    const report = controller.lines.find((line) => line.includes("the node that left is not fenced"));
    assert.ok(report?.includes(`"${detachingNode.id}"`), controller.tail());
    await writer.progresses();
    await this.#leave(detachingNode);
    await this.#write(other, 1_000_000);
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
}
