import assert from "node:assert/strict";
import type { Random } from "../../../src/volume/ports/system.ts";
import { SeededRandom } from "../../fakes/random.ts";
import type { Bench, Suite } from "../kit/suite.ts";
import { GuestVolume, untilOk } from "../kit/volume.ts";
import { type Field, imageOf, keepsIdentity, makeField } from "./two_nodes/field.ts";
import { isLong } from "../../support/long.ts";
import { type Writer, writtenBlocks } from "./writers/writer.ts";
import { startRouter } from "../kit/driver.ts";
/** How a target is lost. */
type Loss = "its cable is cut" | "it is frozen" | "its power is cut";

const volumeBytes = 64 << 20;
/** How long a target is away, in seconds. */
const awaySeconds = 30;
/** Longest until a write ends after the target's return, in seconds: twice reconnect_delay, and 10. */
const resumeSeconds = 2 * 5 + 10;
/**
 * Longest until nothing is acknowledged any more, in seconds: until the kernel gives the connection up. With native
 * multipath it then ends a flush that is under way as if it had been answered, which is harmless where the target itself
 * was not lost, or keeps nothing in its memory.
 */
const quietSeconds = 20;
const stopFile = "/tmp/stop";
const nodeId = "a";

/** That a target may go and come back under writes: not one block is wrong, and they go on soon. */
export const suite: Suite = {
  what: "a target that is lost for 30 s under verified writes and comes back",
  limitMinutes: isLong ? 30 : 10,
  alone: true,
  needsBinary: true,
  run: async (bench) => {
    const random = new SeededRandom(bench.seed());
    const trial = new Trial(await makeField(bench, { nodes: [nodeId] }));
    try {
      await losses(bench, trial, random);
    } finally {
      await trial.field.controller.stop();
    }
  },
};

async function losses(bench: Bench, trial: Trial, random: Random): Promise<void> {
  const begun = await bench.test("an ext4 volume and a block volume are written and verified", () =>
    trial.begin());
  if (!begun) return;
  for (const [index, loss] of plan().entries()) {
    const isFine = await bench.test(`loss ${index + 1}: ${loss} for ${awaySeconds} s`, () =>
      trial.lose(loss, random));
    if (!isFine) return;
  }
  await bench.test("every block is as it was written, and the file system is clean", () => trial.end());
}

function plan(): readonly Loss[] {
  if (!isLong) return ["its cable is cut", "its power is cut"];
  const all: readonly Loss[] = ["its cable is cut", "it is frozen", "its power is cut"];
  return Array.from({ length: 10 }, (_, index) => all[index % all.length]!);
}

interface Subject {
  readonly volume: GuestVolume;
  readonly path: string;
  writer: Writer;
}

class Trial {
  field: Field;
  #subjects: Subject[] = [];

  constructor(field: Field) {
    this.field = field;
  }

  async begin(): Promise<string> {
    const { guest, driver } = this.field.nodes[0]!;
    await writeThrough(this.field);
    const { controller } = this.field.controller.clients;
    for (const use of ["ext4", "block"] as const) {
      const volume = await GuestVolume.create(controller, `lost-${use}`, use, volumeBytes);
      await guest.sh(`mkdir -p ${volume.target.replace(/[^/]*$/, "")}`);
      await volume.publish(nodeId);
      await volume.attach(driver.clients.node, nodeId);
      const path = use === "ext4" ? `${volume.target}/data` : volume.target;
      if (use === "ext4") {
        await guest.sh(`dd if=/dev/zero of=${path} bs=4k count=${writtenBlocks} conv=fsync status=none`);
      }
      const writer = await this.field.stamping.verify(guest, path, use, stopFile);
      this.#subjects.push({ volume, path, writer });
    }
    await Promise.all(this.#subjects.map(({ writer }) => writer.progresses()));
    return "both write";
  }

  /** Loses the target, lets it come back, and waits until both writers write again. */
  async lose(loss: Loss, random: Random): Promise<string> {
    await Promise.all(this.#subjects.map(({ writer }) => {
      // Every block is read, as it was before the last loss, and written again.
      const enough = writer.acknowledged + writtenBlocks;
      return writer.reports(({ acknowledged = 0 }) => acknowledged >= enough, 90);
    }));
    await sleep(random.fraction() * 3);
    const giveBack = await this.#take(loss);
    const lostMs = performance.now();
    await sleep(quietSeconds);
    const before = this.#subjects.map(({ writer }) => writer.acknowledged);
    await sleep(awaySeconds - quietSeconds);
    const during = this.#subjects.map(({ writer }) => writer.acknowledged);
    const reported = () =>
      this.#subjects.map(({ writer }) => JSON.stringify(writer.reported.slice(-4))).join("; ");
    assert.deepEqual(during, before, `writes were acknowledged while the target was away: ${reported()}`);
    await giveBack();
    const backMs = performance.now();
    await Promise.all(this.#subjects.map(({ writer }) => writer.progresses(resumeSeconds)));
    const resumed = (performance.now() - backMs) / 1000;
    await this.#assertMounted();
    return `away for ${((backMs - lostMs) / 1000).toFixed(0)} s, both write again ${
      resumed.toFixed(1)
    } s after its return`;
  }

