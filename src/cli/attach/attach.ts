import { describeFlags } from "../flags.ts";
import { systemClock } from "../../host/clock.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { ProvenDevice } from "../../volume/ports/node_ports.ts";
import { attachVolume } from "./attach_volume.ts";
import { reportDevice } from "./device_report.ts";
import { attachFlags, type AttachOptions, hostOf, readAttachOptions } from "./options.ts";
import { formatReport } from "./print.ts";
import { parseSubject } from "./subject.ts";
import { type CommandIo, commandNotes, exitCodes } from "../io.ts";
import { type NodeParts, openNodeWorld, systemNodeParts } from "../serve/node.ts";
import { withProgress } from "../progress.ts";
import { runLimited } from "../../async/deadline.ts";

const help = `Usage: rds-csi attach NQN|VOLUME --nvme-address ADDRESS [flags]

Connects a volume to this machine by hand, proves that its device is the volume, and has the kernel refuse every write to
it: for looking at data that no pod can reach. Prints the device, what lies on it, and the command that mounts it without
replaying a log. Nothing on the volume is ever written.

It refuses a volume that is staged or connected here; with --existing it looks at that connection and changes nothing. A
volume that another node has mounted can be looked at too, but its file system moves while you read.

An export is there only while the volume is published, and this command never touches the router. To publish by hand, let
the cluster do it: a VolumeAttachment object with the driver as its attacher, this node, and the volume's PersistentVolume
makes the external-attacher call ControllerPublishVolume; deleting it takes the export away. Its
status.attachmentMetadata holds nqn, nvmeAddress and nvmePort. Without a cluster any CSI client can make that call at the
controller's socket, and ControllerUnpublishVolume afterwards. docs/guides/rescue.md goes through both.

Exit code 0 when it is attached, 1 when it was refused or failed (then nothing is left connected), 2 when the command line
cannot be used, 3 when the volume is not offered, or with --existing not connected.

Flags:
`;

/** How long connecting and reading may take, in milliseconds. */
const timeoutMs = 90_000;

/** `rds-csi attach`: connects a volume by hand, to be read only. */
export async function attachCommand(args: readonly string[], io: CommandIo): Promise<number> {
  if (args.includes("--help")) {
    io.out(help + describeFlags(attachFlags));
    return exitCodes.ok;
  }
  return await attach(
    readAttachOptions(args, io.env),
    systemNodeParts(systemClock, commandNotes("attach", io)),
    io,
  );
}

/** Attaches, prints, and gives the exit code. */
export async function attach(options: AttachOptions, parts: NodeParts, io: CommandIo): Promise<number> {
  const { config, existing } = options;
  const world = openNodeWorld(config, parts, hostOf(options));
  const subject = parseSubject(options.subject, config.nqnPrefix);
  try {
    const { clock } = parts;
    const report = await withProgress(
      "attach",
      { io, clock, quiet: options.json },
      (progress) =>
        runLimited(clock, { name: "attach", timeoutMs, signal: io.signal }, (context) => {
          progress(existing ? "looking at the connection" : `connecting to ${options.address}`);
          const report = (device: ProvenDevice) => {
            progress("looking at what lies on the device");
            return reportDevice(world, device, parts, context);
          };
          return attachVolume(world, parts.files, { ...options, subject }, report, context);
        }),
    );
    for (const line of options.json ? [JSON.stringify(report, null, 2)] : formatReport(report)) io.out(line);
    if (!existing) io.err(`attach: end it with: rds-csi detach ${report.nqn}`);
    return exitCodes.ok;
  } catch (error) {
    if (!VolumeError.is(error, "not-found")) throw error;
    io.err(`rds-csi attach: ${error.message}`);
    return exitCodes.unknown;
  }
}
