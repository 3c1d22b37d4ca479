import { systemClock } from "../../host/clock.ts";
import { VolumeError } from "../../volume/errors.ts";
import { type DetachOptions, readDetachOptions } from "./options.ts";
import { assertNotStaged, connectedNqn, parseSubject, type Subject } from "./subject.ts";
import { type CommandIo, commandNotes, exitCodes } from "../io.ts";
import { type NodeParts, openNodeDeps, systemNodeParts } from "../serve/node.ts";
import { runLimited } from "../../async/deadline.ts";
import { isReadOnlyDevice } from "../../filesystem/contents.ts";
import type { KernelFiles } from "../../host/kernel_files.ts";
import { removeOwnMap } from "../../node/chain/map.ts";
import { refuseUsed } from "../../node/connections/teardown.ts";
import type { NodeDeps } from "../../node/deps.ts";
import type { CallContext } from "../../volume/ports/system.ts";

/** The text of `rds-csi detach --help` before the flags. */
export const usage = `Usage: rds-csi detach NQN|VOLUME [flags]

Ends a connection that \`rds-csi attach\` made, or that was left behind. It refuses while the volume is staged, and while
its device or a partition is mounted, bound or open anywhere on this machine. It disconnects only this driver's exports,
and the export itself stays until the volume is unpublished.

Flags:
`;

/** How long it may take, in milliseconds. */
const timeoutMs = 60_000;

/** `rds-csi detach`: ends what `rds-csi attach` began. */
export async function detachCommand(args: readonly string[], io: CommandIo): Promise<number> {
  return await detach(
    readDetachOptions(args, io.env),
    systemNodeParts(systemClock, commandNotes("detach", io)),
    io,
  );
}

/** Detaches, prints, and returns the exit code. */
export async function detach(
  { config, subject, json }: DetachOptions,
  parts: NodeParts,
  io: CommandIo,
): Promise<number> {
  const deps = openNodeDeps(config, parts);
  try {
    const nqn = await runLimited(
      parts.clock,
      { name: "detach", timeoutMs, signal: io.signal },
      (context) => detachVolume(deps, parts.files, parseSubject(subject, config.nqnPrefix), context),
    );
    io.out(json ? JSON.stringify({ detached: nqn }) : `${nqn} is disconnected from this machine.`);
    return exitCodes.ok;
  } catch (error) {
    if (!VolumeError.is(error, "not-found")) throw error;
    io.err(`rds-csi detach: ${error.message}`);
    return exitCodes.unknown;
  }
}

/**
 * Ends an unused connection; returns its NQN. It does not flush a read-only device, which has no waiting writes.
 *
 * @throws {VolumeError} not-found when it is not connected here; in-use when it is staged, mounted, bound or open;
 *   unavailable when it is not gone afterwards
 */
export async function detachVolume(
  deps: NodeDeps,
  files: KernelFiles,
  subject: Subject,
  context: CallContext,
): Promise<string> {
  const { connector } = deps;
  const nqn = await connectedNqn(deps, subject, context);
  await assertNotStaged(deps, "detach", subject.volumeId);
  await refuseUsed(deps, nqn, "unused", context);
  await removeOwnMap(deps, { ...subject, nqns: [nqn] }, context);
  // Without a map above it the namespace itself may turn out to be open.
  await refuseUsed(deps, nqn, "unused", context);
  await assertNotStaged(deps, "detach", subject.volumeId);
  context.signal.throwIfAborted();
  const device = await connector.find(nqn, context);
  const nothingWaits = device !== undefined && isReadOnlyDevice(files, device) === true;
  await (nothingWaits ? connector.forceDisconnect(nqn, context) : connector.disconnect(nqn, context));
  if (!(await connector.connected(context)).includes(nqn)) return nqn;
  throw new VolumeError(
    "unavailable",
    `Cannot call the volume detached because it is still connected: nqn=${nqn}`,
  );
}
