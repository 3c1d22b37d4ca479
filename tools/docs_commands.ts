// The reference page of the commands, from the executable's own list.

import { exitCodes, exitMeanings } from "../src/cli/io.ts";
import { commands } from "../src/cli/commands.ts";
import type { Command, ExitName } from "../src/cli/io.ts";

const exits = Object.keys(exitCodes) as ExitName[];

/** Commands whose exit codes nobody asks for: those of every command hold. */
const withoutCodes: readonly string[] = ["serve", "simulator", "demo", "permissions"];

/** The page as Markdown. */
export async function commandsPage(): Promise<string> {
  const all = await Promise.all(
    Object.entries(commands).map(async ([name, command]) => ({
      name,
      command,
      flags: await command.flags(),
    })),
  );
  const general = exits.map((exit) => `**${exitCodes[exit]}** ${exitMeanings[exit]}`);
  const rows = all.map(({ name, command, flags }) =>
    `- \`${name}\`${Object.hasOwn(flags, "json") ? " (`--json`)" : ""}: ${command.help}`
  );
  const codes = all.filter(({ name, command }) => command.exits !== undefined && !withoutCodes.includes(name))
    .map(({ name, command }) => {
      const own = exits.filter((exit) => meaning(command, exit) !== "");
      return `- \`${name}\`: ${
        own.map((exit) => `**${exitCodes[exit]}** ${meaning(command, exit)}`).join(" ")
      }`;
    });
  return `# Commands

Written by \`make docs\` from \`src/cli/commands.ts\`. \`rds-csi COMMAND --help\`, or \`-h\`, explains a command and its flags,
which [flags.md](flags.md) lists.

${rows.join("\n")}

With \`--json\` a command prints one JSON document to standard output, and nothing else there; for several routers
\`rds-csi audit\` prints a document a line. Errors and progress go to standard error.

VOLUME is the volumeHandle of a PersistentVolume. \`describe\`, \`adopt\`, \`release\`, \`withdraw\` and \`allow-format\` also take
\`pvc/NAMESPACE/NAME\` and \`pv/NAME\`, in a pod of the controller or with \`--kubeconfig\`.

## Exit codes

${general.join(" ")} Codes with a more exact meaning:

${codes.join("\n")}
`;
}

function meaning({ exits: own = {} }: Command, exit: ExitName): string {
  return own[exit] ?? "";
}
