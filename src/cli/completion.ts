import { FlagError } from "./flags.ts";
import { type Command, type CommandIo, exitCodes } from "./io.ts";

/** The text of `rds-csi completion --help` before the flags. */
export const usage = `Usage: rds-csi completion bash|zsh|fish

Prints a completion script: the shell asks rds-csi for commands, flags, and the values of flags with a few choices:

  bash    source <(rds-csi completion bash)
  zsh     source <(rds-csi completion zsh)     after compinit
  fish    rds-csi completion fish | source
`;

const bashScript = `_rds_csi() {
  local words=$(rds-csi completion words "\${COMP_WORDS[*]:0:COMP_CWORD+1}")
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _rds_csi rds-csi`;

const scripts: Readonly<Record<string, string>> = {
  bash: bashScript,
  // zsh runs bash's script through bashcompinit, which is a part of zsh.
  zsh: `autoload -U +X bashcompinit && bashcompinit\n${bashScript}`,
  fish:
    `complete -c rds-csi -a '(rds-csi completion words "$(commandline -opc | string join " ") $(commandline -ct)")'`,
};

/**
 * `rds-csi completion`: prints the script of a shell; for that script, the possible next words of a line.
 *
 * @throws {FlagError} for an unknown shell
 */
export async function completionCommand(
  [shell = "", ...more]: readonly string[],
  io: CommandIo,
  commands: Readonly<Record<string, Command>>,
): Promise<number> {
  const isAsked = shell === "words" && more.length === 1;
  const script = Object.hasOwn(scripts, shell) && more.length === 0 ? scripts[shell] : undefined;
  if (!isAsked && script === undefined) {
    throw new FlagError([`name one shell: ${Object.keys(scripts).join(", ")}`]);
  }
  io.out(script ?? (await nextWords(more[0]!.split(" ").slice(1, -1), commands)).join("\n"));
  return exitCodes.ok;
}

/**
 * The possible next words: a command, one of its flags, or one of the few values of a flag; none where any value may
 * follow.
 */
async function nextWords(
  [name, ...words]: readonly string[],
  commands: Readonly<Record<string, Command>>,
): Promise<readonly string[]> {
  if (name === undefined) return Object.keys(commands);
  if (name === "completion") return Object.keys(scripts);
  const table = Object.hasOwn(commands, name) ? await commands[name]!.flags() : {};
  const previous = table[words.at(-1)?.replace(/^--?/, "") ?? ""];
  if (previous !== undefined && previous.form !== "switch") return previous.choices ?? [];
  const used = Object.keys(table).filter((flag) => table[flag]!.ignored === undefined);
  return [...used, "help"].map((flag) => `--${flag}`);
}
