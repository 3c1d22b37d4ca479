import { FlagError } from "./flags.ts";
import { type Command, type CommandIo, exitCodes } from "./io.ts";

/** What `rds-csi completion --help` says before the flags. */
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
  // zsh runs what bash does: bashcompinit is a part of it.
  zsh: `autoload -U +X bashcompinit && bashcompinit\n${bashScript}`,
  fish:
    `complete -c rds-csi -a '(rds-csi completion words "$(commandline -opc | string join " ") $(commandline -ct)")'`,
};

/**
 * `rds-csi completion`: prints the script of a shell; for that script, which words may come next in a line.
 *
 * @throws {FlagError} when no such shell is known
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

/** What may follow these words: a command, a flag of it, or one of the few values of a flag; nothing where any value may. */
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
