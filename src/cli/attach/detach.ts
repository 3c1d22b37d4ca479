import { describeFlags } from "../flags.ts";
import { systemClock } from "../../host/clock.ts";
import { VolumeError } from "../../volume/errors.ts";
import { detachVolume } from "./detach_volume.ts";
import { detachFlags, type DetachOptions, readDetachOptions } from "./options.ts";
import { parseSubject } from "./subject.ts";
import { type CommandIo, commandNotes, exitCodes } from "../io.ts";
import { type NodeParts, openNodeWorld, systemNodeParts } from "../serve/node.ts";
import { runLimited } from "../../async/deadline.ts";

const help = `Usage: rds-csi detach NQN|VOLUME [flags]

Ends a connection that \`rds-csi attach\` made, or that was left behind, once nobody uses it: it refuses while the volume is
staged, and while its device or a partition of it is mounted, bound or open anywhere on this machine. It disconnects
nothing but this driver's exports, and the export itself stays until the volume is unpublished.

Exit code 0 when it is gone, 1 when it was refused or failed, 2 when the command line cannot be used, 3 when it is not
connected here.

Flags:
`;

/** How long it may take, in milliseconds. */
const timeoutMs = 60_000;

/** `rds-csi detach`: ends what `rds-csi attach` began. */
export async function detachCommand(args: readonly string[], io: CommandIo): Promise<number> {
  if (args.includes("--help")) {
    io.out(help + describeFlags(detachFlags));
    return exitCodes.ok;
  }
  return await detach(
    readDetachOptions(args, io.env),
    systemNodeParts(systemClock, commandNotes("detach", io)),
    io,
  );
}

/** Detaches, prints, and gives the exit code. */
export async function detach(
  { config, subject, json }: DetachOptions,
  parts: NodeParts,
  io: CommandIo,
): Promise<number> {
  const world = openNodeWorld(config, parts);
  try {
    const nqn = await runLimited(
      parts.clock,
      { name: "detach", timeoutMs, signal: io.signal },
      (context) => detachVolume(world, parts.files, parseSubject(subject, config.nqnPrefix), context),
    );
    io.out(json ? JSON.stringify({ detached: nqn }) : `${nqn} is not connected here any more.`);
    return exitCodes.ok;
  } catch (error) {
    if (!VolumeError.is(error, "not-found")) throw error;
    io.err(`rds-csi detach: ${error.message}`);
    return exitCodes.unknown;
  }
}
