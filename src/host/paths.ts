import { basename, dirname, join } from "node:path";
import { VolumeError } from "../volume/errors.ts";
import type { CallContext, Clock } from "../volume/ports/system.ts";
import type { PathInfo, Paths } from "../volume/ports/node_ports.ts";
import { systemClock } from "./clock.ts";
import type { KernelFiles } from "./kernel_files.ts";
import { TimedFiles } from "./timed_files.ts";
import { complaint, type Processes } from "./processes.ts";

/** For operations that cannot be cancelled. */
const never = new AbortController().signal;

/** Options of {@linkcode SystemPaths}. */
export interface SystemPathsOptions {
  /** @default {systemClock} */
  readonly clock?: Clock;
  /** If it is given, direct children of /dev are read from the kernel's memory, without a child process. */
  readonly files?: KernelFiles;
  /** A read of a path that takes longer waits for something dead. @default {10000} */
  readonly readTimeoutMs?: number;
  /** Called for every file operation that was given up and goes on. @default {nothing is called} */
  readonly onHang?: () => void;
}

/**
 * The kubelet's folders and the driver's own.
 *
 * A path that may lie under a mount is read through a child process, which can hang without harm: every use of a path
 * begins with {@linkcode SystemPaths.mountPoint} or {@linkcode SystemPaths.info}. After those, the other operations
 * concern files and folders of the node's own file system, for which a thread of the runtime is enough.
 */
export class SystemPaths implements Paths {
  readonly #processes: Processes;
  readonly #files: TimedFiles;
  readonly #kernelFiles: KernelFiles | undefined;
  readonly #readTimeoutMs: number;

  constructor(processes: Processes, options: SystemPathsOptions = {}) {
    this.#processes = processes;
    this.#files = new TimedFiles(options.clock ?? systemClock, { onHang: options.onHang });
    this.#kernelFiles = options.files;
    this.#readTimeoutMs = options.readTimeoutMs ?? 10_000;
  }

  async info(path: string, context: CallContext): Promise<PathInfo | undefined> {
    context.signal.throwIfAborted();
    if (this.#kernelFiles !== undefined && /^\/dev\/[^/]+$/.test(path)) return this.#kernelFiles.info(path);
    const result = await this.#processes.run("stat", {
      args: ["-c", "%f %t %T", "--", path],
      signal: context.signal,
      subject: path,
      timeoutMs: this.#readTimeoutMs,
    });
    if (result.code === 0) return parseStat(result.stdout, path);
    if (/: (?:No such file or directory|Not a directory)$/m.test(result.stderr)) return undefined;
    throw new VolumeError("unavailable", `Cannot look at ${path}: ${complaint(result)}`);
  }

  async ownInfo(path: string, context: CallContext): Promise<PathInfo | undefined> {
    context.signal.throwIfAborted();
    try {
      const info = await this.#files.run(path, () => orUndefined(Deno.lstat(path)));
      // For a device the number is needed as well, which the runtime reports in another form.
      if (info === undefined || !info.isBlockDevice) return info && { kind: kindOf(info) };
    } catch (error) {
      if (!(error instanceof Deno.errors.NotCapable)) throw error;
    }
    return await this.info(path, context);
  }

  async mountPoint(path: string): Promise<string> {
    const parent = dirname(path);
    if (parent === path) return path;
    const result = await this.#processes.run("realpath", {
      args: ["--canonicalize-missing", "--zero", "--", parent],
      signal: never,
      subject: parent,
      timeoutMs: this.#readTimeoutMs,
    });
    const resolved = result.stdout.replace(/\0$/, "");
    if (result.code === 0 && resolved.startsWith("/")) return join(resolved, basename(path));
    throw new VolumeError("unavailable", `Cannot determine where ${path} leads to: ${complaint(result)}`);
  }

  async realPath(path: string): Promise<string | undefined> {
    return await this.#files.run(path, () => orUndefined(Deno.realPath(path)));
  }

  async makeFolder(path: string, mode: number): Promise<void> {
    await this.#files.run(path, () => Deno.mkdir(path, { recursive: true, mode }));
  }

  async makeFile(path: string, mode: number): Promise<void> {
    await this.#files.run(path, async () => {
      const file = await Deno.open(path, { write: true, create: true, mode });
      file.close();
    });
  }

  async setMode(path: string, mode: number): Promise<void> {
    await this.#files.run(path, () => setModeOf(path, mode));
  }

  async writeFile(path: string, text: string, mode: number): Promise<void> {
    await this.#files.run(path, () => replaceFile(path, text, mode));
  }

  async readFile(path: string): Promise<string | undefined> {
    return await this.#files.run(path, () => orUndefined(Deno.readTextFile(path)));
  }

  async removeEmptyFolder(path: string): Promise<void> {
    await this.#files.run(path, () => removeEmptyFolder(path));
  }

  async removeEmptyFile(path: string): Promise<void> {
    await this.#files.run(path, () => removeEmptyFile(path));
  }

  async removeFile(path: string): Promise<void> {
    await this.#files.run(path, () => removeFile(path));
  }

  async list(path: string): Promise<readonly string[]> {
    const names = () => orUndefined(Array.fromAsync(Deno.readDir(path), (entry) => entry.name));
    return await this.#files.run(path, names) ?? [];
  }
}

