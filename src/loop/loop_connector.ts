import { Semaphore } from "../async/semaphore.ts";
import type { ToolResult } from "../host/spawn.ts";
import type { KernelFiles } from "../host/kernel_files.ts";
import { complaint, type Processes } from "../host/processes.ts";
import type { ToolName } from "../host/tools.ts";
import { VolumeError } from "../volume/errors.ts";
import type { CallContext, Clock } from "../volume/ports/system.ts";
import type {
  Connection,
  Connector,
  FoundDevice,
  MissingPath,
  Paths,
  Target,
} from "../volume/ports/node_ports.ts";

/** Options of {@linkcode LoopConnector}. */
interface LoopConnectorOptions {
  /** The simulator's backing folder: `exports/<nqn>` in it links to a file exactly while that file is exported. */
  readonly backingPath: string;
  /** Folder for state files; no two nodes share one. */
  readonly statePath: string;
  readonly processes: Processes;
  readonly files: KernelFiles;
  readonly paths: Paths;
  readonly clock: Clock;
}

/** Other programs attach loop devices too: a free one may be taken before this process attaches it. */
const maxAttachAttempts = 32;
const retryMs = 10;
/** How long a device may take to disappear that is just being closed. */
const detachMs = 5_000;
const sectorBytes = 512n;

/** Connects the simulator's volumes through loop devices, for machines without the kernel's NVMe modules. */
export class LoopConnector implements Connector {
  readonly name = "loop";
  /** A loop device that is open when it is detached disappears when it is closed. */
  readonly sparesOpenDevices = true;
  readonly #options: LoopConnectorOptions;
  /** One at a time: concurrent attaches would take the free devices from one another. */
  readonly #attaching = new Semaphore(1);

  constructor(options: LoopConnectorOptions) {
    this.#options = options;
  }

