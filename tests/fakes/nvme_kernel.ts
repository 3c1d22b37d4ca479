import type { BlockDevices, MountEntry, Mounts } from "../../src/volume/ports/node_ports.ts";
import { FakeKernelFiles } from "./kernel_files.ts";
import { FakeProcesses, type RecordedRun, type Scripted } from "./processes.ts";

/** One controller of the fake kernel. */
export interface FakeController {
  readonly name: string;
  readonly nqn: string;
  state: string;
  readonly address: string;
  readonly port: number;
  readonly hostNqn: string;
  readonly hostId: string;
  readonly transport: string;
}

/** A namespace of the fake kernel. */
export interface FakeNamespace {
  readonly nqn: string;
  readonly nsid: number;
  /** The number after the `n` of its device's name. */
  readonly head: number;
  readonly minor: number;
  sectors: number;
  readonly uuid?: string;
  readonly nguid?: string;
}

/**
 * The kernel's initiator as /sys shows it and accepts writes, in both of its layouts. Numbers of controllers, heads and
 * subsystems are chosen so that none says anything about another.
 */
export class FakeNvmeKernel {
  readonly files = new FakeKernelFiles();
  readonly processes = new FakeProcesses();
  readonly multipath: boolean;
  readonly controllers: FakeController[] = [];
  readonly namespaces: FakeNamespace[] = [];
  readonly mounts: MountEntry[] = [];
  /** The process that has a device open, by the device's number. */
  readonly openBy = new Map<string, string>();
  /** Why a connect to an address is refused; undefined succeeds. */
  refuse: (address: string, nqn: string) => string | undefined = () => undefined;
  /** Holds up a connect to an address, and with it every other connect; undefined does not. */
  hang: (address: string) => Promise<void> | undefined = () => undefined;
  /** Ends when no connect is in the kernel. */
  #fabrics: Promise<void> = Promise.resolve();
  /** The namespaces that a subsystem shows when it is first connected. */
  serves: (nqn: string) => readonly Partial<FakeNamespace>[] = () => [{}];
  /** Called before the tool does its work; its result, if any, replaces the tool's. */
  script: (run: RecordedRun) => Scripted | undefined | Promise<Scripted | undefined> = () => undefined;
  #next = 7;
  readonly #subsystems: string[] = [];

  constructor({ multipath }: { readonly multipath: boolean }) {
    this.multipath = multipath;
    this.files.nodes.set("/dev/nvme-fabrics", { kind: "other" });
    this.files.folders.set("/sys/module/nvme_tcp", []);
    this.files.texts.set("/sys/module/nvme_core/parameters/multipath", multipath ? "Y" : "N");
    this.processes.script = async (run) => await this.script(run) ?? this.#tool(run);
    this.show();
  }

  get devices(): BlockDevices {
    const openBy = this.openBy;
    return {
      setReadOnly: () => Promise.resolve(),
      isReadOnly: () => Promise.resolve(false),
      forgetReads: () => Promise.resolve(),
      partitions: () => Promise.resolve([]),
      openBy: ([node]) => {
        const name = openBy.get(node!.deviceNumber);
        const process = { pid: 20, name: name ?? "", pod: undefined };
        return Promise.resolve(name === undefined ? [] : [{ device: node!.path, by: "process", process }]);
      },
      hiddenUsers: () => Promise.resolve({ users: [], searched: "nothing" }),
      hold: () => Promise.resolve(() => Promise.resolve()),
      layers: () => Promise.resolve([]),
      filesystemErrors: () => Promise.resolve(undefined),
      refusesReads: () => Promise.resolve(undefined),
      hasFilesystem: () => Promise.resolve(false),
      isUnclaimed: () => Promise.resolve(true),
    };
  }

  get mountTable(): Mounts {
    return { table: () => Promise.resolve(this.mounts) } as unknown as Mounts;
  }

  /** Adds a controller, and with the first one of a subsystem its namespaces. */
  add(controller: Partial<FakeController> & { readonly nqn: string }): FakeController {
    const added = {
      name: `nvme${this.#next++}`,
      state: "live",
      address: "10.0.0.1",
      port: 4420,
      hostNqn: "",
      hostId: "",
      transport: "tcp",
      ...controller,
    };
    if (!this.namespaces.some(({ nqn }) => nqn === added.nqn)) {
      for (const [i, shown] of this.serves(added.nqn).entries()) {
        const minor = this.#next++;
        this.namespaces.push({
          nqn: added.nqn,
          nsid: i + 1,
          head: minor + 3,
          minor,
          sectors: 2048,
          ...shown,
        });
      }
    }
    this.controllers.push(added);
    this.show();
    return added;
  }

  /** Removes the controllers of a subsystem, or one of them; with the last one its namespaces disappear. */
  remove(nqn: string, only?: FakeController): void {
    const goes = (one: FakeController) => one.nqn === nqn && (only === undefined || one === only);
    const left = this.controllers.filter((one) => !goes(one));
    this.controllers.splice(0, Infinity, ...left);
    const isUsed = (one: FakeNamespace) => left.some((controller) => controller.nqn === one.nqn);
    this.namespaces.splice(
      0,
      Infinity,
      ...this.namespaces.filter((one) => one.nqn !== nqn || isUsed(one)),
    );
    this.show();
  }

