import type { NodeParts } from "../../src/cli/serve/node.ts";
import { SystemBlockDevices } from "../../src/filesystem/block_devices.ts";
import { SystemFilesystems } from "../../src/filesystem/filesystems.ts";
import { SystemMounts } from "../../src/filesystem/mounts.ts";
import { systemClock } from "../../src/host/clock.ts";
import { Libc } from "../../src/host/libc.ts";
import { SystemPaths } from "../../src/host/paths.ts";
import { SystemProcesses } from "../../src/host/processes.ts";
import { systemToolPaths, type ToolPaths } from "../../src/host/tools.ts";
import { LoopConnector } from "../../src/loop/loop_connector.ts";
import { NodeService } from "../../src/node/node_service.ts";
import type { PublishRequest } from "../../src/node/publish/publish.ts";
import type { StageRequest } from "../../src/node/stage/wish.ts";
import type { NodeDeps } from "../../src/node/deps.ts";
import { StagingStore } from "../../src/node/state/staging_store.ts";
import type { Capability } from "../../src/volume/model/capabilities.ts";
import type { CallContext } from "../../src/volume/ports/system.ts";
import type { Connector } from "../../src/volume/ports/node_ports.ts";
import { RecordedEvents } from "../fakes/node_events.ts";
import { hostOutput, isThere } from "../../tools/host_command.ts";
import { loopsUnder, mountsUnder } from "../support/left_here.ts";

/** NQN prefix of every volume of these tests. */
export const nqnPrefix = "nqn.2000-02.com.mikrotik";

/** Large enough for xfs, which makes nothing below 300 MiB. */
export const volumeBytes = 320n * 1024n * 1024n;

export const ext4: Capability = { access: "mount", filesystem: "ext4", mode: "single-node-writer" };
export const xfs: Capability = { access: "mount", filesystem: "xfs", mode: "single-node-writer" };
export const block: Capability = { access: "block", mode: "single-node-writer" };

/** How a test's node differs. */
export interface RealNodeOptions {
  readonly toolPaths?: Partial<ToolPaths>;
  readonly readTimeoutMs?: number;
  /** How it connects volumes. @default {LoopConnector} */
  readonly connector?: (parts: NodeParts, statePath: string) => Connector;
  /** How it makes maps on its volumes' devices, and encrypts them. @default {neither} */
  readonly mapping?: (parts: NodeParts) => Pick<NodeDeps, "maps" | "encryption">;
}

/** A real node: loop devices, file systems and mounts of this machine under its own folder. */
export class RealNode {
  readonly deps: NodeDeps;
  readonly service: NodeService;
  readonly libc = new Libc();
  readonly events = new RecordedEvents();
  readonly processes: SystemProcesses;
  readonly backing: string;
  readonly state: string;
  readonly kubelet: string;

  constructor(readonly folder: string, name = "node-1", options: RealNodeOptions = {}) {
    this.backing = `${folder}/backing`;
    this.state = `${folder}/${name}/state`;
    this.kubelet = `${folder}/${name}/kubelet`;
    const clock = systemClock;
    const toolPaths = { ...systemToolPaths, ...options.toolPaths };
    const processes = new SystemProcesses({ clock, toolPaths });
    this.processes = processes;
    const paths = new SystemPaths(processes, { ...options, files: this.libc });
    const files = this.libc;
    const mounts = new SystemMounts(processes, files, paths, clock);
    const devices = new SystemBlockDevices(processes, files, clock);
    const parts = {
      processes,
      files,
      paths,
      clock,
      mounts,
      devices,
      notes: { warn() {}, info() {} },
      events: this.events,
    };
    const connector = options.connector?.(parts, this.state) ??
      new LoopConnector({ ...parts, backingPath: this.backing, statePath: `${this.state}/loop` });
    this.deps = {
      connector,
      mounts,
      filesystems: new SystemFilesystems(processes, { files, clock }),
      devices,
      ...options.mapping?.(parts),
      paths,
      stagingStore: new StagingStore({ paths, clock, events: this.events, statePath: this.state }),
      machine: { is: () => undefined },
      clock,
      events: this.events,
      settings: { nodeId: name, maxVolumesPerNode: 0, statePath: this.state, nqnPrefix },
    };
    this.service = new NodeService(this.deps);
    for (
      const path of [`${this.backing}/exports`, `${this.backing}/files`, this.state, `${this.kubelet}/pods`]
    ) {
      Deno.mkdirSync(path, { recursive: true });
    }
  }

