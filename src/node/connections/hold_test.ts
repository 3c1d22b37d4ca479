import assert from "node:assert/strict";
import { block, ext4, FakeNode } from "../../../tests/fakes/node_world.ts";
import { VolumeError } from "../../volume/errors.ts";

const injected = new VolumeError("internal", "injected");
/** What goes by the path or the number of the device, and is not kept from another one by a mount. */
const byPath = ["setReadOnly", "probe", "erase", "format", "check", "mountDevice", "bind"];

for (const capability of [ext4, block]) {
  Deno.test(`stage() and publish() of a ${capability.access} volume keep its device open while tools go by its path, and no longer`, async () => {
    const node = new FakeNode();
    const seen = new Set<string>();
    node.before = (operation) => {
      if (!byPath.includes(operation)) return;
      seen.add(operation);
      assert.deepEqual([...node.held], ["7:3"], operation);
    };
    await node.stage({ capability });
    assert.deepEqual([...node.held], []);
    await node.publish({ capability });
    assert.deepEqual([...node.held], []);
    assert.ok(seen.size >= 2);
  });

  Deno.test(`stage() and publish() of a ${capability.access} volume let go of its device before they disconnect, whatever fails`, async () => {
    const whole = new FakeNode();
    await whole.stage({ capability });
    await whole.publish({ capability });
    for (let failing = 1; failing <= whole.operations.length; failing++) {
      const node = new FakeNode();
      node.before = (operation, count) => {
        if (operation === "disconnect") assert.deepEqual([...node.held], []);
        if (count === failing) throw injected;
      };
      const attempt = node.stage({ capability }).then(() => node.publish({ capability }));
      await assert.rejects(attempt, (error) => error === injected);
      assert.deepEqual([...node.held], [], whole.operations[failing - 1]);
    }
  });
}

Deno.test("stage() of a new or a read-only file system fails when its device goes before the mount", async () => {
  for (const readonly of ["false", "true"]) {
    const node = new FakeNode();
    if (readonly === "true") node.device.content = "ext4";
    const { hold } = node.world.devices;
    node.world.devices.hold = async (device, context) => {
      const letGo = await hold(device, context);
      node.device.connected = false;
      return letGo;
    };
    await assert.rejects(node.stage({}, { readonly }), (error) => VolumeError.is(error, "unavailable"));
    assert.ok(!node.operations.includes("mountDevice") && !node.operations.includes("format"));
  }
});
