import assert from "node:assert/strict";
import { Daemon, Supervised } from "./daemon.ts";
import { findTraces, killProcesses } from "./traces.ts";
import { until } from "./waiting.ts";

/** Passes a folder to a test, and ends all processes that have its path in their command line. */
async function inFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-daemon-" });
  try {
    await use(folder);
  } finally {
    await killProcesses(folder);
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("Daemon.ready() reports the last output when the program ends instead", async () => {
  await inFolder(async (folder) => {
    const daemon = Daemon.start("short", ["/bin/sh", "-c", "echo why; exit 3"], { folder });
    await assert.rejects(daemon.ready(10, () => Promise.resolve(false)), /short ended at its start:\nwhy$/);
    await daemon.stop();
  });
});

Deno.test("Supervised starts a program again that ends by itself, until it is stopped", async () => {
  await inFolder(async (folder) => {
    const text = ["/bin/sh", "-c", 'echo run >>"$0"', `${folder}/runs`];
    const supervised = new Supervised(() => Daemon.start("again", text, { folder }));
    await until("the program to be started again", () => Promise.resolve(supervised.restarts > 0), {
      limitSeconds: 10,
    });
    await supervised.stop();
    const { restarts } = supervised;
    assert.match(await Deno.readTextFile(`${folder}/runs`), /^run\n/);
    assert(restarts >= 1);
  });
});

Deno.test("findTraces() finds a process with the folder in its command line, and its children; killProcesses() ends them", async () => {
  await inFolder(async (folder) => {
    const script = "sleep 100 & echo >$1; wait";
    const text = ["/bin/sh", "-c", script, "sh", `${folder}/ready`];
    const daemon = Daemon.start("parent", text, { folder });
    await daemon.ready(10, async () => (await findTraces(folder)).length >= 2);
    assert((await findTraces(folder)).includes(`process ${daemon.pid}`));
    await killProcesses(folder);
    assert.deepEqual(await findTraces(folder), []);
    await daemon.stop();
  });
});