  staging(id: string): string {
    return `${this.kubelet}/staging/${id}`;
  }

  target(id: string, pod = "pod-1"): string {
    return `${this.kubelet}/pods/${pod}/${id}`;
  }

  file(id: string): string {
    return `${this.backing}/files/${id}.img`;
  }

  stageRequest(volume: TestVolume, change: Partial<StageRequest> = {}): StageRequest {
    return {
      volumeId: volume.id,
      stagingPath: this.staging(volume.id),
      capability: ext4,
      mountFlags: [],
      publishContext: volume.publishContext(),
      volumeContext: {},
      ...change,
    };
  }

  publishRequest(volume: TestVolume, change: Partial<PublishRequest> = {}): PublishRequest {
    return {
      volumeId: volume.id,
      stagingPath: this.staging(volume.id),
      targetPath: this.target(volume.id),
      capability: ext4,
      mountFlags: [],
      readOnly: false,
      publishContext: volume.publishContext(),
      volumeContext: {},
      ...change,
    };
  }

  async stage(volume: TestVolume, change: Partial<StageRequest> = {}): Promise<void> {
    await this.service.stage(this.stageRequest(volume, change), call());
  }

  async unstage(volume: TestVolume): Promise<void> {
    await this.service.unstage({ volumeId: volume.id, stagingPath: this.staging(volume.id) }, call());
  }

  async publish(volume: TestVolume, change: Partial<PublishRequest> = {}): Promise<void> {
    await this.service.publish(this.publishRequest(volume, change), call());
  }

  async unpublish(volume: TestVolume, pod?: string): Promise<void> {
    await this.service.unpublish({ volumeId: volume.id, targetPath: this.target(volume.id, pod) }, call());
  }

  /** The device of a volume, by its connected export. */
  async device(volume: TestVolume): Promise<string> {
    const found = await this.deps.connector.find(volume.nqn, call());
    if (found === undefined) throw new Error(`${volume.id} is not connected`);
    return found.path;
  }
}

/** A volume of the simulator's kind: a sparse file, and a link to it while it is exported. */
export class TestVolume {
  readonly folder: string;
  epoch = 1;
  sizeBytes: bigint;
  mayFormat = true;
  imported = false;
  readOnly = false;
  mayReplay = false;

  constructor(readonly node: RealNode, readonly id: string, sizeBytes = volumeBytes) {
    this.folder = node.backing;
    this.sizeBytes = sizeBytes;
    Deno.writeFileSync(this.image, new Uint8Array());
    Deno.truncateSync(this.image, Number(sizeBytes));
    this.export();
  }

  get image(): string {
    return `${this.folder}/files/${this.id}.img`;
  }

  get epochText(): string {
    return `${this.epoch}-0a0b0c0d`;
  }

  get nqn(): string {
    return `${nqnPrefix}:${this.id}:${this.epochText}`;
  }

  export(): void {
    Deno.symlinkSync(this.image, `${this.folder}/exports/${this.nqn}`);
  }

  withdraw(): void {
    Deno.removeSync(`${this.folder}/exports/${this.nqn}`);
  }

  /** Changes the holder, or publishes to the same one again. */
  nextEpoch(): void {
    this.withdraw();
    this.epoch++;
    this.mayFormat = false;
    this.export();
  }

  grow(sizeBytes: bigint): void {
    Deno.truncateSync(this.image, Number(sizeBytes));
    this.sizeBytes = sizeBytes;
  }

