// A node in a guest: the driver's own objects on the guest's kernel, and volumes that the same kernel's target exports.

import { nodeFlags } from "../../../src/cli/config/flag_tables.ts";
import { readNodeFlags } from "../../../src/cli/node_flags.ts";
import { type NodeParts, openNodeDeps } from "../../../src/cli/serve/node.ts";
import { Cryptsetup } from "../../../src/device_mapper/cryptsetup.ts";
import { DeviceMapper } from "../../../src/device_mapper/device_mapper.ts";
import type { NodeDeps } from "../../../src/node/deps.ts";
import { hostIdentityOf } from "../../../src/volume/model/host/identity.ts";
import { VolumeError, type VolumeErrorKind } from "../../../src/volume/errors.ts";
import type { CallContext } from "../../../src/volume/ports/system.ts";
import type { Connector } from "../../../src/volume/ports/node_ports.ts";
import { call, RealNode, type RealNodeOptions, TestVolume } from "../../node/harness.ts";
import { mountsUnder } from "../../support/left_here.ts";
import { reasonOf } from "../../fakes/refusal.ts";
import { insideTest } from "./inside.ts";
import { NvmetTarget } from "./nvmet.ts";

/** How a {@linkcode GuestNode} differs. */
export interface GuestNodeOptions extends RealNodeOptions {
  /** Addresses of the target. @default {["127.0.0.1"]} */
  readonly addresses?: readonly string[];
}

const nodeId = "node-1";
/** The identity under which the target sees the node. */
export const ownHost = hostIdentityOf(nodeId);

/** The node service on the guest's kernel, over NVMe/TCP. */
export class GuestNode extends RealNode {
  readonly nvmet: NvmetTarget;

  constructor(
    folder: string,
    { addresses = ["127.0.0.1"], ...options }: GuestNodeOptions = {},
    nvmet?: NvmetTarget,
  ) {
    super(folder, nodeId, { ...options, connector: kernelConnector, mapping });
    this.nvmet = nvmet ?? new NvmetTarget(addresses);
  }

  /** The same node with a new process of the driver. */
  restarted(): GuestNode {
    return new GuestNode(this.folder, {}, this.nvmet);
  }

  get connector(): Connector {
    return this.deps.connector;
  }

  async grow(volume: GuestVolume, sizeBytes: bigint, volumePath: string): Promise<bigint> {
    volume.grow(sizeBytes);
    const range = { requiredBytes: sizeBytes, limitBytes: 0n };
    return await this.service.expand({ volumeId: volume.id, volumePath, range }, call());
  }

  /** The reasons of a volume's problems. */
  async problems(volume: GuestVolume): Promise<readonly string[]> {
    const { problems } = await this.service.volumeHealth(volume.id, call());
    return problems.map(({ reason }) => reason);
  }

  /** The state of each path to a volume, in the kernel's words. */
  async states(volume: GuestVolume): Promise<readonly string[]> {
    return (await this.connector.connections(volume.nqn, call())).map(({ stateName }) => stateName);
  }

  async deviceNumber(volume: GuestVolume): Promise<string | undefined> {
    return (await this.connector.find(volume.nqn, call()))?.deviceNumber;
  }
}

function mapping({ processes, files, clock }: NodeParts): Required<Pick<NodeDeps, "maps" | "encryption">> {
  const maps = new DeviceMapper(processes, files);
  return { maps, encryption: new Cryptsetup(processes, files, maps, clock) };
}

function kernelConnector(parts: NodeParts, statePath: string): Connector {
  const args = [`--node-id=${nodeId}`, "--connector=nvme-tcp", `--state-dir=${statePath}`];
  const { node } = readNodeFlags(nodeFlags, args, () => undefined, parts.files);
  return openNodeDeps(node.config, parts).connector;
}

/** A volume that the guest's own target exports. */
export class GuestVolume extends TestVolume {
  /** A device on the image that is exported instead. */
  declare device?: string;