  // deno-lint-ignore require-await -- a throw of the look becomes a rejection
  async obstacle(): Promise<string | undefined> {
    if (this.#options.files.info("/dev/loop-control") !== undefined) return undefined;
    return "there are no loop devices because /dev/loop-control is missing";
  }

  async connect(target: Target, context: CallContext): Promise<readonly MissingPath[]> {
    const backing = await this.#exported(target.nqn);
    const attachment = await this.#attachment(target.nqn);
    if (attachment !== undefined) {
      if (this.#backingFile(attachment) === backing) return [];
      await this.disconnect(target.nqn, context); // Its file is no longer the exported one.
    }
    const attach = () => this.#attach(target.nqn, backing, context);
    await this.#attaching.run(context.signal, attach);
    return [];
  }

  /** A file has one path. */
  addPaths(): Promise<readonly MissingPath[]> {
    return Promise.resolve([]);
  }

  async find(nqn: string): Promise<FoundDevice | undefined> {
    const attachment = await this.#attachment(nqn);
    if (attachment === undefined) return undefined;
    const { files } = this.#options;
    const deviceNumber = files.readText(`/sys/block/${attachment.device}/dev`);
    const sectors = files.readText(`/sys/block/${attachment.device}/size`);
    if (deviceNumber === undefined || sectors === undefined) return undefined;
    return {
      path: `/dev/${attachment.device}`,
      deviceNumber,
      sizeBytes: BigInt(sectors) * sectorBytes,
      nqn,
      nsid: 1,
      uniqueId: "",
    };
  }

  async rescan(nqn: string, context: CallContext): Promise<void> {
    const attachment = await this.#attachment(nqn);
    if (attachment === undefined) {
      throw new VolumeError("unavailable", `Cannot rescan because it is not connected: nqn=${nqn}`);
    }
    const result = await this.#run(
      "losetup",
      ["-c", `/dev/${attachment.device}`],
      attachment.device,
      context,
    );
    if (result.code !== 0) throw failed("rescan", attachment, result);
  }

  async disconnect(nqn: string, context: CallContext): Promise<void> {
    const attachment = await this.#attachment(nqn);
    if (attachment !== undefined) await this.#detach(nqn, attachment, context);
    await this.#options.paths.removeFile(this.#statePath(nqn));
  }

  /** The kernel removes a loop device only when it is closed: a forced disconnect is not possible. */
  async forceDisconnect(nqn: string, context: CallContext): Promise<void> {
    await this.disconnect(nqn, context);
  }

  async connections(nqn: string): Promise<readonly Connection[]> {
    const attachment = await this.#attachment(nqn);
    if (attachment === undefined) return [];
    const nobody = { address: "", port: 0, hostNqn: "", hostId: "" };
    return [{ nqn, name: attachment.device, state: "live", stateName: "live", ...nobody }];
  }

  async allConnections(): Promise<ReadonlyMap<string, readonly Connection[]>> {
    const nqns = await this.connected();
    return new Map(await Promise.all(nqns.map(async (nqn) => [nqn, await this.connections(nqn)] as const)));
  }

  async allDevices(): Promise<ReadonlyMap<string, FoundDevice>> {
    const nqns = await this.connected();
    const found = await Promise.all(nqns.map(async (nqn) => [nqn, await this.find(nqn)] as const));
    return new Map(found.flatMap(([nqn, device]) => device === undefined ? [] : [[nqn, device] as const]));
  }

  async offered(): Promise<readonly string[]> {
    return await this.#options.paths.list(`${this.#options.backingPath}/exports`);
  }

  async connected(): Promise<readonly string[]> {
    const nqns: string[] = [];
    for (const name of await this.#options.paths.list(this.#options.statePath)) {
      if (name.endsWith(".new")) continue; // Left incomplete by a crash.
      if (await this.#attachment(name) !== undefined) nqns.push(name);
    }
    return nqns;
  }

  async live(): Promise<ReadonlySet<string>> {
    return new Set(await this.connected());
  }

  /** The file that is exported under that NQN now. */
  async #exported(nqn: string): Promise<string> {
    assertFileName(nqn);
    const backing = await this.#options.paths.realPath(`${this.#options.backingPath}/exports/${nqn}`);
    if (backing !== undefined) return backing;
    throw new VolumeError(
      "unavailable",
      `Cannot connect because the target refuses: no such export: nqn=${nqn}`,
    );
  }

  #statePath(nqn: string): string {
    assertFileName(nqn);
    return `${this.#options.statePath}/${nqn}`;
  }

