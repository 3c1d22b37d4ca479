import { NodeService } from "../../src/node/node_service.ts";
import { FenceWatch } from "../../src/node/fencing/fence_watch.ts";
import type { NodeDeps } from "../../src/node/deps.ts";
import { VolumeLocks } from "../../src/csi/server/call.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import type { Capability } from "../../src/volume/model/capabilities.ts";
import type { FakeClock } from "../fakes/clock.ts";
import type { Connection } from "../../src/volume/ports/node_ports.ts";
import { ext4, type FakeDevice, FakeNode, sizeBytes } from "../fakes/node_deps.ts";
import { SeededRandom } from "../fakes/random.ts";
import type { CallContext } from "../../src/volume/ports/system.ts";
import { portsFor } from "./node_ports.ts";
import { Process } from "./process.ts";
import type { RouterImages } from "./router_images.ts";
import type { CallStep, NodeCutStep } from "./schedule.ts";

/** The state of a volume on a node. */
export interface NodeState {
  readonly connected: readonly string[];
  /** Whether it is mounted at its staging path. */
  readonly staged: boolean;
  /** Whether it is mounted for a pod. */
  readonly published: boolean;
  /** The size of its file system; undefined while no pod has it. */
  readonly bytes: bigint | undefined;
}

/** A call of the Node service, as a kubelet makes it. */
export type NodeVerb = "stage" | "publish" | "unpublish" | "unstage" | "expand";

/** What a kubelet passes with a call. */
export interface NodeArguments {
  readonly volumeId: string;
  readonly publishContext: Readonly<Record<string, string>>;
  readonly mountFlags: readonly string[];
  /** The size that an expansion asks for. */
  readonly bytes: bigint;
}

/** A node whose devices are images on the router: its kernel, and the driver's process. */
export class HistoryNode {
  readonly name: string;
  readonly #kernel: FakeNode;
  readonly #devices: DevicesOfRouter;
  readonly #deps: NodeDeps;
  readonly #capability: Capability;
  readonly #clock: FakeClock;
  readonly #images: RouterImages;
  /** How long the slow operations of each call take in turn, by the call's request id. */
  readonly #takesMs = new Map<string, number[]>();
  #process: Process;
  #service: NodeService;
  #locks = new VolumeLocks();
  #watch: FenceWatch;
  #seesNoOffers = false;

  /** @param capability how its pods use volumes */
  constructor(name: string, clock: FakeClock, images: RouterImages, capability: Capability = ext4) {
    this.name = name;
    this.#capability = capability;
    this.#clock = clock;
    this.#images = images;
    this.#devices = new DevicesOfRouter(name, images);
    this.#kernel = new FakeNode(clock, this.#devices);
    this.#kernel.connections = new ConnectionsOfDevices(this.#devices);
    this.#kernel.offered = () => {
      if (this.#seesNoOffers) throw new VolumeError("unavailable", "Cannot read what is offered: no answer");
      return images.exported();
    };
    this.#untroubled();
    const { deps } = this.#kernel;
    const settings = { ...deps.settings, nodeId: name };
    this.#deps = { ...deps, ...imageUses(deps, images), settings };
    [this.#process, this.#service, this.#watch] = this.#start();
  }

  /** The driver's process. */
  get process(): Process {
    return this.#process;
  }

  #start(): [Process, NodeService, FenceWatch] {
    const process = new Process(this.#clock);
    const deps = portsFor(process, this.#deps, {
      takesMs: (requestId) => this.#nextMs(requestId),
      ended: (name, nqn) => name === "format" && this.#images.finished(nqn),
    });
    const service = new NodeService(deps);
    const { fencing, forgotten } = service;
    const lock = { tryTake: (keys: readonly string[]) => this.#locks.tryTake(keys, "watch") };
    const random = new SeededRandom();
    const watch = new FenceWatch({ deps, fencing, forgotten, lock, random, intervalMs: 10_000 });
    return [process, service, watch];
  }

  #nextMs(requestId: string): number {
    const all = this.#takesMs.get(requestId);
    if (all === undefined) return 0;
    const [next] = all.splice(0, 1);
    all.push(next!);
    return next!;
  }

