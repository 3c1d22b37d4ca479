/**
 * Breaks each promise by a bug in a copy of the sources, and runs there what has to find it. Writes
 * tests/docs/planted.md, which names the line that fails.
 *
 * Usage: deno run -A tests/docs/plant_promises.ts [PROMISE…]: only those with that text, and writes nothing
 *
 * It fails when a bug is not found.
 */
import { join } from "node:path";
import { print } from "../../tools/print.ts";
import { onAllCores } from "../histories/cores.ts";
import { plant, withPlanted } from "../histories/plant.ts";
import { projectRoot } from "../support/parts.ts";
import { type Broken, plantedPage, plantedPath, type PromiseBug } from "./planted_page.ts";
import { promiseBugs } from "./promise_bugs.ts";

/** Schedules within which random histories have to find a bug. */
const schedules = 5_000;
/** What tests need of the project. */
const folders = ["src", "tests", "tools", "proto", "docs", "deploy"];

/** Returns the line that fails; undefined when nothing does. */
async function failingLine({ bug, test }: PromiseBug): Promise<string | undefined> {
  if (test === undefined) {
    const { found } = await plant(bug, schedules);
    return found?.violations[0]?.replaceAll(/: nqn\S+|-[0-9a-f]{28}\b/g, "").replaceAll(
      /\bnqn\S+/g,
      "an NQN",
    );
  }
  return await withPlanted(bug, folders, async (copy) => {
    const args = ["test", "-A", "--no-check", "--no-prompt", "--quiet", "--fail-fast", test];
    const options = { args, cwd: copy, env: { NO_COLOR: "1" } };
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), options).output();
    if (code === 0) return undefined;
    const output = new TextDecoder().decode(stdout);
    const [, errors] = output.split("\n ERRORS");
    // The line in the test's own file that the error came through, or at least the test that failed.
    const place = `${test.replaceAll(".", "[.]")}:(\\d+):\\d+`;
    const number = [`^ +at .*${place}`, `=> \\./${place}`].map((form) =>
      new RegExp(form, "m").exec(errors ?? "")
    )
      .find((match) => match !== null)?.[1];
    if (number === undefined) {
      throw new Error(
        `${test} does not run with "${bug.title}": ${output}${new TextDecoder().decode(stderr)}`,
      );
    }
    const lines = (await Deno.readTextFile(join(copy, test))).split("\n");
    return lines[Number(number) - 1]!.trim();
  });
}

async function broken(row: PromiseBug): Promise<Broken> {
  const line = await failingLine(row);
  print(`${line === undefined ? "NOT FOUND" : "found"}: ${row.bug.title}: ${line ?? ""}`);
  return { ...row, line };
}

const wanted = promiseBugs.filter(({ promise }) => Deno.args.every((text) => promise.includes(text)));
const rows = await onAllCores(wanted, broken);
if (Deno.args.length === 0) {
  const path = join(projectRoot, plantedPath);
  await Deno.writeTextFile(path, plantedPage(rows));
  await new Deno.Command(Deno.execPath(), { args: ["fmt", "--quiet", path] }).output();
  print(`written: ${plantedPath}`);
}
Deno.exit(rows.every(({ line }) => line !== undefined) ? 0 : 1);
