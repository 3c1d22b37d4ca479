import assert from "node:assert/strict";
import {
  aCreate,
  aPublish,
  gibibyte,
  inTime,
  testContext,
  testController,
  testParameters,
  withoutSubvolumes,
} from "../../tests/fakes/controller_deps.ts";
import { SeededRandom } from "../../tests/fakes/random.ts";
import { aDisk, aRecord, aSnapshotId, testBase, testCluster } from "../../tests/fakes/records.ts";
import type { Mishap, StoreMethod } from "../../tests/fakes/mishap.ts";
import { isLong } from "../../tests/support/long.ts";
import { VolumeError } from "../volume/errors.ts";
import { snapshotIdFor, volumeIdFor } from "../volume/model/ids.ts";
import { filePrefixOf } from "../volume/model/layout.ts";
import type { CallContext } from "../volume/ports/system.ts";
import { parseComment } from "../volume/model/record.ts";
import type { SourceRef } from "../volume/model/sources.ts";
import { createVolume } from "./volumes/create.ts";
import { deleteSnapshot } from "./snapshots/delete.ts";
import { deleteVolume } from "./volumes/delete.ts";
import { expandVolume } from "./volumes/expand.ts";
import { KnownVolumes } from "./known_volumes.ts";
import { listSnapshots } from "./snapshots/list.ts";
import { publishVolume } from "./attachments/publish.ts";
import { createSnapshot } from "./snapshots/create.ts";
import { unpublishVolume } from "./attachments/unpublish.ts";

const original = "a";
const snapshotNames = ["s", "t"];
const nodes = ["n1", "n2"];
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
/** What comes late of these harms nobody but by being there. */
const additions: readonly StoreMethod[] = ["add", "addAlone", "addSubvolume"];
const changes: readonly StoreMethod[] = ["change", "remove", "removeImage", "renameFile"];
/** The longest time for which a router may hold a command back, in milliseconds. */
const latestMs = 500_000;

/** Verbs, and how often each is called. */
const verbs = [
  ["publish", 30],
  ["unpublish", 25],
  ["create", 8],
  ["expand", 6],
  ["delete", 5],
  ["snapshot", 14],
  ["deleteSnapshot", 5],
  ["clone", 12],
  ["deleteClone", 4],
  ["list", 5],
] as const;
type Verb = typeof verbs[number][0];

/**
 * A volume for one writer, its snapshots and its clones, lived through at random: calls of several nodes, alone and two
 * at once, commands that go wrong in every way, reboots and people's edits. What was answered OK must be so and stay so,
 * no two nodes ever write to one image, and nobody finds other data than he was promised.
 */
class History {
  readonly random: SeededRandom;
  readonly controller;
  /** The node that was told an NQN. */
  readonly reported = new Map<string, string>();
  /** NQNs that were answered to be gone. */
  readonly ended = new Set<string>();
  /** What every volume that was ever wanted was to be made from; undefined for a blank one. */
  readonly volumes = new Map<string, SourceRef | undefined>([[original, undefined]]);
  /** Ids of volumes and snapshots that were answered to be there, and that nobody has asked to be deleted since. */
  readonly alive = new Set<string>();
  /** What is in snapshots that were answered to be there, by path. */
  readonly frozen = new Map<string, string | undefined>();
  readonly log: string[] = [];
  readonly bystanders: readonly string[];
  /** Whether no other call can have undone by now what one has answered. */
  alone = true;
  ending = false;
  succeeded = new Map<Verb, number>();
  writes = 0;
  lateSinceMs = 0;

  constructor(seed: number, subvolumes: boolean) {
    this.random = new SeededRandom(seed);
    // Every other one knows how full its pool is, and reads no more than it needs.
    const made = testController({ copyReturns: "when-done" }, seed + 1000, undefined, seed % 2 === 0);
    this.controller = { ...made, deps: { ...made.deps, known: new KnownVolumes(true) } };
    const { store } = this.controller;
    store.lingerMs = 10_000;
    if (!subvolumes) withoutSubvolumes(store);
    const id = volumeIdFor(original);
    store.put(
      aDisk(aRecord({ cluster: "ffffffff" }), { id: "other", imagePath: `${testBase}/${id}.ffffffff.img` }),
    );
    for (const name of snapshotNames) {
      store.putFile(`${testBase}/${snapshotIdFor(name, "ffffffff")}.${id}.1.n.ffffffff.img`, gibibyte);
      store.putFile(`/pool/backup/${aSnapshotId(name)}.${id}.1.n.${testCluster}.img`, gibibyte);
    }
    this.bystanders = [...store.allFiles.keys()];
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
    // What is added late harms nobody; what changes or goes late may take away what was answered.
    for (const method of additions) store.mishap(method, mishap.late ? {} : mishap);
    for (const method of changes) store.mishap(method, mishap);
    // Most copies go on while other calls come.
    const takesMs = this.pick([5_000, 20_000, 60_000]);
    store.mishap("copyFile", this.random.fraction() < 0.6 || mishap.late ? { takesMs } : mishap);
    await inTime(clock, Promise.all(alone ? [this.call()] : [this.call(), this.call()]));
    store.clearMishaps();
    this.check();
    this.write();
  }

