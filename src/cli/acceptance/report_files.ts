import { hidden } from "../../router_profile/report/allowed.ts";
import { findLeaks } from "../../router_profile/report/leaks.ts";
import { quoted } from "../../router_profile/report/recorded.ts";
import { formatReport } from "../../router_profile/report/report.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageAbout } from "../../volume/error_messages.ts";
import { nodeId, otherNodeId } from "./names.ts";
import type { AcceptanceOptions } from "./options.ts";
import { formatReportText } from "./report_text.ts";
import type { RunResult } from "./run.ts";

/**
 * Makes the folder of a report, so that a run does not find out at its end that it cannot.
 *
 * @throws {VolumeError} precondition when it cannot be used, or has a report, which would be lost
 */
export async function prepareOutput(folder: string): Promise<void> {
  const [captures, report] = [`${folder}/captures`, `${folder}/report.json`];
  await Deno.mkdir(captures, { recursive: true }).catch((error) =>
    refuse(folder, messageAbout(captures, error))
  );
  const info = await Deno.stat(report).catch((error) => {
    if (error instanceof Deno.errors.NotFound) return undefined;
    return refuse(folder, messageAbout(report, error));
  });
  if (info !== undefined) refuse(folder, "the folder has one already", "; name another");
}

function refuse(folder: string, reason: string, advice = ""): never {
  throw new VolumeError("precondition", `Cannot write a report because ${reason}: output=${folder}${advice}`);
}

/**
 * Writes a report, once all of it was searched for what must not be in it.
 *
 * @throws {VolumeError} precondition when it holds something of its owner: nothing is written
 */
export async function writeReport(
  { output, router, nvmeAddress }: Pick<AcceptanceOptions, "output" | "router" | "nvmeAddress">,
  { report: raw, captures, recording, names }: RunResult,
  secrets: readonly string[],
  writeText: (path: string, text: string) => Promise<void>,
): Promise<void> {
  const known = {
    secrets,
    names: [...names, router.user, router.address, ...nvmeAddress.split(","), ...router.hostKeys],
    hidden: recording.hidden,
  };
  // A sentence about a failure may have a word that is a name as well.
  const steps = raw.steps.map((step) =>
    findLeaks([step.note], known).length === 0 ? step : { ...step, note: hidden }
  );
  const report = { ...raw, steps };
  const files: Record<string, string> = {
    "report.json": formatReport(report),
    "report.md": formatReportText(report),
    ...Object.fromEntries(
      report.profile === undefined ? [] : [["profile.json", `${JSON.stringify(report.profile, null, 2)}\n`]],
    ),
    ...Object.fromEntries(Object.entries(captures).map(([name, text]) => [`captures/${name}`, text])),
  };
  const leaks = findLeaks(Object.values(files), known, ownTextsOf(report));
  if (leaks.length > 0) {
    const shown = leaks.map((leak) => secrets.includes(leak) ? "a secret" : JSON.stringify(leak)).join(", ");
    throw new VolumeError(
      "precondition",
      `Cannot write the report because it holds what belongs to you: ${shown}; report this`,
    );
  }
  for (const [name, text] of Object.entries(files)) await writeText(`${output}/${name}`, text);
}

/** The texts of this program and of RouterOS's grammar in a report: their words are no names. */
function ownTextsOf(report: RunResult["report"]): readonly string[] {
  const { steps, commands, profile, transcript } = report;
  const bare = { ...report, steps: [], commands: [], transcript: [], profile: undefined };
  return [
    ...[formatReport(bare), formatReportText(bare), ...namesInRecords, ...keysOf(report)],
    ...steps.flatMap(({ step, promise, result }) => [step, promise, result]),
    ...commands.map(({ kind }) => kind),
    JSON.stringify({ ...profile as object | undefined, unanswered: {} }),
    ...transcript.flatMap((entry) =>
      "event" in entry ? [entry.event] : [entry.end, entry.command.replaceAll(quoted, '""')]
    ),
  ];
}

/** What a volume of a run has in its record and its path besides ids and numbers. */
const namesInRecords: readonly string[] = ["rds1", nodeId, otherNodeId, "disk.img"];

/** The names of all properties in a value, at any depth. */
function keysOf(value: unknown): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  const keys = Array.isArray(value) ? [] : Object.keys(value);
  return [...new Set([...keys, ...Object.values(value).flatMap(keysOf)])];
}
