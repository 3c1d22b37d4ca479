// When the connection is lost at any command of `rds-csi import`, the disk has no record or a complete one, and its
// file is unchanged.
import assert from "node:assert/strict";
import type { FaultAction } from "../../src/simulator/faults.ts";
import { parseComment } from "../../src/volume/model/record.ts";
import { addDisk, disk, doImport, path, startWithFile } from "../support/static_disk.ts";

const actions: readonly FaultAction[] = ["drop-before", "drop-after"];
const nqn = "nqn.2024-01.org.example:films";

/** What is imported, with the largest number of commands that it takes. */
const ways: readonly (readonly [string, Record<string, unknown> | undefined, readonly string[], number])[] = [
  ["a disk", { "mount-filesystem": true }, ["data"], 3],
  ["an exported disk", { "nvme-tcp-export": true, "nvme-tcp-server-nqn": nqn }, [
    "data",
    "--exported-is-unused",
  ], 4],
  ["a file", undefined, ["--path", path], 4],
];

for (const [what, made, args, most] of ways) {
  for (const action of actions) {
    Deno.test(`${what}: ${action} at each command of an import leaves nothing or all of it, and the next one ends well`, async () => {
      for (let nth = 1; nth <= most; nth++) {
        await using scene = await startWithFile();
        const { stack } = scene;
        if (made !== undefined) await addDisk(stack, made);
        const before = await disk(stack);
        stack.simulator.faults.arm({ match: "", nth, times: 1, action, value: undefined });
        const first = await doImport(stack, ...args, "--kind", "ext4").catch((error) => error);
        const after = await disk(stack);
        const { state } = parseComment(String(after?.["comment"] ?? ""));
        // Text beside the record is kept in every case.
        if (state === "none") assert.deepEqual(after, before);
        else assert.equal(state, "record");
        if (state === "record" && made !== undefined) assert.match(String(after!["comment"]), /^films \{/);
        stack.simulator.faults.clear();
        const { out } = await doImport(stack, ...args, "--kind", "ext4");
        assert.match(out, /volumeHandle: "data"/);
        if (!(first instanceof Error)) assert.equal(first.out, out);
        assert.equal(stack.simulator.model.disks.findBySlot("data")!.exported, false);
        await scene.assertIntact();
      }
    });
  }
}

Deno.test("an import takes three commands, four of a file or with an export to withdraw, and two when it was done", async () => {
  for (const [, made, args, most] of ways) {
    await using scene = await startWithFile();
    if (made !== undefined) await addDisk(scene.stack, made);
    const count = async () => {
      const before = (await scene.stack.count()).execs;
      await doImport(scene.stack, ...args, "--kind", "ext4");
      return (await scene.stack.count()).execs - before;
    };
    assert.deepEqual([await count(), await count()], [most, 2]);
  }
});
