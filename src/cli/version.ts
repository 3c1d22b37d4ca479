import { type FlagTable, readFlags } from "./flags.ts";
import { commit, version } from "./build_version.ts";
import { type CommandIo, exitCodes } from "./io.ts";

/** Flags of `rds-csi version`. */
export const versionFlags: FlagTable = {
  json: { form: "switch", help: "Print it as one JSON object." },
};

/** The text of `rds-csi version --help` before the flags. */
export const usage = `Usage: rds-csi version [--json]

Prints the version, the commit it was built from, and the Deno inside.

Flags:
`;

/**
 * `rds-csi version`: prints what this executable is.
 *
 * @throws {FlagError} when the flags are invalid
 */
export function versionCommand(args: readonly string[], io: CommandIo): Promise<number> {
  const flags = readFlags(versionFlags, args, io.env);
  flags.assertNoProblems();
  if (flags.switch("json")) io.out(JSON.stringify(facts()));
  else io.out(`rds-csi ${version} (commit ${commit()}, deno ${Deno.version.deno}, ${Deno.build.target})`);
  return Promise.resolve(exitCodes.ok);
}

function facts(): Readonly<Record<string, string>> {
  return { version, commit: commit(), deno: Deno.version.deno, target: Deno.build.target };
}
