import assert from "node:assert/strict";
import type { Random } from "../../../../src/volume/ports/system.ts";
import { type GuestVolume, untilOk } from "../../kit/volume.ts";
import { type FoundStamp, type Writer, writtenBlocks } from "../writers/writer.ts";
import { type Field, type FieldNode, imageOf } from "./field.ts";

/** What befalls whom while a volume goes from one node to the other. */
export type Trouble =
  | "nothing"
  | "the holder's cable is cut"
  | "the holder's cable is cut between the calls"
  | "the holder is frozen"
  | "the router is frozen"
  | "the router reboots";

/** All of them. */
export const troubles: readonly Trouble[] = [
  "nothing",
  "the holder's cable is cut",
  "the holder is frozen",
  "the router is frozen",
  "the holder's cable is cut between the calls",
  "the router reboots",
];

/** Longest until a node has let go of what was taken from it, in seconds; a few where nothing else runs. */
const releaseSeconds = 90;
/** Longest that it may then take to unstage it, in seconds. */
const unstageSeconds = 20;

/** A volume that two nodes write to in turn: who holds it is never asked whether it may be taken away. */
export class Contest {
  readonly #field: Field;
  readonly #volume: GuestVolume;
  readonly #random: Random;
  readonly #image: string;
  #holder: FieldNode;
  #other: FieldNode;
  #writer: Writer | undefined;
  /** Sequences begin anew with each writer, above all that were there before. */
  #nextSequence = 1;

