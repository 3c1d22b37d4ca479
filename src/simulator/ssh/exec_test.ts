import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import {
  addCommand,
  makeBasePath,
  SshClient,
  startQuickly,
} from "../../../tests/support/simulated_router.ts";
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

Deno.test("close-no-status answers completely and reports no exit status", async () => {
  await struck({ action: "close-no-status" }, async (_simulator, client) => {
    assert.deepEqual(await client.exec(`${mark}; :put "done"`), {
      stdout: "done\r\n",
      stderr: "",
      status: undefined,
    });
    assert.equal((await client.exec(':put "next"')).status, 0);
  });
});

Deno.test("truncate ends the answer after so many bytes, as if it were complete", async () => {
  await struck({ action: "truncate", value: 3 }, async (_simulator, client) => {
    assert.deepEqual(await client.exec(`${mark}; :put "done"`), { stdout: "don", stderr: "", status: 0 });
  });
});

Deno.test("truncate can cut between the JSON and the client's closing mark", async () => {
  await struck({ action: "truncate", value: "sentinel", match: "" }, async (_simulator, client) => {
    const { stdout } = await client.exec(`:put ("n0 ".[:serialize to=json value=[/disk find]]." n")`);
    assert.equal(stdout, 'n0 ["*1","*2","*3"]');
  });
});

Deno.test("drip sends the answer slowly, byte by byte", async () => {
  const clock = new FakeClock();
  await using simulator = await startQuickly({ clock });
  using client = await SshClient.connect(simulator);
  simulator.faults.arm({ match: "", nth: 1, times: 1, action: "drip", value: 100 });
  let seen = "";
  const ended = new Promise<void>((resolve, reject) => {
    client.client.exec(':put "abc"', (error, channel) => {
      if (error !== undefined) return reject(error);
      channel.on("data", (data: { toString(): string }) => seen += data.toString());
      channel.on("close", () => resolve());
    });
  });
  for (const expected of ["", "a", "ab", "abc", "abc\r"]) {
    while (clock.waiting === 0) await client.exec(':put "meanwhile"');
    await client.exec(':put "so that what was sent has come"');
    assert.equal(seen, expected);
    await clock.advance(100);
  }
  await ended;
  assert.equal(seen, "abc\r\n");
});

for (const [action, shown] of [["run-before", "1"], ["run-after", "0"]] as const) {
  Deno.test(`${action} lets another client run a command`, async () => {
    const value = '/file add type="directory" name="storage-pool/x"';
    await struck({ action, value, match: ":put" }, async (simulator, client) => {
      const count = ':put [:len [/file find where name="storage-pool/x"]]';
      assert.equal((await client.exec(count)).stdout, `${shown}\r\n`);
      assert.equal((await client.exec(count)).stdout, "1\r\n");
      assert.deepEqual(simulator.violations.list(), []);
      assert.equal(simulator.journal.list().length, 2);
    });
  });
}

const duplicates:
  readonly (readonly [value: string | undefined, behaviours: object, answer: string, slots: string])[] = [
    [undefined, {}, "failure: already have such slot\r\n", "a"],
    ["after", {}, "", "a"],
    ["after", { duplicateSlot: "renamed" }, "", "a a-1"],
  ];

for (const [value, behaviours, answer, slots] of duplicates) {
  Deno.test(`duplicate ${value ?? "before"} sends the same add from another client, and there is ${slots}`, async () => {
    await struck({ action: "duplicate", value, match: "^/disk" }, async (simulator, client) => {
      simulator.model.configure(undefined, behaviours);
      await client.exec(mark);
      assert.equal((await client.exec(addCommand("a"))).stdout, answer);
      const made = simulator.model.disks.list().filter(({ type }) => type === "file").map(({ slot }) => slot);
      assert.equal(made.join(" "), slots);
    });
  });
}