  /**
   * A volume on a device of the device mapper on its image.
   *
   * @param table of the device mapper, with `$below` for the device under it
   */
  static async mapped(node: GuestNode, id: string, sizeBytes: bigint, table: string): Promise<GuestVolume> {
    const volume = new GuestVolume(node, id, sizeBytes);
    volume.withdraw();
    volume.below = await sh(`losetup -f --show ${volume.image}`);
    const rows = table.replaceAll("$below", volume.below);
    const minor = await sh(
      `dmsetup create ${id} << END\n${rows}\nEND\ndmsetup info -c --noheadings -o minor ${id}`,
    );
    volume.device = `/dev/dm-${minor.trim()}`;
    volume.export();
    return volume;
  }

  /** The device below the mapped one. */
  declare below?: string;

  /** Changes the map, even while it is open. */
  async remap(table: string): Promise<void> {
    const rows = table.replaceAll("$below", this.below!);
    await sh(
      `dmsetup suspend ${this.id} && dmsetup load ${this.id} << END\n${rows}\nEND\ndmsetup resume ${this.id}`,
    );
  }

  /** Withdraws it and removes the devices between the export and the image. */
  async unmap(): Promise<void> {
    this.withdraw();
    await sh(`dmsetup remove ${this.id} && losetup -d ${this.below}`);
  }

  get nvmet(): NvmetTarget {
    return (this.node as GuestNode).nvmet;
  }

  override export(hosts?: readonly string[]): void {
    this.nvmet.serve(this.nqn, this.device ?? this.image, hosts);
  }

  /** Exports it again after it was withdrawn, like a router that keeps identities. */
  exportAgain(): void {
    this.nvmet.serveAgain(this.nqn, this.device ?? this.image);
  }

  override withdraw(): void {
    this.nvmet.withdraw(this.nqn);
  }

  override publishContext(): Record<string, string> {
    return { ...super.publishContext(), nvmeAddress: this.nvmet.addresses.join(",") };
  }

  /** Keeps a copy of its image, and returns a function that asserts that no byte has changed. */
  async keep(): Promise<() => Promise<void>> {
    const copy = `${this.image}.kept`;
    await sh(`cp --sparse=always ${this.image} ${copy}`);
    return async () => void await sh(`cmp ${this.image} ${copy}`);
  }

  /** A digest of all bytes of its image. */
  async digest(): Promise<string> {
    return (await sh(`md5sum < ${this.image}`)).slice(0, 12);
  }
}

/** Connects like a person or an earlier process, and waits for the device, which the kernel finds afterwards. */
export async function connectByHand(volume: GuestVolume, host?: string): Promise<void> {
  await sh(commandByHand(volume, host));
  const node = volume.node as GuestNode;
  await until("its device is there", async () => await node.deviceNumber(volume) !== undefined);
}

/** The command that connects by hand, as this node or another host. */
export function commandByHand(
  { nvmet, nqn }: GuestVolume,
  host = `--hostnqn=${ownHost.hostNqn} --hostid=${ownHost.hostId}`,
): string {
  return `nvme connect -t tcp -a ${
    nvmet.addresses[0]
  } -s 4420 -n ${nqn} ${host} --reconnect-delay=1 --ctrl-loss-tmo=600`;
}

/** A call with so many milliseconds left, as a server makes one. */
export function callWithin(milliseconds: number): CallContext {
  const controller = new AbortController();
  const over = new VolumeError("deadline", `The call's ${milliseconds} ms are over`);
  Deno.unrefTimer(setTimeout(() => controller.abort(over), milliseconds));
  return { requestId: "test", signal: controller.signal, deadlineMs: Date.now() + milliseconds };
}

/** Whether an error has that kind and message. */
export function is(kind: VolumeErrorKind, text = /./) {
  return (error: unknown) => {
    if (VolumeError.is(error, kind) && text.test(error.message)) return true;
    const found = VolumeError.is(error) ? `${error.kind}: ${error.message}` : String(error);
    throw new Error(`expected ${kind} ${text}, and it is ${found}`, { cause: error });
  };
}

