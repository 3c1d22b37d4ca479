import assert from "node:assert/strict";
import { NodeService } from "../../src/node/node_service.ts";
import type { PublishRequest } from "../../src/node/publish/publish.ts";
import type { StageRequest } from "../../src/node/stage/wish.ts";
import type { NodeDeps } from "../../src/node/deps.ts";
import { StagingStore } from "../../src/node/state/staging_store.ts";
import type {
  BlockDevices,
  Connection,
  Connector,
  Filesystems,
  FormatOptions,
  MissingPath,
  MountEntry,
  Mounts,
  TargetAddress,
} from "../../src/volume/ports/node_ports.ts";
import type { CallContext } from "../../src/volume/ports/system.ts";
import type { Capability, FilesystemType } from "../../src/volume/model/capabilities.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import type { Content } from "../../src/volume/model/staging/state.ts";
import { parseKnown, parseStagingState } from "../../src/volume/model/staging/state_file.ts";
import { DeviceMapper } from "../../src/device_mapper/device_mapper.ts";
import { Cryptsetup } from "../../src/device_mapper/cryptsetup.ts";
import { FakeClock } from "./clock.ts";
import { FakeCryptsetup } from "./cryptsetup.ts";
import { FakeDeviceMapper } from "./device_mapper.ts";
import { FakeKernelFiles } from "./kernel_files.ts";
import { RecordedEvents } from "./node_events.ts";
import { type FakeDevice, found, foundIn, newDevice, probeOf, thaw } from "./node_device.ts";
import { FakeDeviceUsers } from "./device_users.ts";
import { changed, type FlatState, flatten } from "./staging_state.ts";
import { FakePaths } from "./paths.ts";
import { FakeProcesses, type RecordedRun, type Scripted } from "./processes.ts";

export type { FakeDevice };

export const volumeId = "pvc-1";
export const epoch = "1-0a0b0c0d";
export const nqn = `nqn.2000-02.com.mikrotik:pvc-1:${epoch}`;
export const stagingPath = "/kubelet/staging/pvc-1";
export const targetPath = "/kubelet/pods/1/mount";
export const sizeBytes = 1073741824n;

export const ext4: Capability = { access: "mount", filesystem: "ext4", mode: "single-node-writer" };
export const block: Capability = { access: "block", mode: "single-node-writer" };

/**
 * A node whose kernel is a handful of variables. Every operation on it is counted and named, and a test may act before
 * or after any of them.
 */
export class FakeNode extends FakeDeviceUsers {
  readonly clock: FakeClock;
  readonly paths = new FakePaths();
  readonly events = new RecordedEvents();
  readonly operations: string[] = [];
  readonly devices: Map<string, FakeDevice>;
  readonly deps: NodeDeps;
  readonly service: NodeService;
  table: MountEntry[] = [];
  /** The kernel's device mapper; volumes use it only with `deviceLayer`. */
  readonly mapper: FakeDeviceMapper;
  /** cryptsetup, for encrypted volumes. */
  readonly cryptsetup: FakeCryptsetup;
  /** The processes that were run. */
  readonly processes = new FakeProcesses();
  /** How often a command of the device mapper was run. */
  mapperRuns = 0;
  /** Numbers of devices that a call keeps open. */
  readonly held = new Set<string>();
  sparesOpenDevices = false;
  /** How the connection to that NQN differs from {@linkcode FakeNode.connection}. */
  connections: Map<string, Partial<Connection>> = new Map();
  readonly connection: Omit<Connection, "nqn"> = {
    name: "nvme3",
    state: "live",
    stateName: "live",
    address: "10.0.0.1",
    port: 4420,
    hostNqn: "nqn.2014-08.org.nvmexpress:uuid:node-1",
    hostId: "node-1",
  };
  /** The addresses to which a connect leaves no path, and which of them stay so. */
  missingPaths: readonly MissingPath[] = [];
  staysMissing: (path: MissingPath) => boolean = () => false;
  /** What the target offers at an address; it may throw, or never answer. */
  offered: (at: TargetAddress) => readonly string[] | Promise<readonly string[]> = () =>
    [...this.devices].filter(([, device]) => device.exported).map(([nqn]) => nqn);
  /** Why nothing can be connected. */
  obstacle: string | undefined;
  /** Messages for people. */
  readonly reported: string[] = [];
  /** The hash of the machine; undefined when it is unknown. */
  machine: string | undefined;
  trim: (context: CallContext) => Promise<bigint | undefined> = () => Promise.resolve(4096n);
  formats: (FormatOptions & { filesystem: FilesystemType })[] = [];
  before: (operation: string, count: number) => void = () => {};
  after: (operation: string, count: number) => void = () => {};
  readonly files = new FakeKernelFiles();
  #mountId = 100;

