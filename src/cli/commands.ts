import { describeFlags, type FlagTable, subjectFirst } from "./flags.ts";
import { type Command, type CommandIo, exitCodes, exitMeanings, type ExitName } from "./io.ts";

const routerFlags = async (): Promise<FlagTable> => (await import("./config/flag_tables.ts")).routerFlags;
const volumeFlags = async (): Promise<FlagTable> => (await import("./config/flag_tables.ts")).volumeFlags;

/** All commands by name. Their modules are loaded when they run: a node does not need a simulator. */
export const commands: Readonly<Record<string, Command>> = {
  serve: {
    help: "serve the CSI services: controller, node, or both",
    exits: { ok: "It stopped on a signal.", failed: "It could not start, or could not go on." },
    flags: async () => (await import("./config/flag_tables.ts")).serveFlags,
    usage: async () => (await import("./serve/serve.ts")).usage,
    run: async (args, io) => (await import("./serve/serve.ts")).serveCommand(args, io),
  },
  simulator: {
    help: "serve a simulated RouterOS box over SSH",
    exits: {
      ok: "It stopped on a signal; with --replay, there is no difference.",
      failed: "It cannot run; with --replay, there is a difference.",
    },
    flags: async () => (await import("./simulator.ts")).simulatorFlags,
    usage: async () => (await import("./simulator.ts")).usage,
    run: async (args, io) => (await import("./simulator.ts")).simulatorCommand(args, io),
  },
  demo: {
    help: "take a file system and a block volume through their lives on a simulated router",
    exits: { ok: "It ended with `demo: ok`.", failed: "A step failed, or something was left behind." },
    flags: async () => (await import("./demo/demo.ts")).demoFlags,
    usage: async () => (await import("./demo/demo.ts")).usage,
    run: async (args, io) => (await import("./demo/demo.ts")).demoCommand(args, io),
  },
  doctor: {
    help: "find out what is wrong with the router or this node",
    exits: {
      ok: "No problem was found; there may be warnings.",
      failed: "There is a problem, or not everything was checked.",
    },
    flags: async () => (await import("./doctor/options.ts")).doctorFlags,
    usage: async () => (await import("./doctor/doctor.ts")).usage,
    run: async (args, io) => (await import("./doctor/doctor.ts")).doctorCommand(args, io),
  },
  acceptance: {
    help: "find out which promises hold on your own router, and write a report",
    exits: {
      ok: "Every promise that could be shown holds, and nothing is left.",
      failed: "A promise does not hold, or it may not run there.",
    },
    flags: async () => (await import("./acceptance/options.ts")).acceptanceFlags,
    usage: async () => (await import("./acceptance/acceptance.ts")).usage,
    run: async (args, io) => (await import("./acceptance/acceptance.ts")).acceptanceCommand(args, io),
  },
  describe: {
    help: "show the state of a node's volumes, or follow a claim to where it hangs",
    exits: {
      ok: "All that it showed is healthy.",
      failed: "There is a problem, or not everything could be checked.",
      unknown: "The volume is not on this node.",
    },
    flags: async () => ({
      ...(await import("./describe/describe.ts")).describeFlags,
      ...(await import("./describe/of_claim.ts")).claimFlags,
      ...await routerFlags(),
    }),
    usage: async () => (await import("./describe/describe.ts")).usage,
    run: async (args, io) => (await import("./describe/describe.ts")).describeCommand(args, io),
  },

  attach: {
    help: "connect a volume to this machine by hand, to be read only",
    exits: {
      ok: "It is attached.",
      failed: "It was refused, or it failed; nothing is left connected.",
      unknown: "The router does not export the volume; with --existing, it is not connected.",
    },
    flags: async () => (await import("./attach/options.ts")).attachFlags,
    usage: async () => (await import("./attach/attach.ts")).usage,
    run: async (args, io) => (await import("./attach/attach.ts")).attachCommand(args, io),
  },
  detach: {
    help: "end a connection that attach made",
    exits: { ok: "It is disconnected.", unknown: "It is not connected here." },
    flags: async () => (await import("./attach/options.ts")).detachFlags,
    usage: async () => (await import("./attach/detach.ts")).usage,
    run: async (args, io) => (await import("./attach/detach.ts")).detachCommand(args, io),
  },
  audit: {
    help: "find disks and files on the router without an owner",
    exits: {
      ok: "There is no problem, and every requested deletion succeeded.",
      failed: "There is a problem, it was interrupted, or a deletion failed.",
    },
    flags: async () => ({ ...(await import("./audit/options.ts")).auditFlags, ...await routerFlags() }),
    usage: async () => (await import("./audit/audit.ts")).usage,
    run: async (args, io) => (await import("./audit/audit.ts")).auditCommand(args, io),
  },
  adopt: {
    help: "take over a volume of the legacy Go driver where no cluster can be asked",
    exits: { unknown: "With --from-cluster: no volume has that cluster's mark." },
    isAboutVolume: true,
    flags: async () => ({ ...(await import("./adopt/adopt.ts")).adoptFlags, ...await volumeFlags() }),
    usage: async () => (await import("./adopt/adopt.ts")).usage,
    run: async (args, io) => (await import("./adopt/adopt.ts")).adoptCommand(args, io),
  },
  import: {
    help: "make an existing disk or file of the router a volume, and print its PersistentVolume",
    flags: async () => ({ ...(await import("./import.ts")).importFlags, ...await routerFlags() }),
    usage: async () => (await import("./import.ts")).usage,
    run: async (args, io) => (await import("./import.ts")).importCommand(args, io),
  },
  release: {
    help: "give a volume back to the legacy Go driver, or an imported disk to its owner",
    isAboutVolume: true,
    flags: volumeFlags,
    usage: async () => (await import("./release.ts")).usage,
    run: async (args, io) => (await import("./release.ts")).releaseCommand(args, io),
  },
  withdraw: {
    help: "take a volume from all nodes that hold it, where nothing detaches it any more",
    isAboutVolume: true,
    flags: async () => ({ ...(await import("./withdraw.ts")).withdrawFlags, ...await volumeFlags() }),
    usage: async () => (await import("./withdraw.ts")).usage,
    run: async (args, io) => (await import("./withdraw.ts")).withdrawCommand(args, io),
  },
  "allow-format": {
    help: "let an empty, unpublished volume be formatted once more",
    isAboutVolume: true,
    flags: volumeFlags,
    usage: async () => (await import("./allow_format.ts")).usage,
    run: async (args, io) => (await import("./allow_format.ts")).allowFormatCommand(args, io),
  },
  permissions: {
    help: "try one permission of this executable",
    exits: { failed: "It was refused, or failed." },
    flags: async () => (await import("./permissions.ts")).permissionsFlags,
    usage: async () => (await import("./permissions.ts")).usage,
    run: async (args, io) => (await import("./permissions.ts")).permissionsCommand(args, io),
  },
  completion: {
    help: "print a completion script for bash, zsh or fish",
    flags: () => Promise.resolve({}),
    usage: async () => (await import("./completion.ts")).usage,
    run: async (args, io) => (await import("./completion.ts")).completionCommand(args, io, commands),
  },
  version: {
    help: "print the version",
    flags: async () => (await import("./version.ts")).versionFlags,
    usage: async () => (await import("./version.ts")).usage,
    run: async (args, io) => (await import("./version.ts")).versionCommand(args, io),
  },
};

/** Runs a command, or only prints its help when `--help` is among its arguments; returns the exit code. */
export async function runCommand(command: Command, args: string[], io: CommandIo): Promise<number> {
  const table = await command.flags();
  if (!args.includes("--help")) {
    const words = subjectFirst(table, args);
    if (command.isAboutVolume === undefined) return await command.run(words, io);
    const { inCluster } = await import("./volume_name.ts");
    return await command.run(await inCluster(words, table, io), io);
  }
  io.out(await command.usage() + describeFlags(table) + describeExits(command));
  return exitCodes.ok;
}

/** The exit codes of a command as help text. `unknown` is listed only for a command whose subject may be missing. */
function describeExits({ exits = {} }: Command): string {
  const meanings = Object.entries({ ...exitMeanings, unknown: undefined, ...exits });
  const lines = meanings.map(([name, meaning]) =>
    meaning && `  ${exitCodes[name as ExitName]}  ${meaning}\n`
  );
  return `\nExit codes:\n${lines.join("")}`;
}