/** Waits for a refusal, and returns its message. */
export async function refusal(
  attempt: Promise<unknown>,
  kind: VolumeErrorKind,
  text: RegExp,
): Promise<string> {
  const outcome = await attempt.then(() => undefined, (error) => error);
  if (outcome === undefined) throw new Error(`expected ${kind} ${text}, and it went through`);
  is(kind, text)(reasonOf(outcome));
  return (outcome as VolumeError).message;
}

/** Runs a shell script in the guest and returns what it printed; a failure throws. */
export async function sh(script: string): Promise<string> {
  const { code, stdout, stderr } = await shell(script);
  if (code === 0) return stdout;
  throw new Error(`${script}: exit ${code}: ${stdout}${stderr}`);
}

/** Runs a shell script in the guest to its end, and returns its result. */
export async function shell(
  script: string,
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  const command = new Deno.Command("/usr/bin/sh", { args: ["-c", script], stdin: "null" });
  const { code, stdout, stderr } = await command.output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout).trim(), stderr: decoder.decode(stderr).trim() };
}

/** Waits until the condition holds, and returns after how many milliseconds. */
export async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  limitMs = 20_000,
): Promise<number> {
  const started = performance.now();
  while (!await isSo()) {
    if (performance.now() - started > limitMs) throw new Error(`not so within ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return Math.round(performance.now() - started);
}

/** How long something takes, in milliseconds. */
export async function timed<T>(action: Promise<T>): Promise<readonly [T, number]> {
  const started = performance.now();
  return [await action, Math.round(performance.now() - started)];
}

type UseNode = (node: GuestNode) => Promise<string>;
type OptionsIn = GuestNodeOptions | ((folder: string) => GuestNodeOptions);

/** Tests with a node each; anything that one leaves is removed, and is a failure. */
export class NodeTests {
  readonly #tests: { readonly name: string; readonly use: UseNode; readonly options: OptionsIn }[] = [];

  /** Adds a test, which returns what it showed. */
  add(name: string, use: UseNode, options: OptionsIn = {}): void {
    this.#tests.push({ name, use, options });
  }

  /** Runs the tests whose name matches, one after the other, even after a failure. */
  async run(only = /(?:)/): Promise<void> {
    for (const { name, use, options } of this.#tests.filter((each) => only.test(each.name))) {
      await insideTest(name, () => runOnNode(use, options));
    }
  }
}

async function runOnNode(use: UseNode, options: OptionsIn): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-node-" });
  const node = new GuestNode(folder, typeof options === "function" ? options(folder) : options);
  let showed = "";
  let failure: unknown;
  try {
    showed = await use(node);
  } catch (error) {
    failure = error;
  }
  const left = await cleanUp(node);
  if (failure !== undefined) throw failure;
  if (left.length > 0) throw new Error(`left behind: ${left.join(", ")}`);
  return showed;
}

/** Everything in a guest belongs to the tests, so everything that a test can have made is removed. */
async function cleanUp(node: GuestNode): Promise<readonly string[]> {
  const nqns = await node.connector.connected(call());
  const mounts = mountsUnder(node.folder).toReversed();
  const states = [...Deno.readDirSync(node.state)].some(({ name }) => name === "volumes")
    ? [...Deno.readDirSync(`${node.state}/volumes`)].map(({ name }) => name)
    : [];
  // A mount that waits for a disconnected device could not be unmounted.
  await shell("for map in /dev/mapper/rds-csi-*; do dmsetup message $map 0 fail_if_no_path; done");
  for (const nqn of nqns) await shell(`nvme disconnect -n ${nqn}`);
  for (const mountPoint of mounts) await shell(`umount -l ${mountPoint}`);
  await node.nvmet.close();
  await shell("dmsetup remove_all --force; losetup -D");
  node.libc.close();
  await Deno.remove(node.folder, { recursive: true });
  return [...nqns, ...mounts, ...states];
}
