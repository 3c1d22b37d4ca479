import { readVolumeCommand } from "./config/config.ts";
import { systemFiles } from "./config/backends.ts";
import { releaseVolume } from "../controller/attachments/release.ts";
import { type CommandIo, exitCodes } from "./io.ts";
import { withController } from "./controller_command.ts";

/** What `rds-csi release --help` says before the flags. */
export const usage = `Usage: rds-csi release VOLUME [flags]

Gives a volume back to the legacy Go driver that made it: takes this cluster's record away, and turns the export on under
the NQN without an epoch, as that driver has it all the time. Only a volume that no node has, or that its nodes have under
that very NQN; nobody is cut off. A note in the disk's comment stays.

From then on whoever reaches the router can connect it: nothing keeps a second writer away but the legacy driver. Stop
this driver's controller first, as it would take the volume over again.

Of a disk that was imported only the record is taken away: disk, file and note stay, and its export is off. No node may have
it.

Flags:
`;

/** How long the router may take, in milliseconds: the grace after a withdrawal is waited for. */
const timeoutMs = 420_000;

/** `rds-csi release`: gives a volume back to the legacy driver, or to whoever made its disk. */
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
    `The volume ${id} ${
      already ? "had no record: nothing was changed" : "is given back"
    }; ${exported}${held}.`,
  );
  return exitCodes.ok;
}