  /** @param devices by NQN; by default only the volume's */
  constructor(clock = new FakeClock(), devices?: Map<string, FakeDevice>) {
    super();
    this.clock = clock;
    this.devices = devices ?? new Map([[nqn, this.newDevice()]]);
    for (const path of ["/kubelet", "/kubelet/pods", "/kubelet/pods/1", "/kubelet/staging", "/state"]) {
      this.paths.nodes.set(path, { kind: "directory" });
    }
    const { files, processes, paths, events } = this;
    this.mapper = new FakeDeviceMapper(files);
    this.cryptsetup = new FakeCryptsetup(this.mapper, files, (at) => this.#connectedAt(at));
    processes.script = (run) => this.#runMapper(run, files);
    const maps = new DeviceMapper(processes, files);
    const report = (message: string) => void this.reported.push(message);
    const own = { paths, clock, events, notes: { info: report, warn: report } };
    this.deps = {
      ...own,
      connector: this.#connector(),
      mounts: this.#mounts(),
      filesystems: this.#filesystems(),
      devices: this.#blockDevices(),
      maps,
      encryption: new Cryptsetup(processes, files, maps, clock),
      stagingStore: new StagingStore({ ...own, statePath: "/state" }),
      machine: { is: (hash) => this.machine === undefined ? undefined : this.machine === hash },
      settings: {
        nodeId: "node-1",
        maxVolumesPerNode: 0,
        statePath: "/state",
        nqnPrefix: "nqn.2000-02.com.mikrotik",
      },
    };
    this.service = new NodeService(this.deps);
    this.paths.before = (operation, path) => {
      // A read changes nothing, so a crash there does not matter.
      if (operation !== "info") this.#count(`${operation} ${path}`);
    };
  }

  newDevice(change: Partial<FakeDevice> = {}): FakeDevice {
    return { ...newDevice, sizeBytes, ...change };
  }

  get device(): FakeDevice {
    return this.devices.get(nqn)!;
  }

  get stagingState(): FlatState | undefined {
    const text = this.paths.nodes.get(`/state/volumes/${volumeId}.json`)?.text;
    return text === undefined ? undefined : flatten(parseStagingState(text, volumeId, ""));
  }

  get known(): Content | undefined {
    const text = this.paths.nodes.get(`/state/known/${volumeId}.json`)?.text;
    return text === undefined ? undefined : parseKnown(text, volumeId, "").content;
  }

  setStagingState(change: Partial<FlatState>): void {
    const path = `/state/volumes/${volumeId}.json`;
    const fields = JSON.parse(this.paths.nodes.get(path)!.text!);
    this.paths.nodes.set(path, { kind: "file", text: JSON.stringify(changed(fields, change)) });
  }

  stageRequest(change: Partial<StageRequest> = {}, context: Record<string, string> = {}): StageRequest {
    return {
      volumeId,
      stagingPath,
      capability: ext4,
      mountFlags: [],
      publishContext: publishContext(context),
      volumeContext: {},
      ...change,
    };
  }

  stage(change: Partial<StageRequest> = {}, context: Record<string, string> = {}): Promise<void> {
    return this.service.stage(this.stageRequest(change, context), call());
  }

  publish(change: Partial<PublishRequest> = {}): Promise<void> {
    return this.service.publish({
      volumeId,
      stagingPath,
      targetPath,
      capability: ext4,
      mountFlags: [],
      readOnly: false,
      publishContext: publishContext(),
      volumeContext: {},
      ...change,
    }, call());
  }

  unpublish(path = targetPath): Promise<void> {
    return this.service.unpublish({ volumeId, targetPath: path }, call());
  }

  unstage(): Promise<void> {
    return this.service.unstage({ volumeId, stagingPath }, call());
  }

  /** Adds a mount of a device, as the kernel would show it. */
  addMount(deviceNumber: string, mountPoint: string, change: Partial<MountEntry> = {}): void {
    this.table.push({
      mountId: this.#mountId++,
      parentId: 1,
      deviceNumber,
      root: "/",
      mountPoint,
      mountOptions: ["rw", "relatime"],
      filesystem: "ext4",
      source: "/dev/x",
      superOptions: ["rw"],
      ...change,
    });
  }

  #count(operation: string): void {
    this.operations.push(operation);
    this.before(operation, this.operations.length);
  }

