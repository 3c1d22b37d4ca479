import { takeVolume } from "./config/config.ts";
import { readBackendOf, systemFiles } from "./config/backends.ts";
import { volumeFlags } from "./config/flag_tables.ts";
import { withdrawVolume } from "../controller/attachments/unpublish.ts";
import { type FlagTable, readFlags } from "./flags.ts";
import { type CommandIo, exitCodes } from "./io.ts";
import { withController } from "./controller_command.ts";

/** Flags of `rds-csi withdraw`. */
export const withdrawFlags: FlagTable = {
  "vouch": {
    form: "switch",
    help: "You vouch that no cluster needs the volume on its nodes. Required.",
  },
};

/** The text of `rds-csi withdraw --help` before the flags. */
export const usage = `Usage: rds-csi withdraw VOLUME --vouch [flags]

Takes a volume from every node that holds it. Use it when nothing will ever unpublish it: the cluster that attached it is
gone, or the controller has left its export on in doubt (event ExportUnwanted) and no node uses it. The export goes off,
and the next one has another name: a node that still has the volume can write no more, and loses data that it has not
written yet. The volume itself does not change.

Otherwise a running cluster withdraws its volumes itself: delete the pod, and its VolumeAttachment goes.

Flags:
`;

/** How long the router may take, in milliseconds. */
const timeoutMs = 60_000;

/** `rds-csi withdraw`: takes a volume from all nodes that hold it. */
export async function withdrawCommand(args: readonly string[], io: CommandIo): Promise<number> {
  const table = { ...withdrawFlags, ...volumeFlags };
  const { handle, rest } = takeVolume(args);
  const flags = readFlags(table, rest, io.env);
  if (!flags.switch("vouch")) {
    flags.addProblems([
      "--vouch is required: with it you confirm that no node needs the volume, because nodes that use it are cut off",
    ]);
  }
  const { config, id } = readBackendOf(handle, flags, await systemFiles(args, io.env));
  const run = { name: "withdraw", config, timeoutMs };
  const nodes = await withController(run, io, (deps, context) => withdrawVolume(deps, id, context));
  const held = nodes.length === 0 ? "no node had it" : `it was taken from ${nodes.join(", ")}`;
  io.out(`The volume ${handle} is exported no more: ${held}.`);
  return exitCodes.ok;
}