  /** Ends the driver's process, and starts it again. */
  restartDriver(): void {
    const ended = this.#process;
    this.#locks = new VolumeLocks();
    [this.#process, this.#service, this.#watch] = this.#start();
    ended.die();
  }

  /** Restarts the machine: its disk stays, its mounts and connections end. */
  crash(): void {
    this.#kernel.table = [];
    for (const device of this.#devices.values()) Object.assign(device, { connected: false, readOnly: false });
    this.#devices.forgetWrites();
    this.#kernel.showDevices();
    this.restartDriver();
  }

  /** Cuts the node off from the router; undefined mends that. */
  cut(what: NodeCutStep["cuts"] | undefined): void {
    this.#devices.areCut = what === "devices" || what === "all";
    this.#seesNoOffers = what === "offers" || what === "all";
  }

  /** Whether it reaches neither its devices nor anything else. */
  get isAway(): boolean {
    return this.#devices.areCut && this.#seesNoOffers;
  }

  /** The driver checks its volumes, unless its process ends meanwhile. */
  async look(): Promise<void> {
    const ended = new Promise<void>((resolve) => this.#process.onDeath(resolve));
    await Promise.race([this.#watch.check(), ended]);
  }

  /**
   * Makes one call of the Node service, while no other changes the volume.
   *
   * @throws {VolumeError} busy when another one does
   */
  async call(
    verb: NodeVerb,
    about: NodeArguments,
    { trouble, commandMs }: Pick<CallStep, "trouble" | "commandMs">,
    context: CallContext,
  ): Promise<void> {
    const { volumeId, publishContext, mountFlags, bytes } = about;
    const request = { volumeId, stagingPath: stagingPath(volumeId), targetPath: targetPath(volumeId) };
    const capability = this.#capability;
    const mount = { ...request, capability, mountFlags, publishContext, volumeContext: {} };
    const service = this.#service;
    const work: Record<NodeVerb, () => Promise<unknown>> = {
      stage: () => service.stage(mount, context),
      publish: () => service.publish({ ...mount, readOnly: false }, context),
      unpublish: () => service.unpublish(request, context),
      unstage: () => service.unstage(request, context),
      expand: () => {
        const range = { requiredBytes: bytes, limitBytes: 0n };
        return service.expand({ volumeId, volumePath: request.targetPath, range }, context);
      },
    };
    const release = this.#locks.tryTake([volumeId], "call");
    if (release === undefined) {
      if (verb === "unstage") await service.releaseWhileBusy(volumeId, context);
      if (verb === "unpublish") await service.releaseWhileBusy(volumeId, context, request.targetPath);
      throw new VolumeError("busy", "Cannot change it because another call does");
    }
    this.#takesMs.set(context.requestId, [...commandMs]);
    try {
      await this.#withTrouble(isIn(verb, trouble) ? trouble : undefined, work[verb]);
    } finally {
      this.#takesMs.delete(context.requestId);
      release();
    }
  }

  async #withTrouble(trouble: CallStep["trouble"], work: () => Promise<unknown>): Promise<void> {
    if (trouble === undefined) return void await work();
    const first = this.#kernel.operations.length;
    // After a final error the kubelet takes down nothing.
    const kind = trouble.what.startsWith("refused") ? "precondition" : "unavailable";
    let died = false;
    const strikes = (_: string, count: number) => {
      const at = count - first - 1;
      const dies = trouble.what.startsWith("dies") && at >= trouble.at;
      died ||= dies;
      if (dies || at === trouble.at) throw new VolumeError(kind, "Cannot go on: injected");
    };
    if (trouble.what !== "refused-late") this.#kernel.before = strikes;
    else {
      // It is done, and counts as refused all the same.
      this.#kernel.after = (...operation) => {
        this.#images.observe();
        strikes(...operation);
      };
    }
    try {
      await work();
    } finally {
      this.#untroubled();
      if (died) this.restartDriver();
    }
  }

  #untroubled(): void {
    this.#kernel.before = () => {};
    this.#kernel.after = () => this.#images.observe();
  }

  state(volumeId: string): NodeState {
    const connected: string[] = [];
    for (const [nqn, device] of this.#devices) {
      if (device.connected && nqn.split(":").includes(volumeId)) connected.push(nqn);
    }
    const [mounted, published] = [stagingPath, targetPath].map((path) => this.#mountedAt(path(volumeId)));
    // A raw block is only bound.
    const staged = this.#capability.access === "block" ? published : mounted;
    return {
      connected,
      staged: staged !== undefined,
      published: published !== undefined,
      bytes: published && this.#devices.filesystemBytes(published.nqn),
    };
  }

  /** Sends waiting writes to the router when it is reachable again. */
  flush(): void {
    this.#devices.flush();
  }

  /** A pod writes. Returns whether the write is acknowledged; undefined when it has no device, or may not write. */
  write(volumeId: string, value: string): boolean | undefined {
    const mounted = this.#mountedAt(targetPath(volumeId));
    return mounted === undefined || mounted.readOnly ? undefined : this.#devices.write(mounted.nqn, value);
  }

  /** Returns the value that a pod reads; undefined when it cannot read. */
  read(volumeId: string): { readonly value: string | undefined } | undefined {
    const mounted = this.#mountedAt(targetPath(volumeId));
    return mounted === undefined ? undefined : this.#devices.read(mounted.nqn);
  }

  /** Returns the NQN whose device is mounted there. */
  #mountedAt(path: string): { readonly nqn: string; readonly readOnly: boolean } | undefined {
    const entry = this.#kernel.table.findLast(({ mountPoint }) => mountPoint === path);
    if (entry === undefined) return undefined;
    const { mountOptions, superOptions, deviceNumber, filesystem, root } = entry;
    const readOnly = mountOptions.includes("ro") || superOptions.includes("ro");
    const isIt = (device: FakeDevice) =>
      filesystem === "devtmpfs" ? device.path === `/dev${root}` : device.deviceNumber === deviceNumber;
    const found = [...this.#devices].find(([, device]) => isIt(device));
    return found && { nqn: found[0], readOnly };
  }
}

/** Whether a call meets the trouble of its step: what comes late is meant for the second call of two. */
function isIn(verb: NodeVerb, trouble: CallStep["trouble"]): boolean {
  const isFirst = verb === "stage" || verb === "unpublish";
  const isLate = trouble?.what.endsWith("late") === true || trouble?.what === "dies-after";
  return !isFirst || !isLate;
}

function stagingPath(volumeId: string): string {
  return `/kubelet/staging/${volumeId}`;
}

function targetPath(volumeId: string): string {
  return `/kubelet/pods/1/${volumeId}`;
}

/** The uses of a device that are seen on its image. */
function imageUses(
  { filesystems, mounts }: NodeDeps,
  images: RouterImages,
): Pick<NodeDeps, "filesystems" | "mounts"> {
  return {
    filesystems: {
      ...filesystems,
      grow: async (device, ...rest) => {
        await filesystems.grow(device, ...rest);
        images.grow(device.nqn);
      },
    },
    mounts: {
      ...mounts,
      mountDevice: async (device, ...rest) => {
        images.mounted(device.nqn);
        await mounts.mountDevice(device, ...rest);
      },
    },
  };
}

/** The devices of a node by NQN. Each leads to the image that the router exports under that NQN. */
class DevicesOfRouter extends Map<string, FakeDevice> {
  readonly #node: string;
  readonly #images: RouterImages;
  /** Whether no device reaches the router. */
  areCut = false;
  /** Writes that the kernel has not sent to the router yet. */
  readonly #waiting = new Map<string, string>();

  constructor(node: string, images: RouterImages) {
    super();
    this.#node = node;
    this.#images = images;
  }

  override get(nqn: string): FakeDevice {
    const device = super.get(nqn) ?? this.#newDevice(nqn);
    this.set(nqn, device);
    return device;
  }

  #newDevice(nqn: string): FakeDevice {
    const [node, images, minor] = [this.#node, this.#images, this.size];
    const isExported = () => !this.areCut && images.exported().includes(nqn);
    const assertReaches = () => {
      if (this.areCut) throw new VolumeError("unavailable", `Cannot use ${nqn}: it does not answer`);
    };
    return {
      path: `/dev/nvme${minor}n1`,
      deviceNumber: `259:${minor}`,
      uniqueId: "",
      nsid: 1,
      get complete() {
        return images.isComplete(nqn);
      },
      set complete(_) {
        // What is written is whole when the command that makes it ends.
      },
      dirty: false,
      readOnly: false,
      connected: false,
      get sizeBytes() {
        return images.sizeOf(nqn) ?? sizeBytes;
      },
      get exported() {
        return isExported();
      },
      get content() {
        assertReaches();
        return images.valueOf(nqn) === undefined ? "blank" : "ext4";
      },
      set content(content) {
        assertReaches();
        images.format(node, nqn, content === "blank");
      },
    };
  }

  filesystemBytes(nqn: string): bigint | undefined {
    return this.#images.filesystemBytes(nqn);
  }

  /** Whether the kernel has a working connection under that NQN. */
  reaches(nqn: string): boolean {
    return !this.areCut && this.#images.isReachable(nqn);
  }

  forgetWrites(): void {
    this.#waiting.clear();
  }

  /** Returns whether the write is acknowledged. An unacknowledged write waits while the device is connected. */
  write(nqn: string, value: string): boolean {
    // Earlier writes go first.
    this.flush();
    const acknowledged = this.get(nqn).connected && this.reaches(nqn);
    this.#images.wrote(this.#node, nqn, value, acknowledged);
    if (acknowledged) this.#images.set(nqn, value);
    else this.#waiting.set(nqn, value);
    return acknowledged;
  }

  read(nqn: string): { readonly value: string | undefined } | undefined {
    if (!this.get(nqn).connected || !this.reaches(nqn)) return undefined;
    return { value: this.#images.valueOf(nqn) };
  }

  flush(): void {
    for (const [nqn, value] of this.#waiting) {
      if (!this.get(nqn).connected) this.#waiting.delete(nqn);
      else if (this.reaches(nqn)) {
        this.#waiting.delete(nqn);
        this.#images.set(nqn, value);
      }
    }
  }
}

/** The states of a node's connections: the kernel tries to connect again while a device does not reach its image. */
class ConnectionsOfDevices extends Map<string, Partial<Connection>> {
  readonly #devices: DevicesOfRouter;

  constructor(devices: DevicesOfRouter) {
    super();
    this.#devices = devices;
  }

  override get(nqn: string): Partial<Connection> {
    const state = this.#devices.reaches(nqn) ? "live" : "connecting";
    return { state, stateName: state };
  }
}