  /** Updates /sys. */
  show(): void {
    for (const map of [this.files.texts, this.files.folders]) {
      for (const path of map.keys()) if (path.startsWith("/sys/class/")) map.delete(path);
    }
    const subsystems = new Set([...this.#subsystems, ...this.controllers.map(({ nqn }) => nqn)]);
    this.#subsystems.splice(0, Infinity, ...subsystems);
    const folders = this.#subsystems.map((_, i) => `nvme-subsys${i}`);
    this.files.folders.set("/sys/class/nvme-subsystem", folders);
    this.files.folders.set("/sys/class/nvme", this.controllers.map(({ name }) => name));
    for (const [i, nqn] of this.#subsystems.entries()) this.#showSubsystem(i, nqn);
    for (const controller of this.controllers) this.#showController(controller);
  }

  #showSubsystem(number: number, nqn: string): void {
    const folder = `/sys/class/nvme-subsystem/nvme-subsys${number}`;
    const heads = this.multipath ? this.namespaces.filter((one) => one.nqn === nqn) : [];
    const names = heads.flatMap(({ head }) => [`nvme${number}n${head}`, `ng${number}n${head}`]);
    this.files.folders.set(folder, [...names, "subsysnqn", "power"]);
    this.files.texts.set(`${folder}/subsysnqn`, nqn);
    for (const one of heads) this.#showNamespace(`${folder}/nvme${number}n${one.head}`, one);
  }

  #showController(controller: FakeController): void {
    const { name, nqn } = controller;
    const folder = `/sys/class/nvme/${name}`;
    const subsystem = this.#subsystems.indexOf(nqn);
    const number = name.slice("nvme".length);
    const own = this.namespaces.filter((one) => one.nqn === nqn);
    const names = own.flatMap(({ head }) =>
      this.multipath ? [`nvme${subsystem}c${number}n${head}`] : [`${name}n${head}`, `ng${number}n${head}`]
    );
    this.files.folders.set(folder, [...names, "state", "hwmon0"]);
    if (!this.multipath) { for (const one of own) this.#showNamespace(`${folder}/${name}n${one.head}`, one); }
    const attributes = {
      subsysnqn: nqn,
      state: controller.state,
      transport: controller.transport,
      address: `traddr=${controller.address},trsvcid=${controller.port},src_addr=10.0.0.99`,
      hostnqn: controller.hostNqn,
      hostid: controller.hostId,
      fast_io_fail_tmo: "off",
    };
    for (const [key, value] of Object.entries(attributes)) this.files.texts.set(`${folder}/${key}`, value);
  }

  #showNamespace(folder: string, one: FakeNamespace): void {
    this.files.texts.set(`${folder}/dev`, `259:${one.minor}`);
    this.files.texts.set(`${folder}/size`, String(one.sectors));
    this.files.texts.set(`${folder}/nsid`, String(one.nsid));
    if (one.uuid !== undefined) this.files.texts.set(`${folder}/uuid`, one.uuid);
    if (one.nguid !== undefined) this.files.texts.set(`${folder}/nguid`, one.nguid);
  }

  /** Handles dd(1), which writes to the kernel's files. */
  #tool({ tool, options: { args, input = "" } }: RecordedRun): Scripted | Promise<Scripted> {
    if (tool !== "dd") return 0;
    const path = args.find((word) => word.startsWith("of="))!.slice("of=".length);
    if (path !== "/dev/nvme-fabrics") return this.#delete(path);
    const given = new Map(input.split(",").map((word) => word.split("=") as [string, string]));
    const [nqn, address, port] = [given.get("nqn")!, given.get("traddr")!, Number(given.get("trsvcid"))];
    const failure = (said: string) => ({ code: 1, stderr: `dd: error writing '${path}': ${said}\n` });
    const connect = async () => {
      const hanging = this.hang(address);
      if (hanging !== undefined) {
        const pending = this.add({ nqn: "(efault)", address, port, state: "connecting" });
        await hanging;
        this.remove("(efault)", pending);
        return failure("Connection timed out");
      }
      const there = this.controllers.some((one) => one.nqn === nqn && one.address === address);
      if (there) return failure("Operation already in progress");
      const refused = this.refuse(address, nqn);
      if (refused !== undefined) return failure(refused);
      this.add({ nqn, address, port, hostNqn: given.get("hostnqn")!, hostId: given.get("hostid")! });
      return 0;
    };
    const connecting = this.#fabrics.then(connect);
    this.#fabrics = connecting.then(() => {});
    return connecting;
  }

  #delete(path: string): Scripted {
    const name = /nvme[0-9]+/.exec(path)?.[0];
    const gone = this.controllers.find((one) => one.name === name);
    if (gone === undefined) return { code: 1, stderr: "No such device" };
    this.remove(gone.nqn, gone);
    return 0;
  }
}
