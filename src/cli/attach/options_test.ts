import assert from "node:assert/strict";
import { FlagError } from "../flags.ts";
import { hostIdentityOf } from "../../volume/model/host_identity.ts";
import { hostOf, readAttachOptions, readDetachOptions } from "./options.ts";

const id = "11111111-2222-4333-8444-555555555555";
const at = ["pvc-1", "--nvme-address", "10.0.0.1"];
const nobody = () => undefined;

Deno.test("readAttachOptions() connects as this node, unless it is told as whom", () => {
  const own = readAttachOptions([...at, "--node-id", "n1"], nobody);
  assert.deepEqual([own.subject, own.address, own.port, own.existing], ["pvc-1", "10.0.0.1", 4420, false]);
  assert.deepEqual(hostOf(own), hostIdentityOf("n1"));
  const named = readAttachOptions([...at, "--host-nqn", `nqn.2014-08.org.nvmexpress:uuid:${id}`], nobody);
  assert.deepEqual(hostOf(named), { hostNqn: `nqn.2014-08.org.nvmexpress:uuid:${id}`, hostId: id });
  const both = readAttachOptions([...at, "--host-nqn", "nqn.2020-01.org.example:a", "--host-id", id], nobody);
  assert.equal(hostOf(both).hostId, id);
});

const wrong: readonly (readonly [args: readonly string[], flag: string])[] = [
  [[], "the"],
  [["--existing"], "the"],
  [["pvc-1", "--node-id", "n1"], "--nvme-address"],
  [at, "--node-id"],
  [[...at, "--host-nqn", "nqn.2020-01.org.example:a"], "--host-id"],
  [[...at, "--host-nqn", "example", "--host-id", id], "--host-nqn"],
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

Deno.test("looking at a connection and ending one need neither address nor node id", () => {
  assert.equal(readAttachOptions(["pvc-1", "--existing"], nobody).existing, true);
  assert.equal(readDetachOptions(["pvc-1", "--json"], nobody).json, true);
  assert.throws(() => readDetachOptions([], nobody), FlagError);
});
