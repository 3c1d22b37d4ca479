import { systemClock } from "../../host/clock.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { ProvenDevice } from "../../volume/ports/node_ports.ts";
import { formatReport, reportDevice } from "./device_report.ts";
import { type AttachOptions, readAttachOptions } from "./options.ts";
import { assertNotStaged, connectedNqn, offeredNqn, parseSubject, type Subject } from "./subject.ts";
import { type CommandIo, commandNotes, exitCodes } from "../io.ts";
import { type NodeParts, openNodeDeps, systemNodeParts } from "../serve/node.ts";
import { withProgress } from "../progress.ts";
import { runLimited } from "../../async/deadline.ts";
import { isReadOnlyDevice } from "../../filesystem/contents.ts";
import type { KernelFiles } from "../../host/kernel_files.ts";
import { awaitDevice, holdingNamespace, prove } from "../../node/connections/device.ts";
import { proveMap, removeOwnMap } from "../../node/chain/map.ts";
import { encryptionFor } from "../../node/encryption/encryption_for.ts";
import { mapName } from "../../volume/model/device_layer.ts";
import { passphraseFault } from "../../volume/model/encryption.ts";
import { connectedNqns } from "../../node/connections/observe.ts";
import { withUndo } from "../../node/stage/undo.ts";
import type { NodeDeps } from "../../node/deps.ts";
import type { CallContext } from "../../volume/ports/system.ts";

/** The text of `rds-csi attach --help` before the flags. */
export const usage = `Usage: rds-csi attach NQN|VOLUME --nvme-address ADDRESS [flags]

Connects a volume to this machine by hand, proves that its device is the volume, and makes the kernel refuse every write to
it. Use it to read data that no pod can reach. It prints the device, its contents, and the command that mounts it without
replaying a log. It never writes to the volume. With --passphrase-stdin it also opens an encrypted volume, read-only:

  rds-csi attach VOLUME --nvme-address ADDRESS --passphrase-stdin < passphrase-file

It refuses a volume that is staged or connected here; with --existing it inspects that connection and changes nothing. You
can also read a volume that another node has mounted, but its file system changes while you read.

The router exports a volume only while it is published, and this command never contacts the router over SSH. To publish by
hand, let the cluster do it: create a VolumeAttachment object with the driver as its attacher, this node, and the volume's
PersistentVolume. The external-attacher then calls ControllerPublishVolume; delete the object to end the export. Its
status.attachmentMetadata holds nqn, nvmeAddress and nvmePort. Without a cluster any CSI client can make that call at the
controller's socket, and ControllerUnpublishVolume afterwards. docs/guides/rescue.md explains both.

Flags:
`;

/** How long connecting and reading may take, in milliseconds. */
const timeoutMs = 90_000;

/** `rds-csi attach`: connects a volume by hand, only for reading. */
export async function attachCommand(args: readonly string[], io: CommandIo): Promise<number> {
  return await attach(
    readAttachOptions(args, io.env),
    systemNodeParts(systemClock, commandNotes("attach", io)),
    io,
  );
}

