import assert from "node:assert/strict";
import { refusal } from "../../tests/fakes/refusal.ts";
import { type ToolResult } from "./spawn.ts";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { VolumeError } from "../volume/errors.ts";
import { systemClock } from "./clock.ts";
import type { NodeEvent } from "../volume/ports/node_events.ts";
import { complaint, SystemProcesses } from "./processes.ts";
import { allToolPaths, systemToolPaths, type ToolName } from "./tools.ts";

const never = new AbortController().signal;
const done: ToolResult = { code: 0, stdout: "", stderr: "", bytes: new Uint8Array() };

/** Runs `dd` as the shell, so that a test can choose what the tool does. */
function shell() {
  return new SystemProcesses({
    clock: systemClock,
    toolPaths: { ...systemToolPaths, dd: ["/nowhere/sh", "/bin/sh"] },
  });
}

function script(text: string, signal = never, more: { timeoutMs?: number; mustFinish?: boolean } = {}) {
  return { args: ["-c", text], signal, subject: "test", ...more };
}

/** Children that end only when told to, killed or not. */
function stuckChildren() {
  const release: (() => void)[] = [];
  const spawn = () => {
    const { promise, resolve } = Promise.withResolvers<ToolResult>();
    release.push(() => resolve(done));
    return { result: promise, kill() {}, abandon() {} };
  };
  return { release, spawn };
}

Deno.test("run() returns exit code, output and complaint of the tool", async () => {
  const result = await shell().run("dd", script("echo out; echo err >&2; exit 3"));
  assert.deepEqual([result.code, result.stdout, result.stderr], [3, "out\n", "err\n"]);
});

Deno.test("complaint() names no descriptor, by whose number another device is open later", () => {
  const result = {
    code: 4,
    stdout: "/proc/6003/fd/44: RUN fsck MANUALLY.\n  in /proc/6003/fd/4.\n",
    stderr: "",
  };
  assert.equal(
    complaint({ ...result, bytes: new Uint8Array() }),
    "exit=4 output=DEVICE: RUN fsck MANUALLY.; in DEVICE.",
  );
});

Deno.test("run() keeps binary output as it is", async () => {
  const { bytes } = await shell().run("dd", script("head -c 300000 /dev/zero; printf '\\377\\001'"));
  assert.equal(bytes.length, 300002);
  assert.deepEqual([...bytes.slice(-3)], [0, 255, 1]);
});

Deno.test("run() passes the tool its input, and accepts that it reads nothing", async () => {
  const { stdout } = await shell().run("dd", { ...script("cat"), input: "a,b\n" });
  assert.equal(stdout, "a,b\n");
  const unread = await shell().run("dd", { ...script("exec true"), input: "x".repeat(1_000_000) });
  assert.equal(unread.code, 0);
});

Deno.test("run() passes nothing of the environment on, and sets only what makes tools print alike", async () => {
  const { stdout } = await shell().run("dd", script("env"));
  const names = stdout.trim().split("\n").map((line) => line.split("=")[0]).filter((name) => name !== "_");
  assert.deepEqual(names.toSorted(), ["DM_DISABLE_UDEV", "LC_ALL", "PATH", "PWD"]);
});

Deno.test("run() throws precondition naming tool and package when the tool is missing", async () => {
  const processes = new SystemProcesses({
    clock: systemClock,
    toolPaths: { ...systemToolPaths, "mkfs.xfs": ["/nowhere/mkfs.xfs"] },
  });
  await assert.rejects(
    processes.run("mkfs.xfs", script("")),
    refusal("precondition", /mkfs\.xfs.*xfsprogs/),
  );
});

Deno.test("run() kills the child when the signal is aborted, and throws its reason", async () => {
  const controller = new AbortController();
  const running = shell().run("dd", script("exec sleep 30", controller.signal));
  controller.abort(new VolumeError("cancelled", "gone"));
  const started = performance.now();
  await assert.rejects(running, refusal("cancelled", /./));
  assert.ok(performance.now() - started < 5_000);
});

Deno.test("run() throws deadline when the tool takes too long", async () => {
  await assert.rejects(
    shell().run("dd", script("exec sleep 30", never, { timeoutMs: 50 })),
    refusal("deadline"),
  );
});

Deno.test("run() lets a tool that must finish end although the signal is aborted", async () => {
  const controller = new AbortController();
  const running = shell().run(
    "dd",
    script("sleep 0.2; echo finished", controller.signal, { mustFinish: true }),
  );
  controller.abort(new VolumeError("cancelled", "gone"));
  assert.equal((await running).stdout, "finished\n");
});

Deno.test("run() starts nothing when the signal was aborted before", async () => {
  const controller = new AbortController();
  controller.abort(new VolumeError("cancelled", "gone"));
  let spawned = 0;
  const processes = new SystemProcesses({
    clock: systemClock,
    spawn: () => {
      spawned++;
      return { result: Promise.resolve(done), kill() {}, abandon() {} };
    },
  });
  await assert.rejects(
    processes.run("stat", script("", controller.signal)),
    refusal("cancelled", /./),
  );
  assert.equal(spawned, 0);
});

