import { readVolumeCommand } from "./config/config.ts";
import { systemFiles } from "./config/backends.ts";
import { allowFormat } from "../controller/volumes/allow_format.ts";
import { type CommandIo, exitCodes } from "./io.ts";
import { withController } from "./controller_command.ts";

/** The text of `rds-csi allow-format --help` before the flags. */
export const usage = `Usage: rds-csi allow-format VOLUME [flags]

Lets the next node that gets this volume make a file system on it, if the device proves to be empty. Use it for a volume
whose first publish never made one. The volume must not be published. The command changes nothing on the volume, and the
node still makes every check: it refuses a device that holds anything.

Flags:
`;

/** How long the router may take, in milliseconds. */
const timeoutMs = 60_000;

/** `rds-csi allow-format`: lets an unpublished volume be formatted in its next epoch. */
export async function allowFormatCommand(args: string[], io: CommandIo): Promise<number> {
  const { config, id } = readVolumeCommand(args, io.env, await systemFiles(args, io.env));
  const run = { name: "allow-format", config, timeoutMs };
  await withController(run, io, (deps, context) => allowFormat(deps, id, context));
  io.out(`The volume ${id} may be formatted in its next epoch, if it is empty.`);
  return exitCodes.ok;
}