  /** Counts an operation, and does it unless the test or the signal stops it. */
  // deno-lint-ignore require-await -- a throw becomes a rejection, as it would in earnest
  async #do<T>(operation: string, context: CallContext, action: () => T): Promise<T> {
    this.#count(operation);
    context.signal.throwIfAborted();
    const result = action();
    this.after(operation, this.operations.length);
    return result;
  }

  #connector(): Connector {
    const get = (nqn: string) => this.devices.get(nqn);
    const spares = () => this.sparesOpenDevices;
    return {
      name: "fake",
      host: { hostNqn: this.connection.hostNqn, hostId: this.connection.hostId },
      get sparesOpenDevices() {
        return spares();
      },
      obstacle: () => Promise.resolve(this.obstacle),
      connect: ({ nqn }, context) =>
        this.#do("connect", context, () => {
          const device = get(nqn);
          if (!device?.exported) throw new VolumeError("unavailable", "Cannot connect: refused");
          device.connected = true;
          this.showDevices();
          this.paths.nodes.set(device.path, { kind: "block", deviceNumber: device.deviceNumber });
          return this.missingPaths;
        }),
      addPaths: (_target, context) =>
        this.#do("addPaths", context, () => this.missingPaths = this.missingPaths.filter(this.staysMissing)),
      find: (nqn) => Promise.resolve(found(nqn, get(nqn))),
      rescan: (_nqn, context) => this.#do("rescan", context, () => {}),
      disconnect: (nqn, context) =>
        this.#do("disconnect", context, () => {
          const device = get(nqn);
          if (device !== undefined) device.connected = false;
          this.showDevices();
        }),
      forceDisconnect: (nqn, context) =>
        this.#do("forceDisconnect", context, () => {
          const device = get(nqn);
          if (device !== undefined) device.connected = false;
          this.showDevices();
        }),
      connections: (nqn) => Promise.resolve(this.#connectionsTo(nqn)),
      allConnections: () =>
        Promise.resolve(new Map([...this.devices.keys()].map((nqn) => [nqn, this.#connectionsTo(nqn)]))),
      allDevices: () => Promise.resolve(foundIn(this.devices)),
      offered: async (at) => await this.offered(at),
      live: () =>
        Promise.resolve(
          new Set([...this.devices].flatMap(([nqn, { connected }]) => {
            const { state } = { ...this.connection, ...this.connections.get(nqn) };
            return connected && state === "live" ? [nqn] : [];
          })),
        ),
      connected: () =>
        Promise.resolve([...this.devices].filter(([, device]) => device.connected).map(([nqn]) => nqn)),
    };
  }

  #connectionsTo(nqn: string): readonly Connection[] {
    if (this.devices.get(nqn)?.connected !== true) return [];
    return [{ nqn, ...this.connection, ...this.connections.get(nqn) }];
  }

  /** Devices exist while they are connected; a map is open while its number is mounted or held. */
  #runMapper(run: RecordedRun, files: FakeKernelFiles): Scripted {
    const [command] = run.options.args;
    this.mapperRuns++;
    const reads = ["table", "status", "target-version", "--version", "luksDump"];
    const isChange = !reads.includes(command!) && !run.options.args.includes("--test-passphrase");
    if (isChange) this.#count(`${run.tool} ${command}`);
    run.options.signal.throwIfAborted();
    this.showDevices();
    const result = run.tool === "dmsetup" ? this.mapper.run(run) : this.cryptsetup.run(run);
    this.mapper.show();
    for (const [path, node] of files.nodes) this.paths.nodes.set(path, node);
    if (isChange) this.after(`${run.tool} ${command}`, this.operations.length);
    return result;
  }

  /** Makes the device mapper see the present devices, and which maps are in use. */
  showDevices(): void {
    this.mapper.devices.clear();
    for (const device of this.devices.values()) {
      if (!device.connected) continue;
      this.mapper.devices.add(device.deviceNumber);
      this.files.nodes.set(device.path, { kind: "block", deviceNumber: device.deviceNumber });
    }
    this.mapper.open.clear();
    for (const [name, { minor }] of this.mapper.maps) {
      const number = `253:${minor}`;
      if (this.held.has(number) || this.table.some((entry) => entry.deviceNumber === number)) {
        this.mapper.open.add(name);
      }
    }
    this.mapper.removeDeferred();
    this.mapper.show();
  }

  #connectedAt(at: string): FakeDevice {
    const device = this.devices.values().find(({ path, deviceNumber, connected }) =>
      connected && (path === at || deviceNumber === at)
    );
    if (device === undefined) throw new VolumeError("unavailable", `Cannot open ${at}: there is none`);
    return device;
  }

  #mounts(): Mounts {
    return {
      table: () => Promise.resolve([...this.table]),
      mountDevice: (device, target, filesystem, { readOnly, replay }, context) =>
        this.#do(replay ? "replay" : "mountDevice", context, () => {
          const fake = this.devices.get(device.nqn)!;
          if (replay && fake.readOnly) {
            throw new VolumeError("precondition", "Cannot mount: read-only device");
          }
          if (replay) fake.dirty = false;
          this.addMount(device.deviceNumber, target, {
            filesystem,
            superOptions: [readOnly ? "ro" : "rw"],
          });
        }),
      bindFolder: (device, _source, target, { readOnly }, context) =>
        this.#do("bind", context, () => this.#bind(device.deviceNumber, target, readOnly, {})),
      bindDevice: (device, target, { readOnly }, context) =>
        this.#do("bind", context, () => {
          this.#bind("0:6", target, readOnly, { filesystem: "devtmpfs", root: device.path.slice(4) });
          this.paths.nodes.set(target, { kind: "block", deviceNumber: device.deviceNumber });
        }),
      whoKeeps: (target) => Promise.resolve(new VolumeError("in-use", `Cannot unmount ${target}`)),
      thaw: (target) => Promise.resolve(thaw(this.devices, this.table, target)),
      unmount: (target, context) =>
        this.#do("unmount", context, () => {
          if (this.table.some((entry) => entry.mountPoint === target && entry.filesystem === "devtmpfs")) {
            this.paths.nodes.set(target, { kind: "file", text: "" });
          }
          this.table = this.table.filter((entry) => entry.mountPoint !== target);
        }),
    };
  }

  #bind(deviceNumber: string, target: string, readOnly: boolean, change: Partial<MountEntry>): void {
    this.table = this.table.filter((entry) => entry.mountPoint !== target);
    this.addMount(deviceNumber, target, { mountOptions: [readOnly ? "ro" : "rw"], ...change });
  }

  /** The device of a path, through a map or not. Uses of a map without a device wait until the call's end. */
  #deviceAt(path: string): FakeDevice {
    const map = this.mapper.maps.values().find(({ minor }) => path === `/dev/dm-${minor}`);
    const below = map?.table?.path;
    const found = this.devices.values().find((device) =>
      below === undefined ? device.path === path : device.deviceNumber === below && device.connected
    );
    if (found === undefined) throw new VolumeError("unavailable", `Cannot use ${path}: it does not answer`);
    return map?.uuid.startsWith("CRYPT-") ? found.luks!.inner : found;
  }

  #filesystems(): Filesystems {
    const on = (path: string) => this.#deviceAt(path);
    return {
      probe: (device, context) =>
        this.#do("probe", context, () => {
          const { readAs, ...rest } = on(device.path);
          const isCached = readAs !== undefined && device.path === rest.path;
          return probeOf(isCached ? { ...rest, content: readAs } : rest);
        }),
      isComplete: (device, _type, context) => this.#do("isComplete", context, () => on(device.path).complete),
      logState: (device, _type, context) =>
        this.#do("logState", context, () => ({ state: on(device.path).dirty ? "dirty" : "clean" })),
      eraseEnds: (device, context) =>
        this.#do("erase", context, () => void (on(device.path).content = "blank")),
      format: (device, filesystem, options, context) =>
        this.#do("format", context, () => {
          this.formats.push({ filesystem, ...options });
          Object.assign(on(device.path), { content: filesystem, complete: true });
        }),
      check: (_device, _filesystem, context) => this.#do("check", context, () => {}),
      grow: (_device, _filesystem, _mountPoint, context) => this.#do("grow", context, () => {}),
      trim: (_device, mountPoint, context) =>
        this.#do(`trim ${mountPoint}`, context, () => {}).then(() => this.trim(context)),
      stats: (_mountPoint, context) =>
        this.#do("stats", context, () => ({
          totalBytes: 100n,
          availableBytes: 50n,
          usedBytes: 50n,
          totalInodes: 10n,
          freeInodes: 9n,
          usedInodes: 1n,
        })),
    };
  }

  #blockDevices(): BlockDevices {
    const on = (path: string) => this.#deviceAt(path);
    return {
      setReadOnly: (device, readOnly, context) =>
        this.#do("setReadOnly", context, () => void (on(device.path).readOnly = readOnly)),
      hold: ({ deviceNumber }, context) => {
        context.signal.throwIfAborted();
        this.held.add(deviceNumber);
        return Promise.resolve(() => Promise.resolve(void this.held.delete(deviceNumber)));
      },
      isReadOnly: ({ path }) => Promise.resolve(on(path).readOnly),
      forgetReads: ({ path }, context) =>
        this.#do("forgetReads", context, () => {
          const device = on(path);
          device.readAs = undefined;
        }),
      filesystemErrors: ({ path }) => Promise.resolve(on(path).errors),
      refusesReads: ({ path }, context) =>
        this.#do("refusesReads", context, () => "refusesReads" in on(path) ? on(path).refusesReads : false),
      ...this.userPorts(
        this.devices,
        () => this.table,
        (number) => this.mapper.maps.values().some(({ table }) => table?.path === number),
      ),
    };
  }
}

