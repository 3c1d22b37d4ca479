import assert from "node:assert/strict";
import { FlagError } from "../flags.ts";
import { readAttachOptions, readDetachOptions } from "./options.ts";

const at = ["pvc-1", "--nvme-address", "10.0.0.1"];
const nobody = () => undefined;

Deno.test("readAttachOptions() reads the volume and its address", () => {
  const own = readAttachOptions([...at, "--node-id", "n1"], nobody);
  assert.deepEqual([own.subject, own.address, own.port, own.existing], ["pvc-1", "10.0.0.1", 4420, false]);
  assert.equal(own.config.nodeId, "n1");
});

const wrong: readonly (readonly [args: readonly string[], flag: string])[] = [
  [[], "the"],
  [["--existing"], "the"],
  [["pvc-1", "--node-id", "n1"], "--nvme-address"],
  [at, "--node-id"],
  [["pvc-1", "--nvme-address", "10.0.0.1:4420", "--node-id", "n1"], "--nvme-address"],
  [[...at, "--node-id", "n1", "--size", "1G"], "--size"],
  [[...at, "--node-id", "n1", "--connector", "loop"], "--loop-backing"],
];

for (const [args, flag] of wrong) {
  Deno.test(`readAttachOptions() refuses ${JSON.stringify(args)} and names ${flag}`, () => {
    assert.throws(() => readAttachOptions(args, nobody), (error) => {
      assert.ok(error instanceof FlagError);
      assert.deepEqual(error.problems.map((text) => text.split(" ")[0]), [flag]);
      return true;
    });
  });
}

Deno.test("inspecting a connection and ending one need neither address nor node id", () => {
  assert.equal(readAttachOptions(["pvc-1", "--existing"], nobody).existing, true);
  assert.equal(readDetachOptions(["pvc-1", "--json"], nobody).json, true);
  assert.throws(() => readDetachOptions([], nobody), FlagError);
});
