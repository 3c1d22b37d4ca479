import { dirname } from "node:path";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import type { Random } from "../../volume/ports/system.ts";
import { TEMPORARY_NAME_BYTES } from "./endpoint.ts";

/** Owner and group may connect: the kubelet and the sidecars. */
const SOCKET_MODE = 0o660;

/** A socket at its path. */
export interface PlacedSocket {
  /** Whether it is still there: neither removed nor replaced. */
  isInPlace(): Promise<boolean>;
  /** Removes the socket unless another has replaced it. */
  remove(): Promise<void>;
}

/**
 * Lets `listen` bind a temporary name beside `path`, sets the mode, and only then renames it: the socket is never
 * visible with another mode than 0660. A stale socket is replaced in the same step.
 *
 * @throws {VolumeError} precondition when another process answers at `path`, or when something other than a socket is
 *   there
 */
export async function placeSocket(
  path: string,
  random: Random,
  listen: (temporaryPath: string) => Promise<void>,
): Promise<PlacedSocket> {
  await assertReplaceable(path);
  const temporary = temporaryPath(path, random);
  try {
    await listen(temporary);
    await Deno.chmod(temporary, SOCKET_MODE);
    const placed = await Deno.lstat(temporary);
    await Deno.rename(temporary, path);
    return { isInPlace: () => isSame(path, placed), remove: () => removeIfSame(path, placed) };
  } catch (error) {
    await removeIfThere(temporary);
    throw error;
  }
}

/** Throws a precondition error unless the path is free, or has a socket without a listener. */
async function assertReplaceable(path: string): Promise<void> {
  const there = await lstatIfThere(path);
  if (there === undefined) return;
  if (!there.isSocket) {
    throw new VolumeError(
      "precondition",
      `Cannot listen because something that is not a socket is there: path=${path}`,
    );
  }
  const answer = await dial(path);
  if (answer === "refused") return;
  throw new VolumeError(
    "precondition",
    `Cannot listen because another process ${answer === "accepted" ? "answers" : "may still listen"} ` +
      `there: path=${path} (${answer}); stop it first`,
  );
}

/** Returns "refused" only when the kernel reports that no process listens; after any other result one might listen. */
async function dial(path: string): Promise<string> {
  try {
    const connection = await Deno.connect({ transport: "unix", path });
    connection.close();
    return "accepted";
  } catch (error) {
    if (error instanceof Deno.errors.ConnectionRefused || error instanceof Deno.errors.NotFound) {
      return "refused";
    }
    return messageOf(error);
  }
}

function temporaryPath(path: string, random: Random): string {
  const digits = random.bytes(TEMPORARY_NAME_BYTES).toHex().slice(0, TEMPORARY_NAME_BYTES - 1);
  const folder = dirname(path);
  return `${folder === "/" ? "" : folder}/.${digits}`;
}

async function removeIfSame(path: string, placed: Deno.FileInfo): Promise<void> {
  if (await isSame(path, placed)) await removeIfThere(path);
}

async function isSame(path: string, placed: Deno.FileInfo): Promise<boolean> {
  const there = await lstatIfThere(path);
  return there !== undefined && there.ino === placed.ino && there.dev === placed.dev;
}

async function lstatIfThere(path: string): Promise<Deno.FileInfo | undefined> {
  try {
    return await Deno.lstat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

async function removeIfThere(path: string): Promise<void> {
  try {
    await Deno.remove(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
