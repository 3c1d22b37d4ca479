import { NodeService } from "../../src/node/node_service.ts";
import { FenceWatch } from "../../src/node/fencing/fence_watch.ts";
import type { NodeDeps } from "../../src/node/deps.ts";
import { VolumeLocks } from "../../src/csi/server/call.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import type { FakeClock } from "../fakes/clock.ts";
import type { Connection } from "../../src/volume/ports/node_ports.ts";
import { ext4, type FakeDevice, FakeNode, sizeBytes } from "../fakes/node_deps.ts";
import { SeededRandom } from "../fakes/random.ts";
import type { CallContext } from "../../src/volume/ports/system.ts";
import type { RouterImages } from "./router_images.ts";
import type { CallStep, NodeCutStep } from "./schedule.ts";

/** The state of a volume on a node. */
export interface NodeState {
  readonly connected: readonly string[];
  readonly staged: boolean;
}

/** A node whose devices are images on the router: its kernel, and the driver's process. */
export class HistoryNode {
  readonly name: string;
  readonly #kernel: FakeNode;
  readonly #devices: DevicesOfRouter;
  readonly #deps: NodeDeps;
  #service: NodeService;
  #locks = new VolumeLocks();
  #watch: FenceWatch;
  #seesNoOffers = false;

  constructor(name: string, clock: FakeClock, images: RouterImages) {
    this.name = name;
    this.#devices = new DevicesOfRouter(name, images);
    this.#kernel = new FakeNode(clock, this.#devices);
    this.#kernel.connections = new ConnectionsOfDevices(this.#devices);
    this.#kernel.offered = () => {
      if (this.#seesNoOffers) throw new VolumeError("unavailable", "Cannot read what is offered: no answer");
      return images.exported();
    };
    this.#kernel.after = () => images.observe();
    this.#deps = { ...this.#kernel.deps, settings: { ...this.#kernel.deps.settings, nodeId: name } };
    [this.#service, this.#watch] = this.#start();
  }

  #start(): [NodeService, FenceWatch] {
    const service = new NodeService(this.#deps);
    const { fencing, forgotten } = service;
    const lock = { tryTake: (keys: readonly string[]) => this.#locks.tryTake(keys, "watch") };
    const random = new SeededRandom();
    const watch = new FenceWatch({ deps: this.#deps, fencing, forgotten, lock, random, intervalMs: 10_000 });
    return [service, watch];
  }

  /** Ends the driver's process, and starts it again. */
  restartDriver(): void {
    this.#locks = new VolumeLocks();
    [this.#service, this.#watch] = this.#start();
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

  async look(): Promise<void> {
    await this.#watch.check();
  }

  /** @throws {VolumeError} */
  async stage(
    volumeId: string,
    publishContext: Readonly<Record<string, string>>,
    trouble: CallStep["trouble"],
    context: CallContext,
  ): Promise<void> {
    const request = {
      volumeId,
      stagingPath: stagingPath(volumeId),
      capability: ext4,
      mountFlags: [],
      publishContext,
      volumeContext: {},
    };
    await this.#changing(volumeId, trouble, () => this.#service.stage(request, context));
  }

  /** @throws {VolumeError} */
  async unstage(volumeId: string, trouble: CallStep["trouble"], context: CallContext): Promise<void> {
    const request = { volumeId, stagingPath: stagingPath(volumeId) };
    await this.#changing(volumeId, trouble, () => this.#service.unstage(request, context));
  }

  async #changing(
    volumeId: string,
    trouble: CallStep["trouble"],
    work: () => Promise<void>,
  ): Promise<void> {
    const release = this.#locks.take([volumeId], "call");
    const first = this.#kernel.operations.length;
    let died = false;
    if (trouble !== undefined) {
      this.#kernel.before = (_, count) => {
        const at = count - first - 1;
        const dies = trouble.what.startsWith("dies") && at >= trouble.at;
        died ||= dies;
        if (dies || at === trouble.at) throw new VolumeError("unavailable", "Cannot go on: injected");
      };
    }
    try {
      await work();
    } finally {
      this.#kernel.before = () => {};
      release();
      if (died) this.restartDriver();
    }
  }

  state(volumeId: string): NodeState {
    const connected = [...this.#devices].filter(([nqn, device]) =>
      device.connected && nqn.includes(`:${volumeId}:`)
    ).map(([nqn]) => nqn);
    return { connected, staged: this.#staged(volumeId) !== undefined };
  }

  /** Sends waiting writes to the router when it is reachable again. */
  flush(): void {
    this.#devices.flush();
  }

  /** A workload writes. Returns whether the write is acknowledged; undefined when no device is mounted. */
  write(volumeId: string, value: string): boolean | undefined {
    const nqn = this.#staged(volumeId);
    return nqn === undefined ? undefined : this.#devices.write(nqn, value);
  }

  /** Returns the value that a workload reads; undefined when it cannot read. */
  read(volumeId: string): { readonly value: string | undefined } | undefined {
    const nqn = this.#staged(volumeId);
    return nqn === undefined ? undefined : this.#devices.read(nqn);
  }

  /** Returns the NQN whose device is mounted for workloads. */
  #staged(volumeId: string): string | undefined {
    const entry = this.#kernel.table.find(({ mountPoint }) => mountPoint === stagingPath(volumeId));
    if (entry === undefined) return undefined;
    return [...this.#devices].find(([, device]) => device.deviceNumber === entry.deviceNumber)?.[0];
  }
}

function stagingPath(volumeId: string): string {
  return `/kubelet/staging/${volumeId}`;
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
      complete: true,
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
