import assert from "node:assert/strict";
import { Deps, prefix } from "../../../tests/support/kernel_connector.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";

const target = { addresses: ["10.0.0.1"], port: 4420 };

for (const foreign of ["nqn.2024-01.com.example:x", `${prefix}x:pvc-1`, prefix, ""]) {
  Deno.test(`no call changes anything of ${JSON.stringify(foreign)}`, async () => {
    const deps = new Deps();
    const { connector, call } = deps;
    deps.add({ nqn: foreign });
    await assert.rejects(connector.connect({ ...target, nqn: foreign }, call), refusal("precondition"));
    await assert.rejects(connector.disconnect(foreign, call), refusal("precondition"));
    await assert.rejects(connector.forceDisconnect(foreign, call), refusal("precondition"));
    assert.deepEqual(deps.processes.lines, []);
  });
}

Deno.test("disconnect() and forceDisconnect() are done where nothing is connected, under an earlier prefix too", async () => {
  const { connector, call, processes } = new Deps();
  await connector.disconnect("nqn.2024-01.com.example:pvc-1", call);
  await connector.forceDisconnect("nqn.2024-01.com.example:pvc-1", call);
  assert.deepEqual(processes.lines, []);
});
