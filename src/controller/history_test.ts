import assert from "node:assert/strict";
import {
  aCreate,
  aPublish,
  gibibyte,
  inTime,
  testContext,
  testController,
  testParameters,
} from "../../tests/fakes/controller_world.ts";
import { SeededRandom } from "../../tests/fakes/random.ts";
import type { Mishap } from "../../tests/fakes/volume_store.ts";
import { VolumeError } from "../volume/errors.ts";
import { volumeIdFor } from "../volume/ids.ts";
import { parseComment } from "../volume/record.ts";
import { createVolume } from "./create.ts";
import { deleteVolume } from "./delete.ts";
import { expandVolume } from "./expand.ts";
import { publishVolume } from "./publish.ts";
import { unpublishVolume } from "./unpublish.ts";

const name = "a";
const id = volumeIdFor(name);
const nodes = ["n1", "n2", "n3"];
const mishaps: readonly Mishap[] = [
  {},
  {},
  {},
  { runs: false },
  { refusal: "failure" },
  { runs: true, refusal: "interrupted" },
  { unreadable: true },
  { runs: false, unreadable: true },
  { runs: "half" },
  { takesMs: 15_000 },
  { late: true },
  { late: true, unreadable: true },
];

/**
 * One volume for one writer, lived through at random: calls of several nodes, alone and two at once, commands that go
 * wrong in every way, reboots and people's edits. What was answered OK must be so, and no two nodes ever write.
 */
class History {
  readonly random: SeededRandom;
  readonly controller;
  /** The node that was told an NQN. */
  readonly told = new Map<string, string>();
  /** NQNs that were answered to be gone. */
  readonly ended = new Set<string>();
  readonly log: string[] = [];
  /** Whether no other call can have undone by now what one has answered. */
  alone = true;
  succeeded = 0;

  constructor(seed: number) {
    this.random = new SeededRandom(seed);
    this.controller = testController({}, seed + 1000);
    this.controller.store.lingerMs = 10_000;
  }

  pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.random.fraction() * list.length)]!;
  }

  async step(): Promise<void> {
    const { store, clock } = this.controller;
    await this.disturb();
    const alone = this.alone = this.random.fraction() < 0.7;
    const mishap = this.pick(alone ? mishaps : mishaps.filter((mishap) => mishap.takesMs === undefined));
    this.log.push(JSON.stringify(mishap));
    // A disk that is added late harms nobody; one that changes or goes late may take away what was answered.
    if (!mishap.late) store.mishap("add", mishap);
    for (const method of ["change", "remove"] as const) store.mishap(method, mishap);
    await inTime(clock, Promise.all(alone ? [this.call()] : [this.call(), this.call()]));
    store.clearMishaps();
    assert.deepEqual(store.violations, [], this.log.join("\n"));
    const writers = store.reachable(this.imagePath()).map((nqn) => this.told.get(nqn) ?? "nobody");
    assert.ok(writers.length <= 1, `${writers} can write\n${this.log.join("\n")}`);
  }

  /** Time passes, the router restarts, or a person meddles. */
  async disturb(): Promise<void> {
    const { store, clock } = this.controller;
    const what = this.random.fraction();
    if (what < 0.3) await clock.advance(this.random.fraction() * 14_000);
    else if (what < 0.35) {
      store.reboot();
      await clock.advance(this.pick([1_000, 119_000, 121_000]));
    } else if (what < 0.45 && store.disks.has(id)) store.edit(id, { exported: false });
    else if (what < 0.5 && store.disks.get(id)?.exportNqn) store.edit(id, { exported: true });
    else if (what < 0.55) store.runLate();
    this.log.push(`disturbed ${what.toFixed(2)} at ${clock.now()}`);
  }

  async call(): Promise<void> {
    const what = this.random.fraction();
    const nodeId = this.pick(nodes);
    const verb = what < 0.4
      ? "publish"
      : what < 0.75
      ? "unpublish"
      : what < 0.85
      ? "create"
      : what < 0.92
      ? "expand"
      : "delete";
    this.log.push(`${verb} ${nodeId}`);
    try {
      await this[verb](nodeId);
      this.succeeded++;
      this.log.push(`OK ${verb} ${nodeId}`);
    } catch (error) {
      if (!VolumeError.is(error)) throw error;
      assert.notEqual(error.kind, "internal");
      this.log.push(`${verb} ${nodeId}: ${error.message}`);
    }
  }

  async create(): Promise<void> {
    await createVolume(this.controller.world, aCreate(name), testContext());
    this.runLate();
    this.expect(this.controller.store.disks.has(id));
  }

  async delete(): Promise<void> {
    const { store, world } = this.controller;
    await deleteVolume(world, id, testContext());
    this.runLate();
    this.expect(!store.disks.has(id) && !store.files.has(this.imagePath()));
  }

  async expand(): Promise<void> {
    const { store, world } = this.controller;
    const requiredBytes = BigInt(1 + Math.floor(this.random.fraction() * 4)) * gibibyte;
    const answer = await expandVolume(world, id, { requiredBytes, limitBytes: 0n }, testContext());
    this.runLate();
    this.expect(answer >= requiredBytes && (store.disks.get(id)?.sizeBytes ?? 0n) >= answer);
  }

  async publish(nodeId: string): Promise<void> {
    const { store, world } = this.controller;
    const { nqn, mayFormat } = await publishVolume(
      world,
      id,
      aPublish(nodeId),
      testParameters,
      testContext(),
    );
    this.runLate();
    const disk = store.disks.get(id);
    this.expect(disk !== undefined && disk.exported && disk.exportNqn === nqn && !this.ended.has(nqn!));
    if (mayFormat === "true") assert.match(nqn!, /:1-[0-9a-f]{8}$/);
    const told = this.told.get(nqn!) ?? nodeId;
    assert.equal(told, nodeId, `${nqn} for two nodes`);
    this.told.set(nqn!, nodeId);
  }

  async unpublish(nodeId: string): Promise<void> {
    const { store, world } = this.controller;
    await unpublishVolume(world, id, nodeId, testContext());
    if (!this.alone) return;
    this.runLate();
    const disk = store.disks.get(id);
    for (const [nqn, told] of this.told) {
      if (told !== nodeId) continue;
      this.ended.add(nqn);
      this.expect(!disk?.exported || disk.exportNqn !== nqn);
    }
    const parsed = parseComment(disk?.comment ?? "");
    const holders = parsed.state === "record" ? parsed.comment.record.holders : [];
    this.expect(holders.every((holder) => holder.nodeId !== nodeId));
  }

  /** What the router still has not run must not undo an OK. */
  runLate(): void {
    if (this.alone) this.controller.store.runLate();
  }

  /** What must be so after an OK, unless another call came in between. */
  expect(so: boolean): void {
    assert.ok(so || !this.alone, `answered OK and is not so\n${this.log.join("\n")}`);
  }

  imagePath(): string {
    return `/pool/csi/${id}.${this.controller.world.settings.cluster}.img`;
  }
}

Deno.test("no history of calls, failures and reboots makes two writers, a false OK or an NQN twice", async () => {
  let succeeded = 0;
  for (let seed = 1; seed <= 80; seed++) {
    const history = new History(seed);
    for (let step = 0; step < 60; step++) await history.step();
    succeeded += history.succeeded;
  }
  assert.ok(succeeded > 1000, "the histories do get something done");
});