  /** The attachment for that NQN, according to the kernel. */
  async #attachment(nqn: string): Promise<Attachment | undefined> {
    const path = this.#statePath(nqn);
    const text = await this.#options.paths.readFile(path);
    if (text === undefined) return undefined;
    const attachment = parseAttachment(text, path);
    return this.#isAttached(attachment) ? attachment : undefined;
  }

  /** A loop device of that name may have been attached to another file, or to the same file by another node. */
  #isAttached(attachment: Attachment): boolean {
    const backing = this.#backingFile(attachment);
    if (backing !== attachment.backing && backing !== `${attachment.backing} (deleted)`) return false;
    const known = attachment.diskSequence;
    return known === undefined || known === this.#diskSequence(attachment.device);
  }

  #backingFile({ device }: Attachment): string | undefined {
    return this.#options.files.readText(`/sys/block/${device}/loop/backing_file`);
  }

  #diskSequence(device: string): string | undefined {
    return this.#options.files.readText(`/sys/block/${device}/diskseq`);
  }

  async #attach(nqn: string, backing: string, context: CallContext): Promise<void> {
    const { clock, paths } = this.#options;
    await paths.makeFolder(this.#options.statePath, 0o700);
    for (let attempt = 0; attempt < maxAttachAttempts; attempt++) {
      const device = await this.#freeDevice(context);
      const attachment: Attachment = { backing, device, diskSequence: undefined };
      await this.#remember(nqn, attachment);
      const result = await this.#run("losetup", [`/dev/${device}`, backing], device, context);
      if (result.code === 0) {
        await this.#remember(nqn, { ...attachment, diskSequence: this.#diskSequence(device) });
        return;
      }
      await paths.removeFile(this.#statePath(nqn));
      if (!/busy/i.test(result.stderr)) throw failed("attach", attachment, result);
      await clock.sleep(retryMs * (attempt + 1), context.signal);
    }
    throw new VolumeError(
      "unavailable",
      `Cannot attach because every loop device was taken at once: nqn=${nqn}`,
    );
  }

  async #freeDevice(context: CallContext): Promise<string> {
    const result = await this.#run("losetup", ["-f"], "losetup", context);
    const device = /^\/dev\/(loop[0-9]+)\n$/.exec(result.stdout)?.[1];
    if (result.code === 0 && device !== undefined) return device;
    throw new VolumeError("unavailable", `Cannot find a free loop device: ${complaint(result)}`);
  }

  async #remember(nqn: string, attachment: Attachment): Promise<void> {
    await this.#options.paths.writeFile(this.#statePath(nqn), formatAttachment(attachment), 0o600);
  }

  async #detach(nqn: string, attachment: Attachment, context: CallContext): Promise<void> {
    const { clock } = this.#options;
    const device = `/dev/${attachment.device}`;
    // Its result changes nothing: data that a dead device refused is lost, and keeping the device would not recover it.
    // The read-only flag belongs to the device, and would stay for its next user.
    await this.#run("blockdev", ["--flushbufs", "--setrw", device], attachment.device, context);
    const result = await this.#run("losetup", ["-d", device], attachment.device, context);
    const untilMs = clock.monotonicMs() + detachMs;
    while (this.#isAttached(attachment)) {
      if (result.code !== 0) throw failed("detach", attachment, result);
      if (clock.monotonicMs() >= untilMs) {
        throw new VolumeError(
          "in-use",
          `Cannot detach ${device} because it is open or mounted: nqn=${nqn}`,
        );
      }
      await clock.sleep(retryMs, context.signal);
    }
  }

  async #run(
    tool: ToolName,
    args: readonly string[],
    subject: string,
    context: CallContext,
  ): Promise<ToolResult> {
    const options = { args, signal: context.signal, subject, timeoutMs: 30_000 };
    return await this.#options.processes.run(tool, options);
  }
}

function failed(verb: string, attachment: Attachment, result: ToolResult): VolumeError {
  return new VolumeError(
    "unavailable",
    `Cannot ${verb} the loop device: device=${attachment.device} file=${attachment.backing}: ` +
      `${complaint(result)}`,
  );
}

/** NQNs are file names here. */
function assertFileName(nqn: string): void {
  if (/^nqn\.[^/\0]{1,219}$/.test(nqn)) return;
  throw new VolumeError(
    "invalid",
    `Cannot use the NQN because it has another form: nqn=${JSON.stringify(nqn.slice(0, 64))}`,
  );
}

/** The loop connector's record of one subsystem: written before the device is attached. */
interface Attachment {
  /** The backing file, links resolved. */
  readonly backing: string;
  /** Name of the loop device, such as `loop3`. */
  readonly device: string;
  /** The kernel's sequence number of the attach; undefined before it, and on kernels before 5.15. */
  readonly diskSequence: string | undefined;
}

/** Formats a state file. */
function formatAttachment(attachment: Attachment): string {
  return JSON.stringify(attachment) + "\n";
}

/**
 * Parses a state file.
 *
 * @throws {VolumeError} precondition when it is damaged
 */
export function parseAttachment(text: string, path: string): Attachment {
  const { backing, device, diskSequence } = parseFields(text);
  const sound = typeof backing === "string" && backing.startsWith("/") &&
    typeof device === "string" && /^loop[0-9]+$/.test(device) &&
    (diskSequence === undefined || (typeof diskSequence === "string" && /^[0-9]+$/.test(diskSequence)));
  if (!sound) {
    throw new VolumeError("precondition", `Cannot use the state file because it is damaged: file=${path}`);
  }
  return { backing, device, diskSequence };
}

function parseFields(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value as Record<string, unknown> : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}
