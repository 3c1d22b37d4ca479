import assert from "node:assert/strict";
import { ScratchFolder } from "../../src/cli/acceptance/scratch.ts";
import { systemClock } from "../../src/host/clock.ts";
import { nodeTest, run } from "./harness.ts";
import { loopsUnder } from "../support/left_here.ts";

/** How long a process keeps the device open, in seconds. */
const heldSeconds = 1;

nodeTest(
  "the demo's folder goes once the last process has closed a loop device in it",
  async ({ folder }) => {
    const scratch = `${folder}/scratch`;
    await Deno.mkdir(scratch);
    await Deno.writeFile(`${scratch}/image`, new Uint8Array(1 << 20));
    const device = (await run("losetup", "--find", "--show", `${scratch}/image`)).trim();
    const holder = new Deno.Command("sh", {
      args: ["-c", 'exec <"$1"; echo open; exec sleep "$2"', "sh", device, String(heldSeconds)],
      stdout: "piped",
    }).spawn();
    const output = holder.stdout.getReader();
    await output.read();
    assert.deepEqual(await ScratchFolder.of(scratch, systemClock).remove(), []);
    await holder.status;
    await output.cancel();
    assert.deepEqual(await loopsUnder(folder), []);
    await assert.rejects(Deno.stat(scratch), Deno.errors.NotFound);
  },
);