/** Syncs the mode, because the caller records that it is set, and a power loss must not make that untrue. */
async function setModeOf(path: string, mode: number): Promise<void> {
  const folder = await Deno.open(path, { read: true }); // With the new mode it might not open.
  try {
    await Deno.chmod(path, mode);
    await folder.sync();
  } finally {
    folder.close();
  }
}

/** The temporary file that is written before it replaces the older one. */
function temporaryOf(path: string): string {
  return `${path}.new`;
}

/** @throws {VolumeError} unavailable when the system refuses, for example on a full disk; the older file stays then */
async function replaceFile(path: string, text: string, mode: number): Promise<void> {
  const temporary = temporaryOf(path);
  try {
    await writeNew(temporary, text, mode);
    await Deno.rename(temporary, path);
    await syncFolder(dirname(path));
  } catch (error) {
    // Only errors of the system have a number.
    if (!(error instanceof Error) || !/\(os error [0-9]+\)/.test(error.message)) throw error;
    throw new VolumeError("unavailable", `Cannot write ${path}: ${error.message}`, { cause: error });
  }
}

async function writeNew(path: string, text: string, mode: number): Promise<void> {
  const file = await createNew(path, mode);
  try {
    await writeAll(file, new TextEncoder().encode(text));
    await file.sync();
  } catch (error) {
    await removeIfThere(path); // It takes space that may be short.
    throw error;
  } finally {
    file.close();
  }
}

async function removeEmptyFolder(path: string): Promise<void> {
  const info = await orUndefined(Deno.lstat(path));
  if (info === undefined) return;
  if (!info.isDirectory) {
    throw new VolumeError("precondition", `Cannot remove ${path} because it is not a folder`);
  }
  await refusing(path, "it is not an empty folder", Deno.remove(path));
}

async function removeEmptyFile(path: string): Promise<void> {
  const info = await orUndefined(Deno.lstat(path));
  if (info === undefined) return;
  if (!info.isFile || info.size !== 0) {
    throw new VolumeError("precondition", `Cannot remove ${path} because it is not an empty file`);
  }
  await Deno.remove(path);
}

async function removeFile(path: string): Promise<void> {
  // A process that ended while it wrote the file has left the temporary one, which nothing else removes.
  for (const one of [temporaryOf(path), path]) {
    const info = await orUndefined(Deno.lstat(one));
    if (info === undefined) continue;
    if (!info.isFile) throw new VolumeError("precondition", `Cannot remove ${one} because it is not a file`);
    await Deno.remove(one);
    await syncFolder(dirname(one));
  }
}

function kindOf(info: Deno.FileInfo): PathInfo["kind"] {
  if (info.isDirectory) return "directory";
  if (info.isFile) return "file";
  return info.isSymlink ? "link" : "other";
}

/** Mode, and for devices their number, all in hex (stat(1), `%f %t %T`). */
function parseStat(output: string, path: string): PathInfo {
  const match = /^([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)\n$/.exec(output);
  if (match === null) throw new VolumeError("unavailable", `Cannot look at ${path}: output=${output.trim()}`);
  const [mode, major, minor] = match.slice(1).map((digits) => parseInt(digits, 16)) as [
    number,
    number,
    number,
  ];
  switch (mode & 0o170000) {
    case 0o040000:
      return { kind: "directory" };
    case 0o100000:
      return { kind: "file" };
    case 0o060000:
      return { kind: "block", deviceNumber: `${major}:${minor}` };
    case 0o120000:
      return { kind: "link" };
    default:
      return { kind: "other" };
  }
}

async function writeAll(file: Deno.FsFile, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
}

async function createNew(path: string, mode: number): Promise<Deno.FsFile> {
  const create = () => Deno.open(path, { write: true, createNew: true, mode });
  try {
    return await create();
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    await removeIfThere(path); // Left by a crash, perhaps with another mode.
    return await create();
  }
}

/** A rename is on disk only when its folder is. */
async function syncFolder(path: string): Promise<void> {
  const folder = await Deno.open(path, { read: true });
  try {
    await folder.sync();
  } finally {
    folder.close();
  }
}

async function removeIfThere(path: string): Promise<void> {
  await orUndefined(Deno.remove(path));
}

async function orUndefined<T>(attempt: Promise<T>): Promise<T | undefined> {
  try {
    return await attempt;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) return undefined;
    throw error;
  }
}

async function refusing<T>(path: string, why: string, attempt: Promise<T>): Promise<T> {
  try {
    return await attempt;
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) throw error;
    throw new VolumeError("precondition", `Cannot remove ${path} because ${why}`, { cause: error });
  }
}
