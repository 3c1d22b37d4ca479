import assert from "node:assert/strict";
import { Libc } from "../../../src/host/libc.ts";
import { PathWatch } from "../../../src/node/connections/path_watch.ts";
import { joinsPaths } from "../../../src/nvme/kernel/sysfs.ts";
import { GuestVolume, NodeTests, sh, shell, timed, until } from "../kit/node.ts";
import { block, call } from "../../node/harness.ts";

/** Whether the kernel makes one device of several paths. */
const joined = joinsPaths(new Libc());
const small = 32n << 20n;
const [first, second] = ["10.99.0.1", "10.99.0.2"] as const;
/** A target that says nothing is missed by the keep-alive alone. */
const volumeContext = { reconnectDelay: "1", keepAliveTmo: "2" };

/** Several addresses: joined by the kernel, or one of them. */
export const pathRows = new NodeTests();

const capability = block;
pathRows.add(
  `several addresses, multipath ${joined ? "on: one is lost, and I/O goes on" : "off: one of them is used"}`,
  async (node) => {
    const volume = new GuestVolume(node, "pvc-1", small);
    await node.stage(volume, { capability, volumeContext });
    await node.publish(volume, { capability });
    const connections = async () =>
      (await node.connector.connections(volume.nqn, call())).map(({ address, stateName }) =>
        `${address} ${stateName}`
      );
    const devices = (await sh("ls /dev")).split("\n").filter((name) => /^nvme[0-9]+n[0-9]+$/.test(name));
    assert.equal(devices.length, 1);
    if (!joined) {
      assert.deepEqual(await connections(), [`${first} live`]);
      const problems = await node.problems(volume);
      await node.unpublish(volume);
      await node.unstage(volume);
      return `one connection, one device, health: ${problems}`;
    }
    // The stage waits for one path only.
    const watch = new PathWatch({ deps: node.deps, lock: { tryTake: () => () => {} } });
    await watch.check();
    assert.deepEqual((await connections()).toSorted(), [`${first} live`, `${second} live`]);
    assert.deepEqual(await node.problems(volume), []);
    node.nvmet.setReachable(second, false);
    const write = () =>
      shell(`dd if=/dev/urandom of=${node.target("pvc-1")} bs=64k count=16 oflag=direct conv=notrunc`);
    const [{ code }, writeMs] = await timed(write());
    assert.equal(code, 0);
    const missedMs = await until(
      "missed",
      async () => (await connections()).includes(`${second} connecting`),
    );
    assert.deepEqual(await node.problems(volume), ["PathLost"]);
    assert.equal((await write()).code, 0);
    // A call finds the connections as they are, and needs but one.
    await node.stage(volume, { capability, volumeContext });
    node.nvmet.setReachable(second, true);
    const backMs = await until(
      "back",
      async () => (await connections()).includes(`${second} live`),
      60_000,
    );
    assert.deepEqual(await node.problems(volume), []);
    await node.unpublish(volume);
    await node.unstage(volume);
    return `a write over the loss: ${writeMs} ms; PathLost after ${missedMs} ms; joined again ${backMs} ms after its return`;
  },
  { addresses: [first, second] },
);

pathRows.add("several addresses, one of them dead: staged over the other, and told", async (node) => {
  const volume = new GuestVolume(node, "pvc-1", small);
  node.nvmet.setReachable(first, false);
  const [, tookMs] = await timed(node.stage(volume, { capability, volumeContext }));
  const addresses = async () =>
    (await node.connector.connections(volume.nqn, call())).map(({ address }) => address).toSorted();
  assert.deepEqual(await addresses(), [second]);
  assert(tookMs < 10_000, "the dead address is not waited for");
  const problems = await node.problems(volume);
  node.nvmet.setReachable(first, true);
  await new Promise((resolve) => setTimeout(resolve, 6_000)); // So long its silence counts.
  await new PathWatch({ deps: node.deps, lock: { tryTake: () => () => {} } }).check();
  assert.deepEqual(await addresses(), joined ? [first, second] : [second]);
  await node.unstage(volume);
  return `staged over the other in ${tookMs} ms, health: ${problems}; joined by the watch`;
}, { addresses: [first, second] });
