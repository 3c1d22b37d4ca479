import { FlagError, type FlagTable, readFlags } from "./flags.ts";
import { messageOf } from "../volume/error_messages.ts";
import { spawnProcess } from "../host/spawn.ts";
import { type CommandIo, exitCodes } from "./io.ts";
import { dropControllerPrivileges } from "./serve/privileges.ts";

/** Flags of `rds-csi permissions`. */
export const permissionsFlags: FlagTable = {
  "try-run": { form: "text", help: "Run a program with --version." },
  "try-load": { form: "text", help: "Load a library." },
  "try-read": { form: "text", help: "Read a file." },
  "try-write": { form: "text", help: "Open a file for writing, and do not change it." },
  "try-env": { form: "text", help: "Read an environment variable." },
  controller: {
    form: "switch",
    help: "Try as a controller, which may not run tools, load libraries, or use a node's folders.",
  },
};

/** The text of `rds-csi permissions --help` before the flags. */
export const usage = `Usage: rds-csi permissions [--controller] --try-… WHAT

Tries one action and prints the result. An action that is not on the list that the executable was built
with is refused, whoever runs it.

Flags:
`;

/**
 * `rds-csi permissions`: shows what this executable may do, by trying it.
 *
 * @throws {FlagError} when the flags are invalid
 */
export async function permissionsCommand(args: string[], io: CommandIo): Promise<number> {
  const flags = readFlags(permissionsFlags, args, io.env);
  const attempts = Object.entries(attemptsOf(io)).filter(([name]) => flags.isGiven(name));
  const isController = flags.switch("controller");
  flags.assertNoProblems();
  const [name, attempt] = attempts[0] ?? [];
  if (name === undefined || attempt === undefined || attempts.length > 1) {
    throw new FlagError(["give exactly one of the flags --try-…"]);
  }
  if (isController) await dropControllerPrivileges();
  try {
    io.out(`done: ${await attempt(flags.text(name))}`);
    return exitCodes.ok;
  } catch (error) {
    io.out(
      `${isRefusal(error) ? "refused" : "failed"}: ${messageOf(error)}`,
    );
    return exitCodes.failed;
  }
}

type Attempts = Readonly<Record<string, (value: string) => string | Promise<string>>>;

const attemptsOf = (io: CommandIo): Attempts => ({
  "try-run": runTool,
  "try-load": loadLibrary,
  "try-read": async (path) => `read ${(await Deno.readFile(path)).length} bytes of ${path}`,
  "try-write": async (path) => {
    (await Deno.open(path, { append: true, create: true })).close(); // Its content stays.
    return `wrote ${path}`;
  },
  "try-env": (name) => `${io.env(name) === undefined ? "not set" : "set"}: ${name}`,
});

async function runTool(path: string): Promise<string> {
  const { code } = await spawnProcess(path, ["--version"]).result;
  return `ran ${path}, which ended with ${code}`;
}

function loadLibrary(path: string): string {
  Deno.dlopen(path, {}).close();
  return `loaded ${path}`;
}

function isRefusal(error: unknown): boolean {
  return error instanceof Deno.errors.NotCapable;
}
