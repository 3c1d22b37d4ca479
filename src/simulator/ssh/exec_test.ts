import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { makeBasePath, SshClient, startQuickly } from "../simulator_test_support.ts";
import type { Fault } from "../faults.ts";
import type { Simulator } from "../simulator.ts";

const mark = makeBasePath;

/** Whether the command that makes the base path has run. */
function hasRun(simulator: Simulator): boolean {
  return simulator.model.files.find("storage-pool/metal-csi") !== undefined;
}

async function struck(
  fault: Partial<Fault>,
  test: (simulator: Simulator, client: SshClient) => Promise<void>,
) {
  const clock = new FakeClock();
  await using simulator = await startQuickly({ clock });
  using client = await SshClient.connect(simulator);
  simulator.faults.arm({ match: "^/file", nth: 1, times: 1, action: "hang", value: undefined, ...fault });
  await test(simulator, client);
}

Deno.test("drop-before tears the connection down and nothing has run", async () => {
  await struck({ action: "drop-before" }, async (simulator, client) => {
    // The request may have been confirmed before the connection drops, or not.
    const status = await client.exec(mark).then((result) => result.status, () => undefined);
    assert.equal(status, undefined);
    await client.closed;
    assert.equal(hasRun(simulator), false);
  });
});

Deno.test("drop-after tears the connection down when the command has run", async () => {
  await struck({ action: "drop-after" }, async (simulator, client) => {
    assert.deepEqual(await client.exec(`${mark}; :put "done"`), {
      stdout: "",
      stderr: "",
      status: undefined,
    });
    await client.closed;
    assert.equal(hasRun(simulator), true);
  });
});

Deno.test("close-no-status answers in full and tells no exit status", async () => {
  await struck({ action: "close-no-status" }, async (_simulator, client) => {
    assert.deepEqual(await client.exec(`${mark}; :put "done"`), {
      stdout: "done\r\n",
      stderr: "",
      status: undefined,
    });
    assert.equal((await client.exec(':put "next"')).status, 0);
  });
});

Deno.test("truncate ends the answer after so many bytes, as if it were whole", async () => {
  await struck({ action: "truncate", value: 3 }, async (_simulator, client) => {
    assert.deepEqual(await client.exec(`${mark}; :put "done"`), { stdout: "don", stderr: "", status: 0 });
  });
});

Deno.test("noise comes before the answer", async () => {
  await struck({ action: "noise", value: "system rebooted" }, async (_simulator, client) => {
    const { stdout } = await client.exec(`${mark}; :put "done"`);
    assert.equal(stdout, "system rebooted\r\ndone\r\n");
  });
});

Deno.test("error fails with the text given, and nothing has run", async () => {
  await struck({ action: "error", value: "failure: disk full" }, async (simulator, client) => {
    assert.deepEqual(await client.exec(mark), { stdout: "failure: disk full\r\n", stderr: "", status: 0 });
    assert.equal(hasRun(simulator), false);
  });
});

Deno.test("delay lets the command run later", async () => {
  const clock = new FakeClock();
  await using simulator = await startQuickly({ clock });
  using client = await SshClient.connect(simulator);
  simulator.faults.arm({ match: "", nth: 1, times: 1, action: "delay", value: 5000 });
  const answer = client.exec(mark);
  while (clock.waiting === 0) await client.exec(':put "meanwhile"');
  await clock.advance(4999);
  assert.equal(hasRun(simulator), false);
  await clock.advance(1);
  assert.equal((await answer).status, 0);
  assert.equal(hasRun(simulator), true);
});

for (const [value, ran] of [[undefined, false], ["after", true]] as const) {
  Deno.test(`hang with the value ${value} never answers, and has ${ran ? "run" : "not run"}`, async () => {
    await struck({ action: "hang", value }, async (simulator, client) => {
      let answered = false;
      client.exec(mark).then(() => answered = true);
      assert.equal((await client.exec(':put "other channels live"')).status, 0);
      assert.deepEqual([answered, hasRun(simulator)], [false, ran]);
    });
  });
}

Deno.test("refuse-channel refuses the exec request that it matches", async () => {
  await struck({ action: "refuse-channel" }, async (simulator, client) => {
    await assert.rejects(client.exec(mark), /Unable to exec/);
    assert.equal(hasRun(simulator), false);
    assert.equal((await client.exec(mark)).status, 0);
  });
});

Deno.test("refuse-channel without a match refuses the opening of the next channel", async () => {
  await struck({ action: "refuse-channel", match: "" }, async (_simulator, client) => {
    await assert.rejects(client.exec(mark), /open failure/);
    assert.equal((await client.exec(mark)).status, 0);
  });
});

Deno.test("the journal tells what struck which command", async () => {
  await struck({ action: "truncate", value: 1 }, async (simulator, client) => {
    await client.exec(mark);
    await client.exec("foo");
    const told = simulator.journal.list().map(({ session, command, outcome }) => [session, command, outcome]);
    assert.deepEqual(told, [
      [1, mark, "fault truncate, ok"],
      [1, "foo", "bad command name foo (line 1 column 1)"],
    ]);
  });
});
