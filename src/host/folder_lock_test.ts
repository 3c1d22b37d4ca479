import { refusal } from "../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import { systemClock } from "./clock.ts";
import { lockFolder } from "./folder_lock.ts";

async function inFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  try {
    await use(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("lockFolder() waits until the holder releases the folder", () =>
  inFolder(async (folder) => {
    const release = await lockFolder(folder, systemClock, 1000);
    let taken = false;
    const next = lockFolder(folder, systemClock, 60_000).then((second) => {
      taken = true;
      return second;
    });
    await assert.rejects(
      lockFolder(folder, systemClock, 50),
      refusal("precondition"),
    );
    assert.equal(taken, false);
    for (let times = 0; times < 2; times++) release();
    (await next)();
  }));

Deno.test("lockFolder() gets the folder of a killed process, even while one of its tools runs on", () =>
  inFolder(async (folder) => {
    const script = `
      import { lockFolder } from "${new URL("./folder_lock.ts", import.meta.url)}";
      import { systemClock } from "${new URL("./clock.ts", import.meta.url)}";
      await lockFolder("${folder}", systemClock, 1000);
      const child = new Deno.Command("sleep", { args: ["60"] }).spawn();
      console.log(child.pid);
      setTimeout(() => {}, 60_000);
    `;
    const args = ["eval", "--quiet", "--no-check", "--ext=ts", script];
    const holder = new Deno.Command(Deno.execPath(), { args, stdout: "piped", stdin: "null" }).spawn();
    const reader = holder.stdout.getReader();
    const { value } = await reader.read();
    const pid = Number(new TextDecoder().decode(value));
    try {
      await assert.rejects(
        lockFolder(folder, systemClock, 50),
        refusal("precondition"),
      );
      holder.kill("SIGKILL");
      (await lockFolder(folder, systemClock, 60_000))();
    } finally {
      Deno.kill(pid, "SIGKILL");
      await reader.cancel();
      await holder.status;
    }
  }));
