import assert from "node:assert/strict";
import { control } from "../../../tests/support/control_port.ts";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import {
  addCommand,
  makeBasePath,
  SshClient,
  startQuickly,
} from "../../../tests/support/simulated_router.ts";
import type { Simulator } from "../simulator.ts";

async function rebooted(
  options: Record<string, number>,
  test: (simulator: Simulator, client: SshClient, clock: FakeClock) => Promise<void>,
) {
  const clock = new FakeClock();
  await using simulator = await startQuickly({ clock });
  using client = await SshClient.connect(simulator);
  await client.exec(`${makeBasePath}; ${addCommand("a", 'comment="one" nvme-tcp-export="yes"')}`);
  await clock.advance(10_000);
  await client.exec(`/disk set "a" comment="two"; ${addCommand("b")}`);
  await clock.advance(10);
  const { downMs } = await control<{ downMs: number }>(simulator, "POST /reboot", options);
  assert.equal(downMs, options["downMs"] ?? 0);
  await test(simulator, client, clock);
}

async function health(simulator: Simulator): Promise<string> {
  return (await control<{ status: string }>(simulator, "GET /health")).status;
}

Deno.test("a reboot resets sessions and refuses new ones while the router is down", async () => {
  await rebooted({ downMs: 1000 }, async (simulator, client, clock) => {
    await client.closed;
    await assert.rejects(SshClient.connect(simulator));
    assert.equal(await health(simulator), "down");
    await clock.advance(1000);
    assert.equal(await health(simulator), "up");
    using again = await SshClient.connect(simulator);
    const { stdout } = await again.exec(":put [/system resource get uptime]");
    assert.equal(stdout, "00:00:00\r\n");
  });
});

Deno.test("after a reboot file disks and their exports come late, the rest at once", async () => {
  await rebooted({ downMs: 100, disksLateMs: 5000 }, async (simulator, _client, clock) => {
    const { disks, exports } = simulator.model;
    await clock.advance(5099);
    assert.deepEqual(disks.list().map(({ type }) => type), ["hardware", "hardware", "raid"]);
    assert.deepEqual(exports.list(), []);
    await clock.advance(1);
    assert.equal(disks.list().length, 5);
    assert.deepEqual(exports.list(), ["nqn.2000-02.com.mikrotik:a"]);
  });
});

Deno.test("while file disks are late their slots are taken", async () => {
  await rebooted({ disksLateMs: 5000 }, async (simulator, _client, clock) => {
    await clock.advance(0);
    using client = await SshClient.connect(simulator);
    const { stdout } = await client.exec(`:put [:len [/disk find where slot="a"]]; ${addCommand("a")}`);
    assert.equal(stdout, "0\r\nfailure: already have such slot\r\n");
  });
});

Deno.test("a reboot may lose the latest configuration; the files stay", async () => {
  await rebooted({ loseLastMs: 1000 }, async (simulator, _client, clock) => {
    await clock.advance(0);
    const { disks, files } = simulator.model;
    assert.equal(disks.findBySlot("a")?.comment, "one");
    assert.equal(disks.findBySlot("b"), undefined);
    assert.notEqual(files.find("storage-pool/metal-csi/b.img"), undefined);
  });
});

Deno.test("a reboot renumbers, and keeps what was saved", async () => {
  await rebooted({}, async (simulator, _client, clock) => {
    await clock.advance(0);
    const { disks } = simulator.model;
    assert.equal(disks.findBySlot("a")?.comment, "two");
    assert.deepEqual(disks.list().map(({ id }) => id), [1, 2, 3, 4, 5]);
    simulator.model.disks.remove(disks.findBySlot("a")!.id);
    assert.equal(disks.add({ ...disks.findBySlot("b")!, slot: "c" }).id, 6);
  });
});

Deno.test("a second reboot starts the wait again", async () => {
  await rebooted({ downMs: 1000 }, async (simulator, _client, clock) => {
    await clock.advance(500);
    await control(simulator, "POST /reboot", { downMs: 1000 });
    await clock.advance(999);
    assert.equal(await health(simulator), "down");
    await clock.advance(1);
    assert.equal(await health(simulator), "up");
  });
});