  publishContext(): Record<string, string> {
    return {
      nvmeAddress: "127.0.0.1",
      nvmePort: "4420",
      nqn: this.nqn,
      epoch: this.epochText,
      size: String(this.sizeBytes),
      readonly: String(this.readOnly),
      mayFormat: String(this.mayFormat),
      imported: String(this.imported),
      ...(this.mayReplay ? { mayReplay: "true" } : {}),
    };
  }
}

/** A call with a deadline, so that no test hangs. */
export function call(signal: AbortSignal = AbortSignal.timeout(60_000)): CallContext {
  return { requestId: "test", signal };
}

const missing = whatIsMissing();
if (missing !== undefined) say(`ignored: ${missing}`);

function say(line: string): void {
  Deno.stderr.writeSync(new TextEncoder().encode(`${line}\n`));
}

function whatIsMissing(): string | undefined {
  if (Deno.uid() !== 0) return "they mount, which needs root";
  if (!isThere("/dev/loop-control")) return "they need loop devices (/dev/loop-control)";
  const tools = ["/usr/sbin/mkfs.ext4", "/usr/sbin/mkfs.xfs", "/usr/sbin/losetup", "/usr/sbin/blkid"];
  const tool = tools.find((path) => !isThere(path));
  return tool === undefined ? undefined : `${tool} is not installed`;
}

/**
 * Lets one test at a time use loop devices: the kernel gives the number of a detached device to the next test, which
 * would find it in mounts that the first test has not removed yet. The lock is this file's, so nothing is left.
 */
async function takeLoopDevices(): Promise<Disposable> {
  const file = await Deno.open(new URL(import.meta.url));
  await file.lock(true);
  return file;
}

/**
 * Registers a test on a real node; afterwards nothing of it may be left on the machine, whatever happened.
 *
 * @param lacking what else it needs and this machine lacks, which has been printed already
 */
export function nodeTest(name: string, use: (node: RealNode) => Promise<void>, lacking?: string): void {
  Deno.test({
    name,
    ignore: (missing ?? lacking) !== undefined,
    fn: async () => {
      using _turn = await takeLoopDevices();
      const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "rds-csi-node-" }));
      const node = new RealNode(folder);
      let failure: unknown;
      try {
        await use(node);
      } catch (error) {
        failure = error;
      }
      const left = await cleanUp(folder);
      node.libc.close();
      if (failure !== undefined) throw failure;
      if (left.length > 0) throw new Error(`left behind: ${left.join(", ")}`);
    },
  });
}

/** Removes everything that a test left; returns what that was. */
async function cleanUp(folder: string): Promise<readonly string[]> {
  const left: string[] = [];
  const mounted = mountsUnder(folder);
  for (const mountPoint of mounted.toReversed()) {
    left.push(`mount ${mountPoint}`);
    await tryRun("umount", "-l", mountPoint);
  }
  for (const device of await loopsUnder(folder)) {
    left.push(`loop device ${device}`);
    await tryRun("losetup", "-d", device);
  }
  await Deno.remove(folder, { recursive: true });
  return left;
}

/** A failure does not stop the clean-up. */
async function tryRun(command: string, ...args: string[]): Promise<void> {
  await new Deno.Command(command, { args, stdin: "null" }).output();
}

/** Runs a command of this machine and returns what it printed; a failure throws. */
export async function run(command: string, ...args: string[]): Promise<string> {
  return await hostOutput(command, args);
}

/** What tells whether a file or device has changed: a CRC, as a digest of 320 MiB takes a second. */
export async function checksum(path: string): Promise<string> {
  return (await run("cksum", path)).split(" ")[0]!;
}

/**
 * The words of a command that runs `script`, with `args` as its parameters, in its own mount namespace. Copies of other
 * tests' mounts are removed first: they would keep those busy.
 */
export function apart(folder: string, script: string, ...args: string[]): readonly string[] {
  const others =
    'awk -v own="$0" \'$5 ~ "^/tmp/rds-csi-" && index($5, own) != 1 { print $5 }\' /proc/self/mountinfo';
  const alone = `for at in $(${others} | sort -r); do umount -l "$at"; done; `;
  return ["unshare", "--mount", "--propagation", "private", "sh", "-c", alone + script, folder, ...args];
}