  /** Time passes, the router restarts, or a person meddles. */
  async disturb(): Promise<void> {
    const { store, clock } = this.controller;
    const what = this.random.fraction();
    const id = volumeIdFor(this.pick([...this.volumes.keys()]));
    if (what < 0.3) await clock.advance(this.random.fraction() * 14_000);
    else if (what < 0.35) {
      // No command outlives the session that it came through.
      this.runAllLate();
      store.reboot();
      await clock.advance(this.pick([1_000, 119_000, 121_000]));
    } else if (what < 0.45 && store.disks.has(id)) store.edit(id, { exported: false });
    else if (what < 0.5 && store.disks.get(id)?.exportNqn) {
      // A person who does the driver's work while a command is late can make two ways to one image.
      this.runAllLate();
      if (store.disks.has(id)) store.edit(id, { exported: true });
    } else if (what < 0.55 || clock.now() - this.lateSinceMs > latestMs) this.runAllLate();
    this.log.push(`disturbed ${what.toFixed(2)} at ${clock.now()}`);
  }

  async call(): Promise<void> {
    const verb = this.pick(verbs.flatMap(([verb, often]) => Array<Verb>(often).fill(verb)));
    this.log.push(verb);
    try {
      await this[verb]();
      this.succeeded.set(verb, (this.succeeded.get(verb) ?? 0) + 1);
      this.log.push(`OK ${verb}`);
    } catch (error) {
      if (!VolumeError.is(error)) throw error;
      assert.notEqual(error.kind, "internal");
      this.log.push(`${verb}: ${error.message}`);
    }
  }

  async create(): Promise<void> {
    const { store, deps } = this.controller;
    const { stored } = await createVolume(deps, aCreate(original), this.context());
    this.runLate();
    this.expect(store.disks.has(stored.id) && store.allFiles.has(stored.imagePath));
    if (this.alone) this.alive.add(stored.id);
  }

  async delete(name = original): Promise<void> {
    const { store, deps } = this.controller;
    const id = volumeIdFor(name);
    this.alive.delete(id);
    await deleteVolume(deps, id, this.context());
    this.runLate();
    this.expect(!store.disks.has(id) && this.filesOf(filePrefixOf(id, testCluster)).length === 0);
  }

  /** Kubernetes never asks again for what was once to be deleted; others may, of the same source. */
  async deleteClone(): Promise<void> {
    const name = this.pick([...this.volumes.keys()].slice(-2));
    if (name === original) return;
    if (name === this.latest && this.random.fraction() < 0.5) {
      this.volumes.set(`c${this.volumes.size}`, this.aSource());
    }
    await this.delete(name);
  }

  async clone(): Promise<void> {
    const { store, deps } = this.controller;
    if (this.volumes.size === 1) this.volumes.set("c1", this.aSource());
    const name = this.latest;
    const source = this.volumes.get(name)!;
    const id = volumeIdFor(name);
    const existed = store.disks.has(id);
    const content = this.contentOf(source);
    const range = { requiredBytes: BigInt(this.pick([1, 1, 6])) * gibibyte, limitBytes: 0n };
    const { stored, record } = await createVolume(deps, aCreate(name, { source, range }), this.context());
    this.runLate();
    this.expect(store.disks.has(id) && store.allFiles.has(stored.imagePath));
    assert.ok(stored.sizeBytes >= range.requiredBytes);
    if (!this.alone) return;
    this.alive.add(id);
    if (existed) return;
    assert.equal(store.tree.contents.get(stored.imagePath), content, this.log.join("\n"));
    if (record.blankEpoch > 0) assert.equal(content, undefined, "data in a blank volume");
  }

