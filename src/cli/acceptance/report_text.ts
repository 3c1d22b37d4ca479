import type { AcceptanceReport } from "../../router_profile/report/report.ts";
import { counted } from "../../volume/model/counted.ts";

/** A report for people. */
export function formatReportText({ driver, router, steps, commands, transcript }: AcceptanceReport): string {
  const { version, board, poolFilesystem, poolBytes } = router;
  const rows = steps.map(({ result, step, promise, ms, commands, note }) =>
    `| ${result} | ${step} | ${promise} | ${ms} | ${commands} | ${note.replaceAll("|", "\\|")} |`
  );
  const times = commands.map(({ kind, count, p50Ms, p95Ms, maxMs }) =>
    `| ${kind} | ${count} | ${p50Ms} | ${p95Ms} | ${maxMs} |`
  );
  return `# Acceptance run

${board || "A router"}, RouterOS ${version}, a pool of ${
    Math.round(poolBytes / 2 ** 30)
  } GiB with ${poolFilesystem}; rds-csi ${driver}. ${summariseSteps({ steps })}.

| Result | Step | Promise | ms | Commands | Note |
| --- | --- | --- | --: | --: | --- |
${rows.join("\n")}

## Commands to the router

| Command | Times | p50 ms | p95 ms | max ms |
| --- | --: | --: | --: | --: |
${times.join("\n")}

\`report.json\` has ${
    counted(transcript.length, "command")
  } with the answers, without names, addresses and secrets.
`;
}

/** How many steps passed, failed, or could not be shown. */
export function summariseSteps({ steps }: Pick<AcceptanceReport, "steps">): string {
  const count = (result: string) => steps.filter((step) => step.result === result).length;
  return `${count("pass")} passed, ${count("fail")} failed, ${count("not here")} not here`;
}
