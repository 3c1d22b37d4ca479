import assert from "node:assert/strict";
import { fakeCommandIo } from "../../../tests/fakes/command_io.ts";
import { FakeKernelFiles } from "../../../tests/fakes/kernel_files.ts";
import { VolumeError } from "../../volume/errors.ts";
import { describeVolumes, readDescribeOptions } from "./describe.ts";
import { exitCodes } from "../io.ts";
import type { NodeParts } from "../serve/node.ts";

const id = "snap-7c9e6679-7425-40de-944b-e07fc1f90ae7-at-3a9f8c02d1";
const read = (...args: string[]) =>
  readDescribeOptions([...args, "--node-id", "n1"], () => undefined, new FakeKernelFiles());

Deno.test("describe says of a snapshot of the legacy driver what it is, and reads nothing", async () => {
  const { io, out, err } = fakeCommandIo();
  const parts = new Proxy({} as NodeParts, { get: () => assert.fail("nothing is to be looked at") });
  for (const flags of [[], ["--json"]]) {
    assert.equal(await describeVolumes(read(id, ...flags), parts, io), exitCodes.unknown);
    assert.match(err.pop()!, /snap-7c9e6679.*no copy of a volume's data.*from-the-go-driver[.]md$/);
  }
  assert.deepEqual(out, []);
});

Deno.test("describe refuses any other id that is no volume's", () => {
  for (const other of [`${id}x`, id.slice(0, 40), `snap-${"1".repeat(28)}`]) {
    assert.throws(() => read(other), VolumeError, other);
  }
});
