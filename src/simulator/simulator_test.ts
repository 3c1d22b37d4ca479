import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { addCommand, makeBasePath, SshClient, startQuickly } from "../../tests/support/simulated_router.ts";
import { startSimulator, stoppableClock } from "./simulator.ts";
import { routerHostKey } from "../../tests/fakes/ssh_keys.ts";

Deno.test("two simulators in one process share nothing", async () => {
  await using first = await startQuickly();
  await using second = await startQuickly({ profile: "ros-7.21", pools: [{ name: "other" }] });
  using client = await SshClient.connect(first);
  await client.exec(`${makeBasePath}; ${addCommand("a")}; /disk remove x`);
  assert.notEqual(first.sshPort, second.sshPort);
  assert.equal(second.model.disks.findBySlot("a"), undefined);
  assert.notEqual(second.model.disks.findBySlot("other"), undefined);
  assert.deepEqual(second.journal.counts, { execs: 0, statements: 0, bytes: 0 });
  assert.deepEqual(second.violations.list(), []);
  assert.equal(first.model.profile.name, "ros-7.24");
});

Deno.test("closing withdraws the links and leaves the files", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const options = { backingDirectory: folder, exporter: "loop" as const, seedDisks: 2 };
    const simulator = await startQuickly(options);
    const client = await SshClient.connect(simulator);
    await client.exec('/disk set "seed-00001" nvme-tcp-export="yes" nvme-tcp-server-nqn="nqn.a"');
    client[Symbol.dispose]();
    assert.equal((await Deno.stat(`${folder}/exports/nqn.a`)).size, 1073741824);
    await simulator.close();
    await simulator.close();
    assert.deepEqual(Array.from(Deno.readDirSync(`${folder}/exports`)), []);
    assert.equal((await Deno.stat(`${folder}/files/storage-pool/metal-csi/seed-00001.img`)).isFile, true);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("closing ends what still runs, and leaves no timer behind", async () => {
  const clock = new FakeClock();
  const simulator = await startQuickly({ clock, timingScale: 0 });
  const client = await SshClient.connect(simulator);
  simulator.faults.arm({ match: "", nth: 1, times: 1, action: "delay", value: 60_000 });
  const answer = client.exec(makeBasePath);
  while (clock.waiting === 0) await client.exec(':put "x"');
  await simulator.close();
  assert.equal((await answer).status, undefined);
  assert.equal(clock.waiting, 0);
  assert.equal(simulator.model.files.find("storage-pool/metal-csi"), undefined);
  client[Symbol.dispose]();
});

Deno.test("with timing scale 1 a login takes as long as on a router", async () => {
  const clock = new FakeClock();
  await using simulator = await startSimulator({ clock, hostKey: routerHostKey.privatePem });
  const connecting = SshClient.connect(simulator, { username: "admin", password: "admin" });
  while (clock.waiting === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  await clock.advance(199);
  assert.equal(simulator.model.clock.now() > 0 && clock.waiting, 1);
  await clock.advance(301);
  (await connecting)[Symbol.dispose]();
});

Deno.test("the exporter loop without a backing directory is refused", async () => {
  await assert.rejects(startSimulator({ exporter: "loop" }), RangeError);
});

Deno.test("an unknown profile is refused", async () => {
  await assert.rejects(startSimulator({ profile: "ros-1" }), RangeError);
});

Deno.test("a control port that is in use leaves no SSH port behind", async () => {
  await using first = await startQuickly();
  const controlPort = Number(new URL(first.controlUrl).port);
  await assert.rejects(startQuickly({ controlPort }), Deno.errors.AddrInUse);
});

Deno.test("stoppableClock() rejects sleepers and cancels timers when it stops", async () => {
  const inner = new FakeClock();
  const stop = new AbortController();
  const clock = stoppableClock(inner, stop.signal);
  let rang = false;
  clock.timer(1000, () => rang = true);
  const slept = assert.rejects(clock.sleep(1000), /stopped/);
  stop.abort(new Error("stopped"));
  await slept;
  assert.equal(inner.waiting, 0);
  clock.timer(1000, () => rang = true);
  await inner.advance(5000);
  assert.equal(rang, false);
});

Deno.test("stoppableClock() lets timers fire and be cancelled while it runs", async () => {
  const inner = new FakeClock();
  const clock = stoppableClock(inner, new AbortController().signal);
  const rung: string[] = [];
  clock.timer(10, () => rung.push("first"));
  clock.timer(20, () => rung.push("cancelled"))();
  await inner.advance(100);
  assert.deepEqual(rung, ["first"]);
});

Deno.test("stoppableClock() obeys the sleeper's own signal too", async () => {
  const own = new AbortController();
  const clock = stoppableClock(new FakeClock(), new AbortController().signal);
  const slept = assert.rejects(clock.sleep(1000, own.signal), /own/);
  own.abort(new Error("own"));
  await slept;
});