Deno.test("run() does not wait for a grandchild that keeps the pipe open", async () => {
  const started = performance.now();
  const result = await shell().run("dd", script("sleep 3 & echo early"));
  assert.equal(result.stdout, "early\n");
  assert.ok(performance.now() - started < 2_500);
});

Deno.test("run() rejects while the child hangs, and counts it until it is gone", async () => {
  const clock = new FakeClock();
  const { release, spawn } = stuckChildren();
  const events: NodeEvent[] = [];
  const occurred = (event: NodeEvent) => void events.push(event);
  const processes = new SystemProcesses({ clock, spawn, events: { occurred } });
  const reported = () => events.filter(({ kind }) => kind === "operation-hung");
  let left = "none";
  const onLeft = (ended: Promise<void>) => {
    left = "goes on";
    void ended.then(() => left = "ended");
  };
  const rejected = assert.rejects(
    processes.run("stat", { ...script("", never, { timeoutMs: 1000 }), onLeft }),
    refusal("deadline"),
  );
  await clock.advance(1000);
  assert.deepEqual([reported(), left], [[], "none"]);
  await clock.advance(2000);
  await rejected;
  assert.equal(processes.hanging, 1);
  assert.deepEqual(reported(), [{ kind: "operation-hung", operation: "stat" }]);
  assert.equal(left, "goes on");
  release[0]!();
  await clock.advance(0);
  assert.deepEqual([processes.hanging, left], [0, "ended"]);
});

/** Runs that never end; returns each one's result, in order of their ends. */
function hangingRuns() {
  const clock = new FakeClock();
  const { release, spawn } = stuckChildren();
  const processes = new SystemProcesses({ clock, spawn });
  const run = (tool: ToolName, subject: string) =>
    processes.run(tool, { args: [], signal: never, subject, timeoutMs: 1000 }).then(
      () => "done",
      (error) => VolumeError.is(error) ? error.kind : String(error),
    );
  return { clock, release, processes, run };
}

Deno.test("run() reports how long each tool ran, once", async () => {
  const clock = new FakeClock();
  const { release, spawn } = stuckChildren();
  const reported: string[] = [];
  const occurred = (event: NodeEvent) => {
    if (event.kind === "tool-ran") reported.push(`${event.tool} ${event.seconds}`);
  };
  const processes = new SystemProcesses({ clock, spawn, killGraceMs: 500, events: { occurred } });
  const first = processes.run("blkid", script("", never));
  await clock.advance(1000);
  const second = processes.run("mkfs.ext4", script("", never, { mustFinish: true }));
  const hung = assert.rejects(processes.run("stat", script("", never, { timeoutMs: 500 })));
  await clock.advance(1000);
  release[0]!();
  await first;
  await hung;
  await clock.advance(1000);
  release[2]!();
  release[1]!();
  await second;
  await clock.advance(0);
  assert.deepEqual(reported, ["stat 1", "blkid 2", "mkfs.ext4 2"]);
});

Deno.test("run() leaves one child of a tool on a dead subject, however often it is called", async () => {
  const { clock, release, run } = hangingRuns();
  const asked = Array.from({ length: 50 }, () => run("stat", "dead"));
  await clock.advance(500);
  assert.equal(release.length, 1, "the others wait for the first one");
  await clock.advance(5_000);
  assert.deepEqual(new Set(await Promise.all(asked)), new Set(["deadline"]));
  assert.deepEqual([await run("stat", "dead"), await run("stat", "dead")], ["unavailable", "unavailable"]);
  assert.equal(release.length, 1);
});

Deno.test("run() runs other tools on a dead subject, and all tools on any number of others", async () => {
  const { clock, release, processes, run } = hangingRuns();
  const dead = Array.from({ length: 200 }, (_, at) => run("stat", `dead ${at}`));
  await clock.advance(5_000);
  await Promise.all(dead);
  assert.equal(processes.hanging, 200);
  for (const [tool, subject] of [["umount", "dead 7"], ["stat", "alive"]] as const) {
    const running = run(tool, subject);
    await clock.advance(0);
    release.at(-1)!();
    assert.equal(await running, "done");
  }
});

Deno.test("run() runs the tool again on a subject that came back to life", async () => {
  const { clock, release, run } = hangingRuns();
  const first = run("stat", "back");
  await clock.advance(5_000);
  assert.equal(await first, "deadline");
  release[0]!();
  await clock.advance(0);
  const again = run("stat", "back");
  await clock.advance(0);
  release[1]!();
  assert.equal(await again, "done");
});

Deno.test("run() never makes a tool that must finish wait for one that hangs", async () => {
  const { clock, release, processes, run } = hangingRuns();
  const hung = run("mount", "dead");
  await clock.advance(5_000);
  await hung;
  const options = { args: [], signal: never, subject: "dead", mustFinish: true };
  const running = processes.run("mount", options);
  release[1]!();
  assert.equal((await running).code, 0);
});

Deno.test("allToolPaths lists absolute paths only, each once", () => {
  assert.ok(allToolPaths.every((path) => /^\/(?:usr\/)?s?bin\/[a-z0-9._]+$/.test(path)));
  assert.equal(new Set(allToolPaths).size, allToolPaths.length);
});
