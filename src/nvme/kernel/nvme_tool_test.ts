import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { fakeCall } from "../../../tests/fakes/contexts.ts";
import { FakeNvmeKernel } from "../../../tests/fakes/nvme_kernel.ts";
import { hostIdentityOf } from "../../volume/model/host/identity.ts";
import { NvmeTool } from "./nvme_tool.ts";

const nqn = "nqn.2000-02.com.mikrotik:pvc-1:1-0a0b0c0d";

for (const there of [true, false]) {
  const what = there
    ? "says so of a controller that is there and cannot be held"
    : "is done with one that has gone";
  Deno.test(`disconnect() ${what}`, async () => {
    const kernel = new FakeNvmeKernel({ multipath: true });
    const clock = new FakeClock();
    const { name } = kernel.add({ nqn, state: "connecting" });
    const hold = () => {
      if (!there) kernel.remove(nqn);
      return undefined;
    };
    const { processes, files } = kernel;
    const attributes = { write: () => {}, hold };
    const tool = new NvmeTool({ processes, files, attributes, clock, host: hostIdentityOf("node-1") });
    const { code, stderr } = await tool.disconnect(nqn, fakeCall(clock));
    assert.deepEqual([code, stderr.includes(`${name}/delete_controller`)], there ? [1, true] : [0, false]);
    assert.deepEqual(processes.lines, []);
  });
}
