// An acceptance run in a process of its own, which SIGKILL ends while the router has one of its commands: the next run
// leaves nothing, on the router nor on this machine. Loop devices stand for the kernel's connections, which the suite
// `acceptance` of tests/guest has.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { isLong } from "../support/long.ts";
import { type Part, projectRoot, startProgram } from "../support/parts.ts";
import { print } from "../../tools/print.ts";
import { type AcceptanceBench, flagsOf, loopsMissing, withAcceptanceBench } from "./_acceptance_bench.ts";

const program = fileURLToPath(new URL("_acceptance_child.ts", import.meta.url));
/** One command by day, with a volume in use. */
const [first, every] = isLong ? [1, 1] : [12, Infinity];
const parallel = 3;

function start(
  { simulator, scratch }: AcceptanceBench,
  kinds: string,
  output = `${scratch}/${crypto.randomUUID()}`,
): Part {
  const deno = [
    Deno.execPath(),
    "run",
    "--quiet",
    "--no-check",
    "--config",
    `${projectRoot}/deno.json`,
    "-A",
  ];
  const flags = flagsOf({ simulator, scratch }, output);
  const env = { TMPDIR: `${scratch}/tmp` };
  return startProgram("acceptance", [...deno, program], scratch, [`${scratch}/router`, kinds, ...flags], env);
}

/** Mount points below a folder, the innermost first. */
function mountsBelow(folder: string): string[] {
  return Deno.readTextFileSync("/proc/self/mountinfo").split("\n").map((line) => line.split(" ")[4] ?? "")
    .filter((path) => path.startsWith(`${folder}/`)).toReversed();
}

async function tool(...[command = "", ...args]: readonly string[]): Promise<string> {
  const { stdout } = await new Deno.Command(command, { args }).output();
  return new TextDecoder().decode(stdout);
}

/** What a run has no part in: its router's images are attached here. */
async function detachLoops(folder: string): Promise<void> {
  const lines = await tool("losetup", "--list", "--noheadings", "--raw", "--output", "NAME,BACK-FILE");
  for (const line of lines.split("\n").filter((line) => line.includes(` ${folder}/`))) {
    await tool("losetup", "--detach", line.split(" ")[0]!);
  }
}

/** Returns how many mounts were there at the end of the killed run; undefined when the run was over before. */
async function killAt(at: number): Promise<number | undefined> {
  let mounted: number | undefined;
  await withAcceptanceBench({ exporter: "loop", scale: 1 }, async (bench) => {
    const { simulator, scratch, state } = bench;
    const temporary = `${scratch}/tmp`;
    await Deno.mkdir(temporary);
    const before = state();
    try {
      simulator.faults.arm({ match: "[a-z]", nth: at, times: 1, action: "delay", value: 300 });
      const killed = start(bench, "ext4");
      let over = false;
      void killed.ended.then(() => over = true);
      while (!over && simulator.faults.list()[0]?.struck !== 1) {
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      if (over) return;
      await killed.kill();
      mounted = mountsBelow(temporary).length;
      const next = start(bench, "");
      assert.equal(await next.ended, 0, `${at}: ${await next.tail()}`);
      assert.deepEqual(state(), before, `killed at command ${at}`);
      assert.deepEqual(simulator.violations.list(), []);
      assert.deepEqual([mountsBelow(temporary), [...Deno.readDirSync(temporary)]], [[], []]);
    } finally {
      for (const path of mountsBelow(scratch)) await tool("umount", path);
      await detachLoops(scratch);
    }
  });
  return mounted;
}

Deno.test({
  name: "a run removes no report of an earlier one, whatever its folder is called",
  ignore: loopsMissing !== undefined,
  fn: () =>
    withAcceptanceBench({ exporter: "loop", scale: 1 }, async (bench) => {
      const names = ["rds-csi-acceptance-2026", "rds-csi-acceptance-report"];
      const [earlier, output] = names.map((name) => `${bench.scratch}/tmp/${name}`);
      await Deno.mkdir(earlier!, { recursive: true });
      await Deno.writeTextFile(`${earlier}/report.json`, "{}");
      const run = start(bench, "", output);
      assert.equal(await run.ended, 0, await run.tail());
      assert.equal(await Deno.readTextFile(`${earlier}/report.json`), "{}");
      const left = [...Deno.readDirSync(`${bench.scratch}/tmp`)].map(({ name }) => name);
      assert.deepEqual(left.toSorted(), names);
    }),
});

Deno.test({
  name: "the next run leaves nothing of one that was killed at a command",
  ignore: loopsMissing !== undefined,
  fn: async () => {
    let next = first;
    const mounted: number[] = [];
    const work = async () => {
      for (let at = next; at < Infinity; at = next) {
        next += every;
        const found = await killAt(at);
        if (found === undefined) next = Infinity;
        else mounted.push(found);
        if (isLong) print(`command ${at}: ${found === undefined ? "none" : `killed with ${found} mounts`}`);
      }
    };
    const results = await Promise.allSettled(Array.from({ length: isLong ? parallel : 1 }, work));
    const failed = results.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    assert.ok(mounted.some((count) => count > 0), "none was killed with a volume in use");
  },
});
