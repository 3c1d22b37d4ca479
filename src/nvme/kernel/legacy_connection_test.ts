import assert from "node:assert/strict";
import { type FakeController } from "../../../tests/fakes/nvme_kernel.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { hostIdentityOf } from "../../volume/model/host/identity.ts";
import { Deps, host, prefix } from "../../../tests/support/kernel_connector.ts";

const nqn = `${prefix}:pvc-0f8fad5b-d9cb-469f-a165-70867728950e`;
const [A, B] = ["10.0.0.1", "10.0.0.2"] as const;
/** The legacy driver's connection, with the host identity that the tool made up. */
const theirs = { nqn, address: A, ...hostIdentityOf("made-up") };

/** A connector on a kernel with a connection of the legacy driver, mounted unless the test says otherwise. */
function deps(difference: Partial<FakeController> = {}, use: "mounted" | "unused" = "mounted") {
  const kernel = new Deps(true, 5_000);
  const controller = kernel.add({ ...theirs, ...difference });
  if (use === "mounted") {
    const { minor } = kernel.namespaces[0]!;
    kernel.mounts.push({
      ...{ mountId: 1, parentId: 0, mountPoint: "/staging", mountOptions: [], superOptions: [] },
      ...{ deviceNumber: `259:${minor}`, filesystem: "ext4", source: "/dev/nvme0n1", root: "/" },
    });
  }
  const connect = (addresses: readonly string[] = [A]) =>
    kernel.inTime(kernel.connect({ nqn: controller.nqn, addresses, port: 4420 }));
  return { kernel, connect };
}

Deno.test("connect() keeps a connection of the legacy driver that is in use, and warns", async () => {
  for (const addresses of [[A], [A, B]]) {
    const { kernel, connect } = deps();
    await connect(addresses);
    assert.deepEqual(kernel.controllers.map(({ hostNqn }) => hostNqn), [theirs.hostNqn]);
    assert.deepEqual(kernel.processes.lines, []);
    assert.deepEqual(kernel.warnings.length, 1);
    assert.match(
      kernel.warnings[0]!,
      /^keeps the connection that the legacy driver has made, because it is in use/,
    );
  }
});

Deno.test("connect() replaces an unused connection of the legacy driver", async () => {
  const { kernel, connect } = deps({}, "unused");
  await connect();
  assert.deepEqual(kernel.controllers.map(({ hostNqn }) => hostNqn), [host.hostNqn]);
});

Deno.test("connect() waits for a lost connection of the legacy driver, and replaces none that is in use", async () => {
  const { kernel, connect } = deps({ state: "connecting" });
  await assert.rejects(connect(), refusal("unavailable", /does not become live/));
  assert.deepEqual(kernel.processes.lines, []);
});

const others: Readonly<Record<string, Partial<FakeController>>> = {
  "to another address": { address: "10.9.9.9" },
  "to another port": { port: 4421 },
  "over another transport": { transport: "rdma" },
  "under an NQN of an epoch": { nqn: `${nqn}:1-0a0b0c0d` },
};
for (const [what, difference] of Object.entries(others)) {
  Deno.test(`connect() refuses one as another host ${what} that is in use`, async () => {
    const { kernel, connect } = deps(difference);
    await assert.rejects(connect(), refusal("precondition", /in use: .*mounted at .staging/));
    assert.deepEqual(kernel.processes.lines, []);
  });
}