  async snapshot(): Promise<void> {
    const { store, deps } = this.controller;
    const name = this.pick(snapshotNames);
    const existed = this.contentOf({ kind: "snapshot", id: aSnapshotId(name) }, undefined);
    const hadOne = this.pathOf(aSnapshotId(name)) !== undefined;
    const content = this.contentOf({ kind: "volume", id: volumeIdFor(original) });
    const request = { name, source: volumeIdFor(original) };
    const { id, ready, imagePath, blank } = await createSnapshot(deps, request, this.context());
    this.runLate();
    if (!ready) return;
    this.expect(store.allFiles.has(imagePath));
    if (!this.alone) return;
    const found = store.tree.contents.get(imagePath);
    assert.equal(found, hadOne ? existed : content, this.log.join("\n"));
    if (blank) assert.equal(found, undefined, "data in a blank snapshot");
    this.frozen.set(imagePath, found);
    this.alive.add(id);
  }

  async deleteSnapshot(name = this.pick(snapshotNames)): Promise<void> {
    const id = aSnapshotId(name);
    this.alive.delete(id);
    for (const path of this.frozen.keys()) if (path.includes(id)) this.frozen.delete(path);
    await deleteSnapshot(this.controller.deps, id, this.context());
    this.runLate();
    this.expect(this.filesOf(id).length === 0);
  }

  async list(): Promise<void> {
    const listed = await listSnapshots(this.controller.deps, { id: "", source: "" }, this.context());
    const ready = listed.filter((one) => one.ready).map((one) => one.id);
    for (const id of this.alive) this.expect(!id.startsWith("snap-") || ready.includes(id));
  }

  async expand(): Promise<void> {
    const { store, deps } = this.controller;
    const id = volumeIdFor(this.pick([original, this.latest]));
    const requiredBytes = BigInt(1 + Math.floor(this.random.fraction() * 4)) * gibibyte;
    const answer = await expandVolume(deps, id, { requiredBytes, limitBytes: 0n }, this.context());
    this.runLate();
    this.expect(answer >= requiredBytes && (store.disks.get(id)?.sizeBytes ?? 0n) >= answer);
  }

  async publish(): Promise<void> {
    const { store, deps } = this.controller;
    const nodeId = this.pick(nodes);
    const id = volumeIdFor(this.pick([original, original, this.latest]));
    this.log.push(`publish ${id} to ${nodeId}`);
    const request = aPublish(nodeId);
    const { nqn, mayFormat } = await publishVolume(deps, id, request, testParameters, this.context());
    this.runLate();
    const disk = store.disks.get(id);
    this.expect(disk !== undefined && disk.exported && disk.exportNqn === nqn && !this.ended.has(nqn!));
    if (mayFormat === "true") {
      assert.match(nqn!, /:1-[0-9a-f]{8}$/);
      const found = store.tree.contents.get(disk!.imagePath);
      if (!this.reported.has(nqn!)) {
        assert.equal(found, undefined, `data may be formatted\n${this.log.join("\n")}`);
      }
    }
    const reported = this.reported.get(nqn!) ?? nodeId;
    assert.equal(reported, nodeId, `${nqn} for two nodes`);
    this.reported.set(nqn!, nodeId);
  }

  async unpublish(): Promise<void> {
    const { store, deps } = this.controller;
    const nodeId = this.pick(nodes);
    const id = volumeIdFor(this.pick([original, original, this.latest]));
    this.log.push(`unpublish ${id} from ${nodeId}`);
    await unpublishVolume(deps, id, nodeId, this.context());
    if (!this.alone) return;
    this.runLate();
    const disk = store.disks.get(id);
    for (const [nqn, reported] of this.reported) {
      if (reported !== nodeId || !nqn.includes(`:${id}:`)) continue;
      this.ended.add(nqn);
      this.expect(!disk?.exported || disk.exportNqn !== nqn);
    }
    const parsed = parseComment(disk?.comment ?? "");
    const holders = parsed.state === "record" ? parsed.comment.record.holders : [];
    this.expect(holders.every((holder) => holder.nodeId !== nodeId));
  }

  /** Deletes everything, as often as it takes; then nothing may be left but what others have there. */
  async end(): Promise<void> {
    const { store, deps, clock } = this.controller;
    this.ending = this.alone = true;
    for (let tries = 0, failed = true; failed; tries++) {
      assert.ok(tries < 5, this.log.join("\n"));
      failed = false;
      this.runAllLate();
      if (tries > 0) await clock.advance(130_000);
      const calls = [
        ...[...this.volumes.keys()].map((name) => () =>
          unpublishVolume(deps, volumeIdFor(name), "", testContext())
        ),
        ...snapshotNames.map((name) => () => this.deleteSnapshot(name)),
        ...[...this.volumes.keys()].map((name) => () => this.delete(name)),
      ];
      for (const call of calls) {
        await inTime(clock, call()).catch((error) => {
          this.log.push(`at the end: ${error}`);
          failed = true;
        });
      }
    }
    this.runAllLate();
    await clock.advance(130_000);
    const left = [...store.allFiles.keys()].filter((path) => path !== testBase);
    assert.deepEqual(left, this.bystanders, this.log.join("\n"));
    assert.deepEqual([...store.disks.keys()], ["other"]);
    assert.ok(store.tree.subvolumes.size <= 1);
    assert.equal(clock.waiting, 0, "a copy goes on");
  }