  private constructor(field: Field, volume: GuestVolume, random: Random, image: string) {
    this.#field = field;
    this.#volume = volume;
    this.#random = random;
    this.#image = image;
    [this.#holder, this.#other] = field.nodes as [FieldNode, FieldNode];
  }

  /** Lets the first node have the volume and write. */
  static async begin(field: Field, volume: GuestVolume, random: Random): Promise<Contest> {
    const contest = new Contest(field, volume, random, await imageOf(field, volume));
    for (const { guest } of field.nodes) await guest.sh(`mkdir -p ${volume.target.replace(/[^/]*$/, "")}`);
    await volume.publish(contest.#holder.id);
    await volume.attach(contest.#holder.driver.clients.node, contest.#holder.id);
    contest.#writer = await contest.#startWriter(contest.#holder);
    return contest;
  }

  /** One change of hands; afterwards the other node holds the volume and writes. */
  async round(trouble: Trouble): Promise<string> {
    const [holder, other, volume] = [this.#holder, this.#other, this.#volume];
    const oldNqn = volume.nqn(holder.id);
    await this.#writer!.progresses();
    await this.#pause();
    await this.#strike(trouble, "before");
    await this.#unpublish(trouble);
    await this.#copy("unpublished");
    const acknowledged = this.#writer!.acknowledged;
    await this.#strike(trouble, "between");
    await this.#pause();
    await volume.publish(other.id);
    const publishedMs = performance.now();
    await this.#copy("published");
    await volume.attach(other.driver.clients.node, other.id);
    const seen = await this.#field.stamping.read(other.guest, this.#pathOf(holder));
    const otherWriter = await this.#startWriter(other);
    await this.#pause();
    await this.#relieve(trouble);
    await this.#assertReleased(oldNqn);
    const releaseMs = performance.now() - publishedMs;
    await otherWriter.progresses();
    await this.#copy("later");
    await this.#assertUntouched(acknowledged, seen);
    await otherWriter.kill();
    await volume.detach(other.driver.clients.node);
    await this.#assertClean();
    const unstageMs = await this.#leave(oldNqn);
    await this.#swap();
    return `${holder.id} to ${other.id}: block ${acknowledged} was the last acknowledged, ${holder.id} has let go after ` +
      `${(releaseMs / 1000).toFixed(1)} s and unstaged in ${(unstageMs / 1000).toFixed(1)} s`;
  }

  async #strike(trouble: Trouble, when: "before" | "between"): Promise<void> {
    const { guest } = this.#holder;
    if (when === "before") {
      if (trouble === "the holder's cable is cut") await guest.setLink(false);
      if (trouble === "the holder is frozen") guest.signal("SIGSTOP");
    } else if (trouble === "the holder's cable is cut between the calls") await guest.setLink(false);
  }

  async #relieve(trouble: Trouble): Promise<void> {
    const { guest } = this.#holder;
    if (trouble.startsWith("the holder's cable")) await guest.setLink(true);
    if (trouble === "the holder is frozen") guest.signal("SIGCONT");
  }

  /** Takes the volume from its holder. An answer OK has to be true: nothing is exported then. */
  async #unpublish(trouble: Trouble): Promise<void> {
    const { routerGuest, router } = this.#field;
    const call = (timeoutMs?: number) => this.#volume.unpublish(this.#holder.id, timeoutMs);
    if (trouble === "the router is frozen") {
      routerGuest.signal("SIGSTOP");
      try {
        await assert.rejects(call(5_000), "the router is frozen: nobody can know that the export is off");
      } finally {
        routerGuest.signal("SIGCONT");
      }
    } else if (trouble === "the router reboots") {
      await router.control("/reboot", {
        method: "POST",
        body: JSON.stringify({ downMs: 4_000, disksLateMs: 4_000, loseLastMs: 0, nvmePort: "before" }),
      });
      await assert.rejects(call(3_000), "the router is down: nobody can know that the export is off");
    }
    await untilOk(call);
    const served = await routerGuest.sh("ls /tmp/configfs/nvmet/subsystems");
    assert.ok(!served.includes(this.#volume.id), `unpublished, and exported: ${served}`);
  }

  /** Keeps what is on the disk now, as the router has it. */
  async #copy(name: string): Promise<void> {
    await this.#field.routerGuest.sh(`dd if=${this.#image} of=/tmp/${name} bs=1M conv=sparse status=none`);
  }

  /** Not one block of the old holder has come to the disk since its unpublish, and none that it had acknowledged is missing. */
  async #assertUntouched(acknowledged: number, seen: readonly FoundStamp[]): Promise<void> {
    const { stamping, routerGuest } = this.#field;
    const names = ["unpublished", "published", "later"];
    const scans = await stamping.scan(routerGuest, names.map((name) => `/tmp/${name}`));
    const own = ([, writer]: FoundStamp) => writer === this.#holder.id;
    const [before, after, later] = scans.map((found) => found.filter(own));
    assert.ok(before!.length >= writtenBlocks, `only ${before!.length} blocks of the writer are on the disk`);
    assert.deepEqual(before!.filter(([, , , isWhole]) => !isWhole), [], "torn blocks");
    assert.deepEqual(after, before, "blocks came between unpublish and publish");
    const known = new Set(before!.map((stamp) => stamp.join()));
    assert.deepEqual(later!.filter((stamp) => !known.has(stamp.join())), [], "blocks came after publish");
    const sequences = (found: readonly FoundStamp[]) =>
      found.map(([, , sequence]) => sequence).sort((a, b) => a - b);
    assert.deepEqual(sequences(seen.filter(own)), sequences(before!), "the other node sees another disk");
    const oldest = sequences(before!)[0]!;
    assert.ok(
      oldest > acknowledged - writtenBlocks,
      `acknowledged up to ${acknowledged}, and one of ${oldest} is left`,
    );
  }

  async #assertReleased(nqn: string): Promise<void> {
    await this.#holder.guest.until(`! grep -qxF '${nqn}' /sys/class/nvme/*/subsysnqn`, {
      limitSeconds: releaseSeconds,
    });
  }

  /** The file system that the other node has just unmounted. */
  async #assertClean(): Promise<void> {
    if (this.#volume.use !== "ext4") return;
    await this.#field.routerGuest.sh(`e2fsck -fn ${this.#image}`);
  }

  /** The old holder's workload ends, and the kubelet takes the volume down there. */
  async #leave(nqn: string): Promise<number> {
    const { guest, driver } = this.#holder;
    await this.#writer!.kill();
    const startedMs = performance.now();
    await this.#volume.detach(driver.clients.node);
    const tookMs = performance.now() - startedMs;
    assert.ok(tookMs < unstageSeconds * 1000, `unstaging what was fenced took ${tookMs} ms`);
    const left = await guest.run(
      `grep -F ${this.#volume.id} /proc/self/mountinfo; grep -lxF '${nqn}' /sys/class/nvme/*/subsysnqn`,
    );
    assert.equal(left.stdout, "");
    return tookMs;
  }

  async #swap(): Promise<void> {
    [this.#holder, this.#other] = [this.#other, this.#holder];
    await this.#volume.attach(this.#holder.driver.clients.node, this.#holder.id);
    this.#writer = await this.#startWriter(this.#holder);
  }

  async #startWriter(node: FieldNode): Promise<Writer> {
    const path = this.#pathOf(node);
    if (this.#volume.use === "ext4") {
      // Its blocks are there before the first one is written past the page cache.
      await node.guest.sh(
        `[ -s ${path} ] || dd if=/dev/zero of=${path} bs=4k count=${writtenBlocks} conv=fsync status=none`,
      );
    }
    const first = this.#nextSequence;
    this.#nextSequence += 1_000_000;
    const writer = await this.#field.stamping.write(node.guest, path, node.id, first);
    await writer.reports(({ acknowledged = 0 }) => acknowledged >= first + writtenBlocks, 90);
    return writer;
  }

  #pathOf(node: FieldNode): string {
    return this.#volume.use === "ext4" ? `${this.#volume.target}/${node.id}` : this.#volume.target;
  }

  async #pause(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, this.#random.fraction() * 1500));
  }
}
