import { command, ros } from "../../routeros/console/command.ts";
import { answered, type Outcome, type Probe, type Question, together, unanswered } from "./question.ts";

/** How often a router is asked to say nothing: a line that comes by chance is not noise. */
const rounds = 3;

/** Line ends, and what is printed unasked. */
export const printingQuestion: Question = {
  names: ["lineEnd", "noise"],
  ask: async (probe) => together(await askLineEnd(probe), await askNoise(probe)),
};

async function askLineEnd({ line, names }: Probe): Promise<Outcome> {
  const { stdout } = await line.exec(command(ros`:put ${names.tag}`));
  const [, end] = /(\r?\n|\r)$/.exec(stdout) ?? [];
  if (end === "\r\n") return answered({ lineEnd: "crlf" });
  if (end === "\n") return answered({ lineEnd: "lf" });
  return unanswered("lineEnd", `its output ends in ${JSON.stringify(stdout.slice(-2))}`);
}

async function askNoise({ line, names }: Probe): Promise<Outcome> {
  let noisy = 0;
  for (let round = 0; round < rounds; round++) {
    const { stdout, stderr } = await line.exec(command(ros`:put ${names.tag}`));
    if (`${stdout}${stderr}`.trim() !== names.tag) noisy++;
  }
  if (noisy === 0 || noisy === rounds) return answered({ noise: noisy > 0 });
  return unanswered("noise", `${noisy} of ${rounds} commands printed something that was not asked for`);
}