  /** What must hold whatever was answered. */
  check(): void {
    const { store } = this.controller;
    const log = this.log.join("\n");
    assert.deepEqual(store.violations, [], log);
    for (const { imagePath } of store.disks.values()) {
      const writers = store.reachable(imagePath).map((nqn) => this.reported.get(nqn) ?? "nobody");
      assert.ok(writers.length <= 1, `${writers} can write\n${log}`);
    }
    for (const path of this.bystanders) assert.ok(store.allFiles.has(path), `${path} is lost\n${log}`);
    for (const id of this.alive) {
      const path = id.startsWith("snap-") ? this.pathOf(id) : store.disks.get(id)?.imagePath;
      assert.ok(path !== undefined && store.allFiles.has(path), `${id} is lost\n${log}`);
    }
    for (const [path, content] of this.frozen) {
      if (store.allFiles.has(path)) {
        assert.equal(store.tree.contents.get(path), content, `${path} changed\n${log}`);
      }
    }
  }

  /** Nodes that were told an NQN write to it. */
  write(): void {
    const { store } = this.controller;
    for (const { exported, exportNqn, imagePath } of store.disks.values()) {
      if (!exported || !this.reported.has(exportNqn) || !store.allFiles.has(imagePath)) continue;
      if (this.random.fraction() < 0.7) store.tree.contents.set(imagePath, `write ${++this.writes}`);
    }
  }

  get latest(): string {
    return [...this.volumes.keys()].at(-1)!;
  }

  aSource(): SourceRef {
    return this.pick<SourceRef>([
      { kind: "volume", id: volumeIdFor(original) },
      ...snapshotNames.map((name) => ({ kind: "snapshot" as const, id: aSnapshotId(name) })),
    ]);
  }

  /** The image of a whole snapshot. */
  pathOf(snapshotId: string): string | undefined {
    return this.filesOf(snapshotId).find(({ path }) => /\/disk\.img$|\.img$/.test(path))?.path;
  }

  contentOf({ kind, id }: SourceRef, _?: undefined): string | undefined {
    const { store } = this.controller;
    const path = kind === "volume" ? store.disks.get(id)?.imagePath : this.pathOf(id);
    return path === undefined ? undefined : store.tree.contents.get(path);
  }

  /** Everything of this cluster in its folder whose name begins so. */
  filesOf(start: string) {
    return [...this.controller.store.allFiles.values()].filter(({ path }) =>
      path.startsWith(`${testBase}/${start}`) && path.includes(`.${testCluster}`)
    );
  }

  /** Some calls last long, some do not. */
  context(): CallContext {
    const deadlineMs = !this.ending && this.random.fraction() < 0.4
      ? this.controller.clock.now() + 5_000
      : Infinity;
    return testContext({ deadlineMs });
  }

  /** What the router still has not run must not undo an OK. */
  runLate(): void {
    if (this.alone) this.runAllLate();
  }

  runAllLate(): void {
    this.controller.store.runLate();
    this.lateSinceMs = this.controller.clock.now();
  }

  /** What must be so after an OK, unless another call came in between. */
  expect(so: boolean): void {
    assert.ok(so || !this.alone, `answered OK and is not so\n${this.log.join("\n")}`);
  }
}

for (const [pools, subvolumes] of [["Btrfs", true], ["without subvolumes", false]] as const) {
  Deno.test(`no history of calls, failures and reboots makes two writers, a false OK or a leak: ${pools}`, async () => {
    const succeeded = new Map<Verb, number>();
    for (let seed = 1; seed <= (isLong ? 1_200 : 120); seed++) {
      const history = new History(seed, subvolumes);
      for (let step = 0; step < 80; step++) await history.step();
      await history.end();
      for (const [verb, count] of history.succeeded) succeeded.set(verb, (succeeded.get(verb) ?? 0) + count);
    }
    for (const [verb, often] of verbs) {
      assert.ok((succeeded.get(verb) ?? 0) > often * 5, `the histories do get something done: ${verb}`);
    }
  });
}
