import { join } from "node:path";
import { type CommandOptions, type CommandResult, GuestCommand } from "./agent.ts";
import { diskName, Emulator, type LanPlace, type Machine } from "./emulator.ts";
import { guestImage } from "./image.ts";
import { hostOutput } from "../../../tools/host_command.ts";
import { type KernelName, usualKernel } from "./kernel.ts";
import { freePort } from "../../support/parts.ts";

/** A disk of a guest: a sparse file that outlives the guest's power. */
export interface DiskOptions {
  readonly name: string;
  readonly sizeBytes: number;
  /** A file that is copied to the disk at first; without it the disk is blank. */
  readonly copyOf?: string;
}

/** The options of a guest. */
export interface GuestOptions {
  /** Its host name. @default {"guest"} */
  readonly name?: string;
  /** @default {what GUEST_KERNEL names, else "stable"} */
  readonly kernel?: KernelName;
  /** @default {1536} */
  readonly memoryMiB?: number;
  /** @default {2} */
  readonly cpus?: number;
  /** Whether the kernel has native NVMe multipath, as it usually has. @default {true} */
  readonly multipath?: boolean;
  /**
   * Modules to load at the start; others are loaded by modprobe, and by the kernel on demand.
   *
   * @default {["loop", "nvme-tcp", "nvmet-tcp"]}
   */
  readonly modules?: readonly string[];
  readonly disks?: readonly DiskOptions[];
  /** Name of the guest's root disk: ext4 with a guest's own files. By default the root is in memory. */
  readonly root?: string;
  /** Whether the guest reaches the host's 127.0.0.1, as 10.0.2.2. @default {false} */
  readonly reachesHost?: boolean;
  /** An ext4 image with programs, mounted at /opt/tools. */
  readonly toolsPath?: string;
  readonly lan?: LanPlace;
  /** Ports of the guest that the host can reach at `guest.forwarded(port)`. */
  readonly ports?: readonly number[];
  /** How long the guest may live, in seconds; then it is ended. @default {600} */
  readonly limitSeconds?: number;
}

/** How long a guest may take until it serves commands, in seconds: 6 on an idle machine. */
const bootSeconds = 120;
/** How long it may say nothing until its emulator is started once more, in seconds; it is, too, if its kernel dies. */
const silentSeconds = 60;
/** Default time limit of a command, in seconds. */
const commandSeconds = 120;
const agentPort = 1000;

/** A guest: a machine in software emulation, its disks, and commands that run in it as root. */
export class Guest {
  readonly name: string;
  /** A folder of the host that is the guest's /host, and also has its console's log. */
  readonly folder: string;
  /** Seconds from power on until it served commands, at the last boot. */
  bootSeconds = 0;
  readonly #machine: Machine;
  readonly #disks: ReadonlyMap<string, string>;
  readonly #limit: ReturnType<typeof setTimeout>;
  #emulator: Emulator | undefined;
  #overdue = false;
  #boots = 0;

