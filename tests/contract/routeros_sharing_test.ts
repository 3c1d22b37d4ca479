// How many commands many equal calls cost the router when they come at the same time. No call gets an answer that is
// older than the call.
import assert from "node:assert/strict";
import { systemClock } from "../../src/host/clock.ts";
import { addOne, contractTest, newVolume, slot, truth, wanted } from "./_routeros_bench.ts";

contractTest(
  "50 inventories at once cost one command before the connection is up, and nine after",
  async (bench) => {
    const { store, call, cost } = bench;
    const lists = () => Promise.all(Array.from({ length: 50 }, () => store.inventory(call())));
    const first = await lists();
    assert.deepEqual(cost(), { execs: 1, statements: 2 });
    assert.deepEqual(new Set(first.map(({ volumes }) => volumes.length)), new Set([100]));
    // Eight channels are free, so eight commands are sent at once. The ninth waits, and answers all other calls.
    await lists();
    assert.deepEqual(cost(), { execs: 9, statements: 18 });
  },
  { seedDisks: 100 },
);

contractTest(
  "an inventory shows what was there when it was asked for, though older ones run",
  async (bench) => {
    const { store, call, router, cost } = bench;
    await addOne(bench);
    cost();
    const disk = router.model.disks.findBySlot(slot)!;
    router.faults.arm({ match: "/disk print", nth: 1, times: 8, action: "hang", value: "after" });
    const older = Array.from({ length: 8 }, () => store.inventory(call()));
    await systemClock.sleep(50);
    assert.equal(cost().execs, 8);
    router.model.disks.add({ ...disk, slot: "pvc-new", comment: "" });
    const newer = await Promise.all(Array.from({ length: 20 }, () => store.inventory(call())));
    for (const { volumes } of newer) assert.deepEqual(volumes.map(({ id }) => id), [slot, "pvc-new"]);
    await Promise.all(older);
  },
);

contractTest(
  "adds whose end is unknown share what they read afterwards, and each finds its own",
  async (bench) => {
    const { store, call, router } = bench;
    await addOne(bench);
    const ids = Array.from({ length: 8 }, (_, i) => `pvc-${i}`);
    await store.createView(wanted(slot), call());
    router.faults.arm({ match: "/disk add", nth: 8, times: 1, action: "drop-after", value: undefined });
    const outcomes = await Promise.all(ids.map((id) => store.add(newVolume(id), call())));
    for (const [index, { after }] of outcomes.entries()) {
      const id = ids[index]!;
      assert.deepEqual(after.volumes.find((volume) => volume.id === id), truth(router, id));
    }
  },
);
