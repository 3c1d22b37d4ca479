import { type Flag, FlagError, type FlagTable } from "./flags.ts";
import { type Command, type CommandIo, exitCodes } from "./io.ts";

/** What `rds-csi completion --help` says before the flags. */
export const usage = `Usage: rds-csi completion bash|zsh|fish

Prints a script that makes a shell complete the commands of rds-csi, their flags, and the values of flags that have only a
few:

  bash    source <(rds-csi completion bash)
  zsh     source <(rds-csi completion zsh)     after compinit
  fish    rds-csi completion fish | source
`;

/** A command as a shell is to know it. */
interface Known {
  readonly name: string;
  readonly help: string;
  readonly positionals: readonly string[];
  readonly flags: FlagTable;
}

/**
 * `rds-csi completion`: prints a script for a shell.
 *
 * @throws {FlagError} when no such shell is known
 */
export async function completionCommand(
  args: readonly string[],
  io: CommandIo,
  commands: Readonly<Record<string, Command>>,
): Promise<number> {
  const [shell = "", ...more] = args;
  const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
  if (script === undefined || more.length > 0) {
    throw new FlagError([`name one shell: ${Object.keys(scripts).join(", ")}`]);
  }
  const known = await Promise.all(
    Object.entries(commands).map(async ([name, command]): Promise<Known> => ({
      name,
      help: command.help,
      positionals: command.positionals ?? [],
      flags: { ...await command.flags(), help: { form: "switch", help: "Explains the command." } },
    })),
  );
  io.out(script(known));
  return exitCodes.ok;
}

const scripts: Readonly<Record<string, (known: readonly Known[]) => string>> = {
  bash: bashScript,
  // zsh runs what bash does: bashcompinit is a part of it.
  zsh: (known) => `autoload -U +X bashcompinit && bashcompinit\n${bashScript(known)}`,
  fish: fishScript,
};

/** Flags as they are written, the ones without effect left out. */
function shown({ flags }: Known): readonly (readonly [name: string, flag: Flag])[] {
  return Object.entries(flags).filter(([, { ignored }]) => ignored === undefined);
}

/** After a flag that takes a value comes one of a few, or a file; otherwise a flag, and first of all a command. */
function bashScript(known: readonly Known[]): string {
  const cases = known.map((command) => {
    const valued = shown(command).filter(([, { form }]) => form !== "switch");
    const choices = valued.filter(([, flag]) => flag.choices !== undefined);
    return [
      `    ${command.name})`,
      `      flags="${shown(command).map(([name]) => `--${name}`).join(" ")}"`,
      `      words="${command.positionals.join(" ")}"`,
      `      case "$previous" in`,
      ...choices.map(([name, flag]) => `        --${name}) values="${flag.choices!.join(" ")}" ;;`),
      ...(valued.length === 0
        ? []
        : [`        ${valued.map(([name]) => `--${name}`).join("|")}) values="-" ;;`]),
      "      esac ;;",
    ].join("\n");
  });
  return `_rds_csi() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" flags="" words="" values=""
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${known.map(({ name }) => name).join(" ")}" -- "$current"))
    return
  fi
  case "\${COMP_WORDS[1]}" in
${cases.join("\n")}
  esac
  if [ "$values" = "-" ]; then
    COMPREPLY=($(compgen -f -- "$current"))
  else
    COMPREPLY=($(compgen -W "\${values:-$words $flags}" -- "$current"))
  fi
}
complete -F _rds_csi rds-csi`;
}

function fishScript(known: readonly Known[]): string {
  return [
    "complete -c rds-csi -f",
    ...known.flatMap((command) => {
      const here = `-n '__fish_seen_subcommand_from ${command.name}'`;
      return [
        `complete -c rds-csi -n __fish_use_subcommand -a ${command.name} -d ${quoted(command.help)}`,
        ...(command.positionals.length === 0
          ? []
          : [`complete -c rds-csi ${here} -a '${command.positionals.join(" ")}'`]),
        ...shown(command).map(([name, flag]) =>
          `complete -c rds-csi ${here} -l ${name}${fishValue(flag)} -d ${quoted(flag.help)}`
        ),
      ];
    }),
  ].join("\n");
}

function fishValue({ form, choices }: Flag): string {
  if (form === "switch") return "";
  return choices === undefined ? " -r -F" : ` -x -a '${choices.join(" ")}'`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
