import { command, type Fragment, ros } from "../../routeros/console/command.ts";
import type { Printed } from "./session.ts";
import { answered, type Outcome, type Question, together, unanswered } from "./question.ts";

/** How failures end, and how they are told. */
export const failuresQuestion: Question = {
  names: ["exitOnError", "errorStream", "errorPlace", "errorText"],
  async ask(probe) {
    const { line, names } = probe;
    // One fails when it runs, as there is no such disk; the other is not even understood.
    const whileRunning = await line.exec(command(ros`/disk set ${names.name("none")} comment=${""}`));
    const whileParsing = await line.exec(command(ros`/rds-csi-probe`));
    const usual = await line.exec(command(silence));
    const isKnown = /no such item|not enough permissions/.test(textOf(whileRunning)) &&
      /bad command name|syntax error|expected end of command/.test(textOf(whileParsing));
    return together(
      judgeStatus(whileRunning, whileParsing),
      judgeStream([whileRunning, whileParsing], usual),
      judgePlace(whileRunning, isKnown),
      answered({ errorText: isKnown ? "known" : "random" }),
    );
  },
};

/** A command that prints nothing of its own. */
const silence: Fragment = ros`:if (1 = 0) do={}`;

function judgeStatus(...failures: readonly Printed[]): Outcome {
  const statuses = new Set(failures.map(({ status }) => status));
  const [status] = statuses;
  if (statuses.size === 1 && (status === 0 || status === 1)) return answered({ exitOnError: status });
  return unanswered("exitOnError", `failed commands ended with ${[...statuses].join(" and ")}`);
}

/** Noise may come on stdout beside a failure on stderr, hardly the other way round. */
function judgeStream(failures: readonly Printed[], usual: Printed): Outcome {
  if (usual.stderr !== "") return unanswered("errorStream", "commands that work print on stderr as well");
  if (failures.every(({ stderr }) => stderr !== "")) return answered({ errorStream: "stderr" });
  if (failures.every(({ stdout, stderr }) => stderr === "" && stdout.trim() !== "")) {
    return answered({ errorStream: "stdout" });
  }
  return unanswered("errorStream", "failures are told now here, now there, or not at all");
}

function judgePlace(failure: Printed, isKnown: boolean): Outcome {
  if (!isKnown) return unanswered("errorPlace", "its failures are worded in a way that is not known");
  return answered({ errorPlace: /\(\/[a-z/-]+; line \d+\)/.test(textOf(failure)) });
}

function textOf({ stdout, stderr }: Printed): string {
  return `${stdout}\n${stderr}`;
}
