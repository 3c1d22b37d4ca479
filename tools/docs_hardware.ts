// The reference page of tested routers, from the reports in tests/captures/reports.

import { join } from "node:path";
import { systemClock } from "../src/host/clock.ts";
import { systemRandom } from "../src/host/random.ts";
import { type AcceptanceReport, parseReport } from "../src/router_profile/report/report.ts";
import { describeDifferences, replayReport } from "../src/simulator/replay/replay.ts";

/** A report, and what the simulator does otherwise than its router. */
interface TestedRouter {
  readonly file: string;
  readonly report: AcceptanceReport;
  readonly differences: readonly string[];
}

/** Reports of the simulator itself: examples, by the beginnings of their names. */
const examplePrefix = "simulator";

/** The page as Markdown. @param root the project's folder */
export async function hardwarePage(root: string): Promise<string> {
  const folder = join(root, "tests/captures/reports");
  const files = [...Deno.readDirSync(folder)].map(({ name }) => name).filter((name) => name.endsWith(".json"))
    .toSorted();
  const all = await Promise.all(files.map(async (file): Promise<TestedRouter> => {
    const report = parseReport(await Deno.readTextFile(join(folder, file)));
    const differences = describeDifferences(
      await replayReport(report, { clock: systemClock, random: systemRandom }),
    );
    return { file, report, differences };
  }));
  const isExample = ({ file }: TestedRouter) => file.startsWith(examplePrefix);
  const hardware = all.filter((one) => !isExample(one));
  return `# Tested routers

Written by \`make docs\` from the reports of [acceptance runs](../guides/probe.md#acceptance-run) in
\`tests/captures/reports\`, which \`rds-csi simulator --replay\` compares with the simulator.

## Real routers

${
    hardware.length === 0
      ? "**None yet.** [Send the report of yours](../guides/probe.md#send-the-report)."
      : hardware.map((one) => section(one)).join("\n\n")
  }

## Examples, of no hardware

The simulated router, with loop devices and a real one's delays, and in a guest over NVMe/TCP.

${all.filter(isExample).map((one) => section(one, "Simulated: ")).join("\n\n")}
`;
}

function section({ file, report, differences }: TestedRouter, before = ""): string {
  const { router: { version, board, poolFilesystem }, driver, steps, commands } = report;
  const stepsOf = (result: string) => steps.filter((step) => step.result === result).map(({ step }) => step);
  const names = (result: string) => {
    const found = stepsOf(result);
    return found.length === 0 ? "none" : `${found.length} (${found.join("; ")})`;
  };
  const slowest = Math.max(0, ...commands.map(({ p95Ms }) => p95Ms));
  const lines = differences.map((text) => `  - ${text}`);
  const minutes = Math.ceil(steps.reduce((sum, { ms }) => sum + ms, 0) / 60_000);
  return `### ${file.replace(/[.]json$/, "")}

${before}${
    board || "Unknown model"
  }, RouterOS ${version}, a pool with ${poolFilesystem}; rds-csi ${driver}; ${minutes} minutes; slowest p95 of commands ${slowest} ms.

- Hold: ${stepsOf("pass").length} steps
- Do not hold: ${names("fail")}
- Not shown there: ${names("not here")}
- Where the simulator differs: ${lines.length === 0 ? "nowhere" : `\n${lines.join("\n")}`}`;
}
