import { endings, endsAs, refusedUnchanged } from "../../../tests/fakes/endings.ts";
import assert from "node:assert/strict";
import { gibibyte, testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord, testBase } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { importedSource } from "../../volume/model/sources.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import { unpublishVolume } from "../attachments/unpublish.ts";
import { allowFormat } from "./allow_format.ts";
import { deleteVolume } from "./delete.ts";
import { expandVolume } from "./expand.ts";
import type { ControllerSettings } from "../deps.ts";

const context = testContext();
const epoch = { counter: 1, nonce: "0123abcd" };

function controller(disk: Partial<StoredVolume> = {}, settings: Partial<ControllerSettings> = {}) {
  const { store, deps } = testController(settings);
  store.put(aDisk(aRecord({ epoch, holders: [aHolder("a")] }), disk));
  const expand = (requiredBytes: bigint, limitBytes = 0n, id = "pvc-1") =>
    expandVolume(deps, id, { requiredBytes, limitBytes }, context);
  return { store, expand, size: () => store.disks.get("pvc-1")!.sizeBytes };
}

Deno.test("expandVolume() grows in two commands, one when it is large enough, and never shrinks", async () => {
  const { store, expand, size } = controller();
  assert.equal(await expand(2n * gibibyte - 5n), 2n * gibibyte);
  assert.deepEqual(store.calls.splice(0).map((call) => call.method), ["createView", "change"]);
  for (const required of [2n * gibibyte, gibibyte, 1n]) assert.equal(await expand(required), 2n * gibibyte);
  assert.equal(store.takeCount(), 3);
  assert.equal(size(), 2n * gibibyte);
});

Deno.test("expandVolume() leaves export and holders as they are", async () => {
  const { store, expand } = controller();
  const before = store.disks.get("pvc-1")!;
  await expand(2n * gibibyte);
  const { sizeBytes: _size, comment, ...rest } = store.disks.get("pvc-1")!;
  assert.deepEqual({ ...rest, sizeBytes: gibibyte, comment: before.comment }, before);
  assert.match(comment, / g=1 h=a@/);
});

Deno.test("expandVolume() refuses what it cannot do and changes nothing", async () => {
  const { store, expand } = controller();
  const before = store.snapshot();
  await assert.rejects(
    expand(101n * gibibyte),
    refusal("out-of-range", /needs 100 GiB, 99 GiB left/),
  );
  await assert.rejects(expand(2n * gibibyte, gibibyte), refusal("out-of-range"));
  await assert.rejects(expand(0n, gibibyte / 2n), refusal("out-of-range"));
  await assert.rejects(expand(-5n), refusal("invalid"));
  await assert.rejects(expand(0n), refusal("invalid"));
  await assert.rejects(expand(gibibyte, 0n, "pvc-2"), refusal("not-found"));
  assert.deepEqual(store.snapshot(), before);
});

Deno.test("expandVolume() grows nothing that has lost its image", async () => {
  const { store, expand, size } = controller();
  store.allFiles.delete(store.disks.get("pvc-1")!.imagePath);
  await assert.rejects(expand(2n * gibibyte), refusal("unavailable", /does not show its image/));
  assert.equal(size(), gibibyte);
});

Deno.test("expandVolume() grows to the last byte of the pool", async () => {
  assert.equal(await controller().expand(100n * gibibyte), 100n * gibibyte);
});

Deno.test("expandVolume() does not call a volume missing while that proves nothing", async () => {
  const { store, expand } = controller();
  store.hidden.add("pvc-1");
  await assert.rejects(expand(2n * gibibyte), refusal("unavailable", /its image is there/));
  store.reboot();
  await assert.rejects(expand(2n * gibibyte), refusal("unavailable", /booted only/));
});

