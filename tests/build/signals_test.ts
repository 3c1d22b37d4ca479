import assert from "node:assert/strict";
import { constants } from "node:os";
import { freePort } from "../support/parts.ts";
import { BINARY, isBuilt } from "./binary.ts";
import { makeScratch } from "../support/scratch.ts";

/** Signals that end the executable, or that the kernel sends for a fault. */
const ending = ["SIGHUP", "SIGINT", "SIGTERM", "SIGBUS", "SIGSEGV", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP"];
/** Signals that the kernel ignores where nothing handles them. */
const ignoredByDefault = ["SIGCHLD", "SIGCONT", "SIGURG", "SIGWINCH"];
/** How long a runtime may take to open a port after a signal: a fraction of it. */
const openingMs = 1_500;

/** The signals that the process handles, or that are ignored there, and do not end it. */
async function harmlessSignals(pid: number): Promise<readonly string[]> {
  const status = await Deno.readTextFile(`/proc/${pid}/status`);
  const masks = [...status.matchAll(/^Sig(?:Ign|Cgt):\t([0-9a-f]+)$/gm)].map(([, hex]) => BigInt(`0x${hex}`));
  return Object.entries(constants.signals).filter(([name, number]) =>
    !ending.includes(name) &&
    (ignoredByDefault.includes(name) || masks.some((mask) => mask >> BigInt(number - 1) & 1n))
  ).map(([name]) => name);
}

/** The addresses on which the process listens, as the kernel writes them. */
async function listening(pid: number): Promise<readonly string[]> {
  const inodes = new Set<string>();
  for (const { name } of Deno.readDirSync(`/proc/${pid}/fd`)) {
    // A file that was closed meanwhile is none that listens.
    const link = await Deno.readLink(`/proc/${pid}/fd/${name}`).catch(() => "");
    inodes.add(/^socket:\[(\d+)\]$/.exec(link)?.[1] ?? "");
  }
  const tables = await Promise.all(
    ["tcp", "tcp6"].map((one) => Deno.readTextFile(`/proc/${pid}/net/${one}`)),
  );
  return tables.flatMap((table) => table.split("\n").map((line) => line.trim().split(/\s+/)))
    .flatMap(([, address = "", , state, , , , , , inode = ""]) =>
      state === "0A" && inodes.has(inode) ? [address] : []
    ).toSorted();
}

async function withProcess(words: readonly string[], test: (pid: number) => Promise<void>): Promise<void> {
  const [program = "", ...args] = words;
  const child = new Deno.Command(program, { args, cwd: "/", stdin: "null", stdout: "null", stderr: "null" })
    .spawn();
  try {
    await test(child.pid);
  } finally {
    child.kill("SIGKILL");
    await child.status;
  }
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 30_000;
  while (!await isSo()) {
    if (performance.now() > endMs) throw new Error("it did not happen in time");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

Deno.test({
  name: "the executable opens no port on any signal that it handles or ignores",
  ignore: !isBuilt,
  fn: async () => {
    const address = `tcp://127.0.0.1:${freePort()}`;
    const flags = ["--mode=node", "--node-id=n1", `--endpoint=${address}`, "--metrics-address="];
    await using scratch = await makeScratch();
    const folder = scratch.path;
    const loop = ["--connector=loop", `--loop-backing=${folder}`, `--state-dir=${folder}/state`];
    await withProcess([BINARY, "serve", ...flags, ...loop], async (pid) => {
      await until(async () => (await listening(pid)).length > 0);
      const before = await listening(pid);
      const signals = await harmlessSignals(pid);
      assert.ok(signals.includes("SIGUSR2"), signals.join());
      for (const signal of signals) Deno.kill(pid, signal as Deno.Signal);
      await new Promise((resolve) => setTimeout(resolve, openingMs));
      assert.deepEqual(await listening(pid), before, signals.join());
    });
  },
});

Deno.test("a port that a runtime opens on a signal is seen", async () => {
  const script = "setInterval(() => {}, 1_000)";
  await withProcess([Deno.execPath(), "eval", script], async (pid) => {
    await until(async () => (await harmlessSignals(pid)).includes("SIGUSR1"));
    assert.deepEqual(await listening(pid), []);
    Deno.kill(pid, "SIGUSR1");
    await until(async () => (await listening(pid)).length > 0);
  });
});