/** Attaches, prints, and returns the exit code. */
export async function attach(options: AttachOptions, parts: NodeParts, io: CommandIo): Promise<number> {
  const { config, existing, opens } = options;
  const passphrase = opens ? await readPassphrase(io) : undefined;
  const deps = openNodeDeps(config, parts);
  const subject = parseSubject(options.subject, config.nqnPrefix);
  try {
    const { clock } = parts;
    const report = await withProgress(
      "attach",
      { io, clock, quiet: options.json },
      (progress) =>
        runLimited(clock, { name: "attach", timeoutMs, signal: io.signal }, (context) => {
          progress(existing ? "checking the connection" : `connecting to ${options.address}`);
          const report = (device: ProvenDevice) => {
            progress("reading the device's contents");
            return reportDevice(deps, device, parts, context, { onlyEnds: passphrase !== undefined });
          };
          return attachVolume(deps, parts.files, { ...options, subject, passphrase }, report, context);
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

/**
 * Reads the passphrase on the standard input.
 *
 * @throws {VolumeError} invalid when what is there can be no passphrase
 */
export async function readPassphrase(io: CommandIo): Promise<string> {
  const text = await io.input?.() ?? "";
  const fault = passphraseFault(text);
  if (fault !== undefined) {
    throw new VolumeError("invalid", `Cannot use the passphrase on the standard input because ${fault}`);
  }
  if (text.endsWith("\n")) io.err("attach: the passphrase ends with a line feed, which counts");
  return text;
}

/** The volume to attach. */
export interface AttachRequest extends Pick<AttachOptions, "address" | "port" | "sizeBytes" | "existing"> {
  readonly subject: Subject;
  /** Opens an encrypted volume. */
  readonly passphrase?: string | undefined;
}

/**
 * Connects a volume that is unused here, proves its device, makes the kernel refuse every write to it, and runs `use`.
 * When anything fails, the use included, all steps are undone.
 *
 * @throws {VolumeError} in-use when it is staged or connected here; not-found when the router does not offer it, or,
 *   with `existing`, it is not connected; identity-mismatch when the device is not the requested one; unavailable when
 *   the target refuses or the kernel does not set the flag; unauthenticated when the passphrase opens no key
 */
export async function attachVolume<T>(
  deps: NodeDeps,
  files: KernelFiles,
  request: AttachRequest,
  use: (device: ProvenDevice) => Promise<T>,
  context: CallContext,
): Promise<T> {
  const { subject, address, port, sizeBytes, passphrase } = request;
  if (request.existing) {
    const nqn = await connectedNqn(deps, subject, context);
    return await use(await proveConnected(deps, nqn, sizeBytes, context));
  }
  await assertNotStaged(deps, "attach", subject.volumeId);
  await assertNotConnected(deps, subject.volumeId, context);
  const nqn = await offeredNqn(deps, subject, { address, port }, context);
  return await withUndo(deps.clock, context, async (undo) => {
    undo.add("disconnect", async (undoing) => {
      // The kubelet may have staged it meanwhile: then the connection belongs to the kubelet.
      await assertNotStaged(deps, "disconnect", subject.volumeId);
      await deps.connector.disconnect(nqn, undoing);
    });
    await deps.connector.connect({ nqn, addresses: [address], port }, context);
    const device = await proveConnected(deps, nqn, sizeBytes, context);
    await assertNotStaged(deps, "attach", subject.volumeId);
    // blockdev goes by the name, which could be another volume's by then.
    await holdingNamespace(
      deps,
      device,
      context,
      () => deps.devices.setReadOnly(device, true, context),
    );
    assertReadOnly(files, device);
    if (passphrase === undefined) return await use(device);
    undo.add("close the mapping", async (undoing) => {
      await assertNotStaged(deps, "close", subject.volumeId);
      await removeOwnMap(deps, { ...subject, nqns: [nqn] }, undoing);
    });
    const options = { readOnly: true, allowDiscards: false };
    const encryption = await encryptionFor(deps, "attach", subject.volumeId, context);
    await encryption.open(mapName(subject.volumeId), device, passphrase, options, context);
    return await use(await proveMap(deps, device, context));
  });
}

async function assertNotConnected(deps: NodeDeps, volumeId: string, context: CallContext): Promise<void> {
  const connected = await connectedNqns(deps, volumeId, context);
  if (connected.length === 0) return;
  throw new VolumeError(
    "in-use",
    `Cannot attach the volume because it is connected here already: volume=${volumeId} ` +
      `nqn=${connected.join(",")}; use --existing to inspect that connection without a change, ` +
      "or rds-csi detach to end it when it is unused",
  );
}

async function proveConnected(
  deps: NodeDeps,
  nqn: string,
  sizeBytes: bigint,
  context: CallContext,
): Promise<ProvenDevice> {
  const found = await awaitDevice(deps, nqn, context);
  return await prove(deps, found, { nqn, sizeBytes }, context);
}

/** Reads the flag back: a person trusts it with data, so the tool's success is not enough. */
function assertReadOnly(files: KernelFiles, device: ProvenDevice): void {
  if (isReadOnlyDevice(files, device) === true) return;
  throw new VolumeError(
    "unavailable",
    `Cannot attach the volume because the kernel does not show its device as read-only: device=${device.path}`,
  );
}