Deno.test("expandVolume() answers only what is read back, however the command ended", async () => {
  for (const ending of endings) {
    const [, mishap] = ending;
    const { store, expand, size } = controller();
    store.mishap("change", mishap);
    await endsAs(ending, expand(2n * gibibyte));
    assert.equal(await expand(2n * gibibyte), 2n * gibibyte);
    assert.equal(size(), 2n * gibibyte);
  }
});

Deno.test("expandVolume() reports a growth that was accepted and had no effect", async () => {
  const { store, expand } = controller();
  store.mishap("change", { after: () => store.edit("pvc-1", { sizeBytes: gibibyte }) });
  await assert.rejects(expand(2n * gibibyte), refusal("precondition", /took the new size and did not grow/));
});

Deno.test("expandVolume() refuses what the router is known not to do, before it changes anything", async () => {
  const { store, expand, size } = controller({ exported: true }, { growth: "after-toggle" });
  const text = /only while it is not exported: unpublish it first/;
  await refusedUnchanged(store, () => expand(2n * gibibyte), refusal("precondition", text));
  assert.deepEqual(store.calls.map((call) => call.method), ["createView"]);
  assert.equal(await expand(gibibyte), gibibyte, "it is large enough");
  store.edit("pvc-1", { exported: false });
  assert.equal(await expand(2n * gibibyte), 2n * gibibyte);
  assert.equal(size(), 2n * gibibyte);
});

Deno.test("expandVolume() is busy when the record changes between looking and acting", async () => {
  const { store, expand, size } = controller();
  store.mishap("change", { before: () => store.edit("pvc-1", { comment: aDisk(aRecord()).comment }) });
  await assert.rejects(expand(2n * gibibyte), refusal("busy"));
  assert.equal(size(), gibibyte);
});

Deno.test("expandVolume() is busy when another controller grows the volume to less at the same time", async () => {
  const { store, expand, size } = controller();
  const calls = await Promise.allSettled([expand(2n * gibibyte), expand(3n * gibibyte)]);
  assert.deepEqual(calls.map(({ status }) => status), ["fulfilled", "rejected"]);
  const { reason } = calls[1] as PromiseRejectedResult;
  refusal("busy", /grown to another size at the same time/)(reason);
  assert.equal(await expand(3n * gibibyte), 3n * gibibyte);
  assert.deepEqual([size(), store.violations], [3n * gibibyte, []]);
});

Deno.test("expandVolume() refuses a disk that uses another volume's image", async () => {
  const { deps, store } = testController();
  store.put(aDisk(aRecord(), { imagePath: aDisk(aRecord(), { id: "pvc-2" }).imagePath }));
  await refusedUnchanged(
    store,
    () => expandVolume(deps, "pvc-1", { requiredBytes: 2n * gibibyte, limitBytes: 0n }, testContext()),
    refusal("precondition", /a file of another name/),
  );
});

/** A volume that this process has withdrawn `agoMs` milliseconds ago, and how long a delete would still have to wait. */
async function withdrawn(agoMs: number) {
  const { store, deps, clock } = testController();
  store.put(aDisk(aRecord({ epoch, holders: [aHolder("a")] }), { exported: true }));
  await unpublishVolume(deps, "pvc-1", "a", context);
  await clock.advance(agoMs);
  const expand = (sizeBytes: bigint) =>
    expandVolume(deps, "pvc-1", { requiredBytes: sizeBytes, limitBytes: 0n }, context);
  const remove = (deadlineMs = 0) =>
    deleteVolume(deps, "pvc-1", testContext({ deadlineMs: clock.now() + deadlineMs }));
  return { store, deps, clock, expand, remove };
}

Deno.test("a volume that was expanded after its grace is deleted without another one", async () => {
  const { store, expand, remove, clock } = await withdrawn(10_000);
  await expand(2n * gibibyte);
  await expand(3n * gibibyte);
  await remove(1);
  assert.deepEqual([store.disks.size, clock.waiting], [0, 0]);
});

