import { routerFlags } from "../config/flag_tables.ts";
import { loadRoutersParser } from "../config/backends.ts";
import { type Import, importVolume } from "../../controller/import/import.ts";
import { describeFlags } from "../flags.ts";
import { systemClock } from "../../host/clock.ts";
import { systemRandom } from "../../host/random.ts";
import { importFlags, readImportOptions } from "./options.ts";
import { persistentVolume, toYaml } from "./persistent_volume.ts";
import { type CommandIo, exitCodes } from "../io.ts";
import { withControllerWorld } from "../controller_command.ts";

const help = `Usage: rds-csi import SLOT --kind KIND [flags]
       rds-csi import --path /POOL/FILE --kind KIND [--slot SLOT] [flags]

Makes a file-backed disk that somebody else made, or a file without a disk, a volume of this cluster, and prints a
PersistentVolume for it: apply what it prints. The data stays as it is. The disk gets this cluster's record beside the note
in its comment, and the router mounts nothing in it any more; file and slot keep their names.

Such a volume is never formatted and never deleted; there are no snapshots of it. "rds-csi release SLOT" takes the record
away again.

Refused is what somebody may be using: an export that is on, a file system that the router has mounted, a file that another
disk uses, a disk with another cluster's record. Of a volume that has this cluster's record only the PersistentVolume is
printed: so those of a lost cluster are written again, with its --cluster-id.

Flags:
`;

/** How long the router may take, in milliseconds. */
const timeoutMs = 120_000;

/** `rds-csi import`: makes what is there a volume, and prints a PersistentVolume for it. */
export async function importCommand(args: readonly string[], io: CommandIo): Promise<number> {
  if (args.includes("--help")) {
    io.out(help + describeFlags({ ...importFlags, ...routerFlags }));
    return exitCodes.ok;
  }
  const { config, request, object, json } = readImportOptions(
    args,
    io.env,
    Deno.readTextFileSync,
    await loadRoutersParser(args),
  );
  const done = await withControllerWorld(
    { name: "import", config, timeoutMs },
    { clock: systemClock, random: systemRandom },
    io,
    (world, context) => importVolume(world, request, context),
  );
  // What is printed goes into a file: words are for whoever looks on.
  for (const line of explain(done)) io.err(line);
  const volume = persistentVolume({ volumeHandle: config.prefix + done.id, ...done }, object);
  io.out(json ? JSON.stringify(volume, undefined, 2) : toYaml(volume));
  return exitCodes.ok;
}

function explain({ outcome, id, imagePath, sizeBytes, withdrawn }: Import): string[] {
  const what = `${id} (${imagePath}, ${sizeBytes} bytes)`;
  const words = {
    imported: `The disk ${what} is a volume of this cluster now.`,
    already: `The disk ${what} was imported before.`,
    own: `The volume ${what} is one that this driver made: nothing was changed.`,
    would: `The disk ${what} can be imported. Nothing was changed.`,
  };
  const cut = `Its export under ${withdrawn} ${outcome === "would" ? "would be" : "was"} withdrawn.`;
  return [words[outcome], ...withdrawn === "" ? [] : [cut]];
}
