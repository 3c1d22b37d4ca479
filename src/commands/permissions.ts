import { parseArgs } from "node:util";
import { spawnProcess } from "../host/spawn.ts";
import { type CommandIo, exitCodes } from "./io.ts";
import { dropControllerPrivileges } from "./privileges.ts";

const help =
  `Usage: rds-csi permissions [--controller] --try-run TOOL | --try-load LIBRARY | --try-read FILE |
                          --try-write FILE | --try-env NAME

Tries one thing that the executable may or may not do, and says how it ended: what is not on the list that it was built
with is refused, whoever runs it. Exit code 0 when it was done, 1 when it was refused.

Flags:
  --controller    as a controller, which has given up running tools and loading libraries
`;

/** `rds-csi permissions`: shows what this executable may do, by trying. */
export async function permissionsCommand(args: string[], io: CommandIo): Promise<number> {
  const text = { type: "string" } as const;
  const flags = { controller: { type: "boolean" }, help: { type: "boolean" } } as const;
  const tries = { "try-run": text, "try-load": text, "try-read": text, "try-write": text, "try-env": text };
  const { values } = parseArgs({ args, options: { ...flags, ...tries }, strict: false });
  const [name, value] = Object.entries(values).find(([name]) => Object.hasOwn(tries, name)) ?? [];
  const attempt = attemptsOf(io)[name ?? ""];
  if (values.help === true || attempt === undefined || typeof value !== "string") {
    (values.help === true ? io.out : io.err)(help);
    return values.help === true ? exitCodes.ok : exitCodes.usage;
  }
  if (values.controller === true) await dropControllerPrivileges();
  try {
    io.out(`done: ${await attempt(value)}`);
    return exitCodes.ok;
  } catch (error) {
    io.out(
      `${isRefusal(error) ? "refused" : "failed"}: ${error instanceof Error ? error.message : String(error)}`,
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
    (await Deno.open(path, { append: true, create: true })).close(); // What is in it stays.
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
