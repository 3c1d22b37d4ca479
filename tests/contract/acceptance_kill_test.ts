// An acceptance run in a process of its own, which SIGKILL ends while the router has one of its commands: the next run
// leaves nothing, on the router nor on this machine. Loop devices stand for the kernel's connections, which the suite
// `acceptance` of tests/guest has.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { ScratchFolder } from "../../src/cli/acceptance/scratch.ts";
import { systemClock } from "../../src/host/clock.ts";
import { mountsUnder } from "../support/left_here.ts";
import { isLong } from "../support/long.ts";
import { type Part, projectRoot, startProgram } from "../support/parts.ts";
import { print } from "../../tools/print.ts";
import { type AcceptanceBench, flagsOf, loopsMissing, withAcceptanceBench } from "./_acceptance_bench.ts";

const program = fileURLToPath(new URL("_acceptance_child.ts", import.meta.url));
/** Two commands by day: with a volume in use, and with a snapshot and a restored volume. */
const byDay = [12, 28];
const parallel = 3;
/** The folder of an earlier report, which is called almost as the folders of runs. */
const earlierReport = "rds-csi-acceptance-2026";

function start({ simulator, scratch }: AcceptanceBench, kinds: string): Part {
  const deno = [
    Deno.execPath(),
    "run",
    "--quiet",
    "--no-check",
    "--config",
    `${projectRoot}/deno.json`,
    "-A",
  ];
  const flags = flagsOf({ simulator, scratch }, `${scratch}/${crypto.randomUUID()}`);
  const env = { TMPDIR: `${scratch}/tmp` };
  return startProgram("acceptance", [...deno, program], scratch, [`${scratch}/router`, kinds, ...flags], env);
}

interface Left {
  readonly mounts: number;
  readonly images: number;
}

/** Returns what the killed run has left; undefined when it was over before. */
async function killAt(at: number): Promise<Left | undefined> {
  let left: Left | undefined;
  await withAcceptanceBench({ exporter: "loop", scale: 1 }, async (bench) => {
    const { simulator, scratch, state } = bench;
    const temporary = `${scratch}/tmp`;
    await Deno.mkdir(`${temporary}/${earlierReport}`, { recursive: true });
    await Deno.writeTextFile(`${temporary}/${earlierReport}/report.json`, "{}");
    const before = state();
    try {
      simulator.faults.arm({ match: "[a-z]", nth: at, times: 1, action: "delay", value: 300 });
      const killed = start(bench, "xfs");
      let over = false;
      void killed.ended.then(() => over = true);
      while (!over && simulator.faults.list()[0]?.struck !== 1) {
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      if (over) return;
      await killed.kill();
      const images = simulator.model.files.list().filter(({ path }) => path.endsWith(".img")).length;
      left = { mounts: mountsUnder(temporary).length, images };
      const next = start(bench, "");
      assert.equal(await next.ended, 0, `${at}: ${await next.tail()}`);
      assert.deepEqual(state(), before, `killed at command ${at}`);
      assert.deepEqual(simulator.violations.list(), []);
      assert.equal(mountsUnder(temporary).length, 0);
      assert.deepEqual([...Deno.readDirSync(temporary)].map(({ name }) => name), [earlierReport]);
      assert.equal(await Deno.readTextFile(`${temporary}/${earlierReport}/report.json`), "{}");
    } finally {
      // The router's images are attached here, in which a run has no part.
      assert.deepEqual(await ScratchFolder.of(scratch, systemClock).release(), []);
    }
  });
  return left;
}

Deno.test({
  name: "the next run leaves nothing of one that was killed at a command, but an earlier report",
  ignore: loopsMissing !== undefined,
  // What detaches loop devices keeps the C library until the process ends.
  sanitizeResources: false,
  fn: async () => {
    const found: Left[] = [];
    let tried = 0;
    const nextCommand = () => isLong ? ++tried : byDay[tried++];
    const work = async () => {
      for (let at = nextCommand(); at !== undefined; at = nextCommand()) {
        const left = await killAt(at);
        if (isLong) print(`command ${at}: ${left === undefined ? "none" : JSON.stringify(left)}`);
        if (left === undefined) return;
        found.push(left);
      }
    };
    const results = await Promise.allSettled(Array.from({ length: isLong ? parallel : 1 }, work));
    const failed = results.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    assert.ok(found.some(({ mounts }) => mounts > 0), "none was killed with a volume in use");
    assert.ok(
      found.some(({ images }) => images > 2),
      "none was killed with a snapshot and a restored volume",
    );
  },
});