Deno.test("a volume that was expanded or may be formatted again waits only for what is left of its grace", async () => {
  const { expand, remove, clock, deps } = await withdrawn(3_000);
  await expand(2n * gibibyte);
  await clock.advance(1_000);
  await allowFormat(deps, "pvc-1", context);
  await assert.rejects(remove(1), refusal("unavailable", /try again in 6 s/));
});

Deno.test("expandVolume() does not shorten the grace of a withdrawal by another process", async () => {
  const { store, deps, clock, expand, remove } = await withdrawn(10_000);
  const withdrawnAtSeconds = clock.now() / 1000;
  store.put(aDisk(aRecord({ epoch, withdrawnAtSeconds })));
  await expand(2n * gibibyte);
  await assert.rejects(remove(1), refusal("unavailable", /try again in 10 s/));
  await clock.advance(4_000);
  await expand(3n * gibibyte);
  await assert.rejects(remove(1), refusal("unavailable", /try again in 6 s/));
  store.put(aDisk(aRecord({ epoch, withdrawnAtSeconds: withdrawnAtSeconds + 5 })));
  await expand(4n * gibibyte);
  await assert.rejects(remove(1), refusal("unavailable", /try again in 10 s/));
  assert.equal(deps.settings.unexportGraceMs, 10_000);
});

Deno.test("expandVolume() lets the grace begin anew when the end of its command is unknown", async () => {
  const { store, expand, remove } = await withdrawn(10_000);
  store.mishap("change", { unreadable: true });
  await assert.rejects(expand(2n * gibibyte));
  await assert.rejects(remove(1), refusal("unavailable", /try again in 10 s/));
});

Deno.test("expandVolume() leaves the user of an encrypted volume the requested size, and answers that size", async () => {
  const header = 16n << 20n;
  const { store, deps } = testController();
  store.put(aDisk(aRecord({ epoch, capabilities: "ext4/ew", holders: [aHolder("a")] })));
  const expand = (requiredBytes: bigint, limitBytes = 0n) =>
    expandVolume(deps, "pvc-1", { requiredBytes, limitBytes }, context);
  assert.equal(await expand(2n * gibibyte, 2n * gibibyte), 2n * gibibyte);
  assert.equal(store.disks.get("pvc-1")!.sizeBytes, 2n * gibibyte + header);
  assert.equal(await expand(gibibyte), 2n * gibibyte);
  assert.equal(await expand(3n * gibibyte), 3n * gibibyte);
  await assert.rejects(expand(0n, gibibyte), refusal("out-of-range"));
});

Deno.test("expandVolume() cuts nothing of an image that is larger than its disk, as the router forgot that it had grown", async () => {
  const { store, expand, size } = controller();
  const { imagePath } = store.disks.get("pvc-1")!;
  store.putFile(imagePath, 4n * gibibyte);
  await assert.rejects(expand(2n * gibibyte, 3n * gibibyte), refusal("out-of-range"));
  assert.equal(await expand(2n * gibibyte), 4n * gibibyte);
  assert.deepEqual([size(), store.violations], [4n * gibibyte, []]);
});

Deno.test("expandVolume() cuts nothing of an imported file, for which it looks by its path", async () => {
  const { store, deps } = testController();
  const imagePath = `${testBase}/theirs.img`;
  store.put(aDisk(aRecord({ source: importedSource("pvc-1", imagePath) }), { imagePath }));
  store.putFile(imagePath, 4n * gibibyte);
  const expand = () => expandVolume(deps, "pvc-1", { requiredBytes: 2n * gibibyte, limitBytes: 0n }, context);
  assert.equal(await expand(), 4n * gibibyte);
  assert.deepEqual(store.calls.map(({ method }) => method), ["createView", "view", "change"]);
  assert.deepEqual(store.violations, []);
  store.allFiles.delete(imagePath);
  await assert.rejects(expand(), refusal("precondition", /its image does not exist/));
});