  private constructor(
    machine: Machine,
    folder: string,
    disks: ReadonlyMap<string, string>,
    limitSeconds: number,
  ) {
    this.name = machine.name;
    this.folder = folder;
    this.#machine = machine;
    this.#disks = disks;
    this.#limit = setTimeout(() => {
      this.#overdue = true;
      this.#emulator?.signal("SIGKILL");
    }, limitSeconds * 1000);
  }

  /**
   * Makes a guest whose files are in `folder`, and boots it; the caller removes the folder.
   *
   * @param made called with the guest before it boots
   */
  static async start(
    folder: string,
    options: GuestOptions = {},
    made: (guest: Guest) => void = () => {},
  ): Promise<Guest> {
    const own = join(folder, "host");
    await Deno.mkdir(own, { recursive: true });
    const disks: { path: string; readOnly: boolean }[] = [];
    const names = new Map<string, string>();
    for (const { name, sizeBytes, copyOf } of options.disks ?? []) {
      const path = join(folder, `${name}.disk`);
      await Deno.writeFile(path, new Uint8Array());
      if (copyOf !== undefined) await hostOutput("cp", ["--sparse=always", copyOf, path]);
      await Deno.truncate(path, sizeBytes);
      names.set(name, `/dev/${diskName(disks.length)}`);
      disks.push({ path, readOnly: false });
    }
    const toolsDisk = options.toolsPath === undefined ? undefined : disks.length;
    if (options.toolsPath !== undefined) disks.push({ path: options.toolsPath, readOnly: true });
    const root = (options.disks ?? []).findIndex(({ name }) => name === options.root);
    const rootDisk = root < 0 ? undefined : root;
    const machine = await machineOf(own, options, { disks, toolsDisk, rootDisk });
    const guest = new Guest(machine, folder, names, options.limitSeconds ?? 600);
    made(guest);
    try {
      await guest.boot();
    } catch (error) {
      await guest.end();
      throw error;
    }
    return guest;
  }

  /** Turns the power on again, after {@linkcode Guest.cutPower}: memory is lost, disks are unchanged. */
  async boot(): Promise<void> {
    if (this.isRunning) throw new Error(`The guest ${this.name} runs already`);
    const started = performance.now();
    const before = (await this.console()).length;
    this.#boots++;
    this.#emulator = await Emulator.start(this.#machine, this.folder);
    let isFirst = true;
    for (let said = ""; !/^guest: ready/m.test(said); said = (await this.console()).slice(before)) {
      // Kernels were seen that died of the emulation before they ran anything, on a machine with much else to do.
      const died = !this.isRunning && !this.#overdue && !/^guest: /m.test(said);
      if (!isFirst || !died) await this.#assertRunning("boots");
      const seconds = (performance.now() - started) / 1000;
      if (seconds > bootSeconds) {
        throw new Error(`The guest ${this.name} does not boot:\n${await this.consoleTail()}`);
      }
      // An emulator was seen that never got to the kernel.
      if (isFirst && (died || said === "" && seconds > silentSeconds)) {
        isFirst = false;
        await this.#emulator.kill();
        this.#emulator = await Emulator.start(this.#machine, this.folder);
      }
      await sleep(50);
    }
    this.bootSeconds = (performance.now() - started) / 1000;
  }

  /** Cuts its power: kills the emulator at once. */
  async cutPower(): Promise<void> {
    await this.#emulator?.kill();
  }

  /** Ends it for good. */
  async end(): Promise<void> {
    clearTimeout(this.#limit);
    await this.cutPower();
  }

  /** Freezes the whole machine with its clock, like a hypervisor that pauses it. */
  async freeze(): Promise<void> {
    await this.#running().qmp.execute("stop");
  }

  async thaw(): Promise<void> {
    await this.#running().qmp.execute("cont");
  }

  /** The registers of its processors, as the emulator's monitor prints them. */
  async registers(): Promise<string> {
    const shown = await this.#running().qmp.execute("human-monitor-command", {
      "command-line": "info registers -a",
    });
    return String(shown);
  }

  /** Whether it has power. */
  get isRunning(): boolean {
    return this.#emulator?.isRunning === true;
  }

  /** Sends the emulator's process a signal, such as SIGSTOP and SIGCONT. */
  signal(signal: Deno.Signal): void {
    this.#running().signal(signal);
  }

  /**
   * Connects or disconnects the guest's cable to the other guests; commands use another connection and still arrive.
   */
  async setLink(up: boolean): Promise<void> {
    await this.#running().qmp.execute("set_link", { name: "lan-card", up });
  }

  /** Its address in the network of guests; 127.0.0.1 without one. */
  get address(): string {
    return this.#machine.lan?.address ?? "127.0.0.1";
  }

  /** The device of one of its disks, such as /dev/vda. */
  disk(name: string): string {
    const device = this.#disks.get(name);
    if (device === undefined) throw new Error(`The guest ${this.name} has no disk ${name}`);
    return device;
  }

  /** The port of 127.0.0.1 on the host for one of the guest's `ports`. */
  forwarded(port: number): number {
    const found = [...this.#machine.forwards].find(([, guest]) => guest === port);
    if (found === undefined) throw new Error(`The guest ${this.name} does not forward the port ${port}`);
    return found[0];
  }

  /** Starts a shell script, and does not wait for it. */
  async start(script: string, options: CommandOptions = {}): Promise<GuestCommand> {
    await this.#assertRunning("is to run a command");
    return new GuestCommand(await Deno.connect({ port: this.forwarded(agentPort) }), script, options);
  }

  /** Runs a shell script to its end, and returns its result, success or not. */
  async run(
    script: string,
    options: CommandOptions & { readonly limitSeconds?: number } = {},
  ): Promise<CommandResult> {
    const command = await this.start(script, options);
    const { limitSeconds = commandSeconds } = options;
    let limit: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      const problem = `A command in ${this.name} takes longer than ${limitSeconds} s: ${script}`;
      limit = setTimeout(() => reject(new Error(problem)), limitSeconds * 1000);
    });
    try {
      return await Promise.race([late, command.end]);
    } catch (error) {
      command.abandon();
      await this.#assertRunning(`ran ${script}`);
      throw error;
    } finally {
      clearTimeout(limit);
    }
  }

  /** Like {@linkcode Guest.run}, but returns what the script printed; throws when it fails. */
  async sh(
    script: string,
    options: CommandOptions & { readonly limitSeconds?: number } = {},
  ): Promise<string> {
    const { status, stdout, stderr } = await this.run(script, options);
    if (status === 0) return stdout;
    throw new Error(`A command in ${this.name} ended with ${status}: ${script}\n${stdout}${stderr}`);
  }

  /** Waits until a script exits with 0, running it every `everyMs`. */
  async until(
    script: string,
    options: { readonly limitSeconds?: number; readonly everyMs?: number } = {},
  ): Promise<void> {
    const { limitSeconds = commandSeconds, everyMs = 200 } = options;
    const until = performance.now() + limitSeconds * 1000;
    for (;;) {
      const { status, stdout, stderr } = await this.run(script, { limitSeconds });
      if (status === 0) return;
      if (performance.now() > until) {
        throw new Error(`Not so in ${this.name} within ${limitSeconds} s: ${script}\n${stdout}${stderr}`);
      }
      await sleep(everyMs);
    }
  }

  /** Writes a file in the guest. */
  async write(path: string, content: string | Uint8Array, mode = 0o644): Promise<void> {
    await this.sh(`cat > "$path" && chmod ${mode.toString(8)} "$path"`, { env: { path }, input: content });
  }

  /** The output of its console, from the first boot on. */
  async console(): Promise<string> {
    try {
      return await Deno.readTextFile(join(this.folder, "console.log"));
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return "";
      throw error;
    }
  }

  async consoleTail(count = 40): Promise<string> {
    return (await this.console()).trimEnd().split("\n").slice(-count).join("\n");
  }

  #running(): Emulator {
    if (this.#emulator?.isRunning) return this.#emulator;
    throw new Error(`The guest ${this.name} does not run`);
  }

  async #assertRunning(doing: string): Promise<void> {
    if (this.#emulator?.isRunning) return;
    const why = this.#overdue ? "its time was over" : "its emulator ended";
    throw new Error(
      `The guest ${this.name} does not run any more as ${why}; it ${doing}:\n${await this.consoleTail()}`,
    );
  }
}

async function machineOf(
  own: string,
  options: GuestOptions,
  disks: Pick<Machine, "disks" | "toolsDisk" | "rootDisk">,
): Promise<Machine> {
  const share = { hostPath: own, guestPath: "/host", writable: true, cached: false };
  const ports = [agentPort, ...options.ports ?? []];
  return {
    ...disks,
    name: options.name ?? "guest",
    image: await guestImage(options.kernel ?? usualKernel()),
    memoryMiB: options.memoryMiB ?? 1536,
    cpus: options.cpus ?? 2,
    kernelArguments: [`nvme_core.multipath=${options.multipath === false ? "N" : "Y"}`],
    modules: options.modules ?? ["loop", "nvme-tcp", "nvmet-tcp"],
    shares: [share],
    lan: options.lan,
    reachesHost: options.reachesHost ?? false,
    forwards: new Map(ports.map((port) => [freePort(), port])),
  };
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
