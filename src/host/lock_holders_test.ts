import assert from "node:assert/strict";
import { FakeKernelFiles } from "../../tests/fakes/kernel_files.ts";
import { Libc } from "./libc.ts";
import { isEnding, lockHolders } from "./lock_holders.ts";

/** Threads as `/proc` shows them: state, flags, and the masks of pending signals. */
function filesOf(...threads: [state: string, flags: number, sigPnd?: string, shdPnd?: string][]) {
  const files = new FakeKernelFiles();
  files.folders.set("/proc/7/task", threads.map((_, i) => String(7 + i)));
  for (const [i, [state, flags, sigPnd = "0", shdPnd = "0"]] of threads.entries()) {
    const folder = `/proc/7/task/${7 + i}`;
    files.texts.set(`${folder}/stat`, `${7 + i} (rds) csi) ${state} 1 7 7 0 -1 ${flags} 12 0`);
    files.texts.set(
      `${folder}/status`,
      `Name:\trds-csi\nSigPnd:\t${sigPnd.padStart(16, "0")}\nShdPnd:\t${shdPnd.padStart(16, "0")}`,
    );
  }
  return files;
}

const lines = [
  "1: POSIX  ADVISORY  WRITE 3 fe:01:500 0 EOF",
  "2: FLOCK  ADVISORY  WRITE 41 fe:01:500 0 EOF",
  "2: -> FLOCK  ADVISORY  WRITE 42 fe:01:500 0 EOF",
  "3: FLOCK  ADVISORY  READ 43 00:2a:500 0 EOF",
  "4: FLOCK  ADVISORY  WRITE 0 fe:01:600 0 EOF",
];

for (
  const [inode, pids] of [[500n, [41, 43]], [600n, undefined], [700n, undefined]] as const
) {
  Deno.test(`lockHolders() finds ${pids ?? "no visible holder"} for inode ${inode}`, () => {
    const files = new FakeKernelFiles();
    files.texts.set("/proc/locks", lines.join("\n"));
    assert.deepEqual(lockHolders(files, inode), pids);
  });
}

for (
  const [what, expected, ...threads] of [
    ["runs", false, ["S", 0]],
    ["hangs in the kernel unkilled", false, ["D", 0x400000]],
    ["hangs in the kernel and was killed", true, ["D", 0, "0000000000000100"]],
    ["was killed as a whole", true, ["S", 0, "0", "100"]],
    ["has other signals to take", false, ["S", 0, "fe", "4200"]],
    ["is ending", true, ["D", 0x40010c]],
    ["is a zombie", true, ["Z", 0]],
    ["is a zombie of which one thread runs on", false, ["Z", 0x4], ["R", 0]],
    ["is a zombie of which one thread hangs, killed", true, ["Z", 0x4], ["D", 0, "100"]],
    ["is gone", true],
  ] as [string, boolean, ...[string, number, string?, string?][]][]
) {
  Deno.test(`isEnding() is ${expected} for a process that ${what}`, () => {
    assert.equal(isEnding(filesOf(...threads), 7), expected);
  });
}

Deno.test("lockHolders() and isEnding() find this process, which holds a lock and goes on", async () => {
  const path = await Deno.makeTempFile({ prefix: "rds-csi-test-" });
  const files = new Libc();
  try {
    using file = await Deno.open(path, { write: true });
    await file.lock(true);
    const { ino } = await file.stat();
    assert.deepEqual(lockHolders(files, BigInt(ino!)), [Deno.pid]);
    assert.equal(isEnding(files, Deno.pid), false);
  } finally {
    files.close();
    await Deno.remove(path);
  }
});