/** The publish context of the volume's first epoch. */
export function publishContext(change: Record<string, string> = {}): Record<string, string> {
  return {
    nvmeAddress: "10.0.0.1",
    nvmePort: "4420",
    nqn,
    epoch,
    size: String(sizeBytes),
    readonly: "false",
    mayFormat: "true",
    imported: "false",
    ...change,
  };
}

/** A call that only that signal can cancel. */
export function call(signal: AbortSignal = new AbortController().signal): CallContext {
  return { requestId: "t", signal };
}

/** The error of a step that a test breaks. */
export const injected = new VolumeError("internal", "Cannot go on: injected");

/** Whether it is that error, or says with its text that something is left on the node. */
function isInjected(error: unknown): boolean {
  return error === injected || VolumeError.is(error, "unavailable") && error.cause === injected;
}

/**
 * Runs an action on a fresh node once for each of its steps, and breaks that step: it fails, or with "crashes" it and
 * all later ones, also those of undoing. `check` sees what is left, and the step.
 */
export async function breakEachStep(
  prepare: () => Promise<FakeNode>,
  act: (node: FakeNode) => Promise<unknown>,
  check: (node: FakeNode, step: string) => Promise<void>,
  how: "fails" | "crashes" = "fails",
): Promise<void> {
  const whole = await prepare();
  const first = whole.operations.length;
  await act(whole);
  assert.ok(whole.operations.length > first);
  for (let at = first + 1; at <= whole.operations.length; at++) {
    const node = await prepare();
    node.before = (_, count) => {
      if (how === "fails" ? count === at : count >= at) throw injected;
    };
    await assert.rejects(act(node), (error) => how === "crashes" || isInjected(error));
    node.before = () => {};
    await check(node, whole.operations[at - 1]!);
  }
}
