import { readVolumeCommand } from "./config/config.ts";
import { systemFiles } from "./config/backends.ts";
import { releaseVolume } from "../controller/attachments/release.ts";
import { type CommandIo, exitCodes } from "./io.ts";
import { withController } from "./controller_command.ts";

/** The text of `rds-csi release --help` before the flags. */
export const usage = `Usage: rds-csi release VOLUME [flags]

Gives a volume back to the legacy Go driver that made it: removes this cluster's record, and turns the export on under the
NQN without an epoch, as that driver keeps it. It accepts only a volume that no node has, or that its nodes have under that
NQN, so no node loses its connection. A note in the disk's comment stays.

From then on every machine that reaches the router can connect the volume: only the legacy driver keeps a second writer
away. Stop this driver's controller first, because it would take the volume over again.

For an imported disk it only removes the record: disk, file and note stay, and the export is off. No node may have the
volume.

Flags:
`;

/** How long the router may take, in milliseconds, including the grace period after a withdrawal. */
const timeoutMs = 420_000;

/** `rds-csi release`: gives a volume back to the legacy driver, or to the maker of its disk. */
export async function releaseCommand(args: readonly string[], io: CommandIo): Promise<number> {
  const { config, id } = readVolumeCommand(args, io.env, await systemFiles(args, io.env));
  const run = { name: "release", config, timeoutMs };
  const { already, nqn, nodes } = await withController(
    run,
    io,
    (deps, context) => releaseVolume(deps, id, context),
  );
  const exported = nqn === "" ? "its export is off" : `it is exported under ${nqn}`;
  const held = nodes.length === 0 ? "" : `, and goes on for ${nodes.join(", ")}`;
  io.out(
    `The volume ${id} ${already ? "had no record: nothing changed" : "is given back"}; ${exported}${held}.`,
  );
  return exitCodes.ok;
}