Deno.test("ignore-resize accepts a new size without effect, once", async () => {
  await struck({ action: "ignore-resize", match: "file-size=.2147483648" }, async (simulator, client) => {
    await client.exec(`${mark}; ${addCommand("a")}`);
    const grow = '/disk set "a" file-size="2147483648" comment="x"';
    const sizes = () => {
      const disk = simulator.model.disks.findBySlot("a");
      return [disk?.fileSizeBytes, disk?.sizeBytes, disk?.comment];
    };
    assert.equal((await client.exec(grow)).stdout, "");
    assert.deepEqual(sizes(), [1n << 30n, 1n << 30n, "x"]);
    await client.exec(grow);
    assert.deepEqual(sizes(), [2n << 30n, 2n << 30n, "x"]);
  });
});

Deno.test("ignore-resize does not affect a command of another session meanwhile", async () => {
  const clock = new FakeClock();
  await using simulator = await startQuickly({ clock, timingScale: 1 });
  const connecting = [SshClient.connect(simulator), SshClient.connect(simulator)];
  const [first, second] = await patiently(clock, Promise.all(connecting));
  using _first = first!;
  using _second = second!;
  await patiently(clock, first!.exec(`${mark}; ${addCommand("a")}; ${addCommand("b")}`));
  simulator.faults.arm({ match: "", nth: 1, times: 1, action: "ignore-resize", value: undefined });
  const ignored = first!.exec('/disk set "a" file-size="2147483648"');
  while (clock.waiting === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  const other = second!.exec('/disk set "b" file-size="2147483648"');
  await patiently(clock, Promise.all([ignored, other]));
  const size = (slot: string) => simulator.model.disks.findBySlot(slot)?.sizeBytes;
  assert.deepEqual([size("a"), size("b")], [1n << 30n, 2n << 30n]);
});

/** Advances a clock that stands still until the work is done. */
async function patiently<Result>(clock: FakeClock, awaited: Promise<Result>): Promise<Result> {
  let done = false;
  awaited.finally(() => done = true).catch(() => {});
  while (!done) {
    await clock.advance(10);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return await awaited;
}

Deno.test("refuse-login refuses one login, or every one, of the user that it matches", async () => {
  await using simulator = await startQuickly();
  const fault: Fault = { match: "^csi$", nth: 1, times: 1, action: "refuse-login", value: undefined };
  simulator.faults.arm(fault);
  await assert.rejects(SshClient.connect(simulator), /authentication/);
  (await SshClient.connect(simulator))[Symbol.dispose]();
  simulator.faults.arm({ ...fault, times: Infinity });
  for (let attempt = 0; attempt < 3; attempt++) {
    await assert.rejects(SshClient.connect(simulator), /authentication/);
  }
});

Deno.test("noise comes before the answer", async () => {
  await struck({ action: "noise", value: "system rebooted" }, async (_simulator, client) => {
    const { stdout } = await client.exec(`${mark}; :put "done"`);
    assert.equal(stdout, "system rebooted\r\ndone\r\n");
  });
});

Deno.test("error fails with the given text, and nothing has run", async () => {
  await struck({ action: "error", value: "failure: disk full" }, async (simulator, client) => {
    assert.deepEqual(await client.exec(mark), { stdout: "failure: disk full\r\n", stderr: "", status: 0 });
    assert.equal(hasRun(simulator), false);
  });
});

Deno.test("error-late fails with the given text at once, and the command runs later", async () => {
  const clock = new FakeClock();
  await using simulator = await startQuickly({ clock });
  using client = await SshClient.connect(simulator);
  simulator.faults.arm({ match: "", nth: 1, times: 1, action: "error-late", value: "action timed out" });
  assert.equal((await client.exec(mark)).stdout, "action timed out\r\n");
  assert.equal(hasRun(simulator), false);
  while (clock.waiting === 0) await client.exec(':put "meanwhile"');
  await clock.advance(1000);
  while (!hasRun(simulator)) await client.exec(':put "meanwhile"');
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

Deno.test("the journal reports which fault affected which command", async () => {
  await struck({ action: "truncate", value: 1 }, async (simulator, client) => {
    await client.exec(mark);
    await client.exec("foo");
    const reported = simulator.journal.list().map((
      { session, command, outcome },
    ) => [session, command, outcome]);
    assert.deepEqual(reported, [
      [1, mark, "fault truncate, ok"],
      [1, "foo", "bad command name foo (line 1 column 1)"],
    ]);
  });
});