  /** The writers have verified every block; the volumes come down as ever, and the file system needs no repair. */
  async end(): Promise<string> {
    const { routerGuest, nodes, router } = this.field;
    const { guest, driver } = nodes[0]!;
    await guest.sh(`touch ${stopFile}`);
    const ended = await Promise.all(this.#subjects.map(async ({ writer, volume }) => {
      const last = await writer.reports(({ verified }) => verified !== undefined, 60);
      await writer.end();
      return `${volume.use}: ${last.acknowledged} blocks written, the longest took ${last.longestMs} ms`;
    }));
    for (const { volume } of this.#subjects) {
      await volume.detach(driver.clients.node);
      if (volume.use === "ext4") await routerGuest.sh(`e2fsck -fn ${await imageOf(this.field, volume)}`);
      await volume.unpublish(nodeId);
    }
    assert.deepEqual(await router.violations(), []);
    return ended.join("; ");
  }

  /** Answers what brings it back, and ends when the volumes can be reached again. */
  async #take(loss: Loss): Promise<() => Promise<void>> {
    const { routerGuest } = this.field;
    if (loss === "its cable is cut") {
      await routerGuest.setLink(false);
      return () => routerGuest.setLink(true);
    }
    if (loss === "it is frozen") {
      routerGuest.signal("SIGSTOP");
      // deno-lint-ignore require-await -- the interface is asynchronous, a signal is not
      return async () => routerGuest.signal("SIGCONT");
    }
    const disks = await cutRouterPower(this.field);
    return async () => {
      this.field = await restoreRouter(this.field, disks);
      await this.#publishAgain();
    };
  }

  /** As the attacher does for what a list of volumes does not confirm: the same NQN comes back, late. */
  async #publishAgain(): Promise<void> {
    for (const { volume } of this.#subjects) {
      const before = volume.nqn(nodeId);
      await untilOk(() => volume.publish(nodeId));
      assert.equal(
        volume.nqn(nodeId),
        before,
        "another epoch, under the feet of a node that holds the volume",
      );
    }
  }

  async #assertMounted(): Promise<void> {
    const { guest } = this.field.nodes[0]!;
    const { volume } = this.#subjects.find(({ volume }) => volume.use === "ext4")!;
    const options = await guest.sh(`findmnt -no OPTIONS ${volume.staging} && touch ${volume.target}/rw`);
    assert.match(options, /^rw,/);
  }
}

function sleep(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}

/** A disk's entry on the router, by the router's own names. */
type DiskEntry = Readonly<Record<string, unknown>>;

/** What a router keeps of a volume's entry; everything else follows from it. */
const kept = [
  "slot",
  "type",
  "comment",
  "file-path",
  "nvme-tcp-server-port",
  "nvme-tcp-server-nqn",
  "nvme-tcp-server-allow-host-name",
];

/** Cuts the power of the field's router; its configuration is what this answers. */
async function cutRouterPower({ routerGuest, router }: Field): Promise<readonly DiskEntry[]> {
  const { disks } = await router.control("/state") as { readonly disks: readonly DiskEntry[] };
  await routerGuest.cutPower();
  return disks.filter((disk) => disk["type"] === "file");
}

/**
 * Turns the power on again. The router has its volumes back, and exports none of them: a simulated one keeps nothing but
 * the disk's files by itself.
 */
async function restoreRouter(field: Field, disks: readonly DiskEntry[]): Promise<Field> {
  const { routerGuest } = field;
  await routerGuest.boot();
  const router = await startRouter(routerGuest, { disk: routerGuest.disk("pool"), flags: keepsIdentity });
  await writeThrough({ ...field, router });
  for (const disk of disks) {
    const own = Object.fromEntries(
      kept.flatMap((name) => disk[name] === undefined ? [] : [[name, disk[name]]]),
    );
    const size = String(disk["attached-size"]);
    await router.control("/disks?file=no", {
      method: "POST",
      body: JSON.stringify({ ...own, "size": size, "file-size": size, "nvme-tcp-export": false }),
    });
  }
  return { ...field, router };
}

/**
 * Has the router's files written to its disk before a write is answered. What a target acknowledges, keeps in its memory
 * and loses is lost to any initiator: it is told of a new connection, not of a new start.
 */
async function writeThrough({ routerGuest, router }: Field): Promise<void> {
  await routerGuest.sh(`mount -o remount,sync ${router.backing}`);
}
