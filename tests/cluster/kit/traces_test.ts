import assert from "node:assert/strict";
import { Daemon } from "./daemon.ts";
import { findTraces, killProcesses } from "./traces.ts";

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
