import { join } from "node:path";
import type { GuestImage } from "./image.ts";
import { lines } from "../../../tools/lines.ts";

/** A folder of the host that the guest can read. */
export interface Share {
  readonly hostPath: string;
  readonly guestPath: string;
  readonly writable: boolean;
  /**
   * Whether the guest may cache what it has read: that is faster, but the guest then does not see the host's changes.
   */
  readonly cached: boolean;
}

/** A guest's place in a network of guests. */
export interface LanPlace {
  readonly address: string;
  /** The emulator's arguments for the guest's network card, and for its part of the network. */
  readonly args: readonly string[];
  /** Names and addresses of all guests in the network. */
  readonly hosts: readonly (readonly [address: string, name: string])[];
}

/** The parts of a machine. */
export interface Machine {
  readonly name: string;
  readonly image: GuestImage;
  readonly memoryMiB: number;
  readonly cpus: number;
  readonly kernelArguments: readonly string[];
  readonly modules: readonly string[];
  /** Raw files, in the order in which the guest names them: /dev/vda, /dev/vdb, … */
  readonly disks: readonly { readonly path: string; readonly readOnly: boolean }[];
  /** The number of the disk with the tools. */
  readonly toolsDisk: number | undefined;
  /** The number of the root disk. */
  readonly rootDisk: number | undefined;
  /** Whether the guest reaches the host's 127.0.0.1, as 10.0.2.2. */
  readonly reachesHost: boolean;
  readonly shares: readonly Share[];
  readonly lan: LanPlace | undefined;
  /** Ports of the guest that the host can reach, by the port of the host. */
  readonly forwards: ReadonlyMap<number, number>;
}

/** How long it may take until the emulator's control socket exists, in milliseconds. */
const startMs = 30_000;

/** One running emulator: a machine from power on to power off. */
export class Emulator {
  readonly qmp: Qmp;
  readonly #child: Deno.ChildProcess;
  /** Resolves with its status when it has ended. */
  readonly ended: Promise<Deno.CommandStatus>;
  #status: Deno.CommandStatus | undefined;

  private constructor(child: Deno.ChildProcess, ended: Promise<Deno.CommandStatus>, qmp: Qmp) {
    this.#child = child;
    this.qmp = qmp;
    this.ended = ended;
    ended.then((status) => this.#status = status);
  }

  /** Starts one; its console is written to `folder`/console.log, to which a reboot appends. */
  static async start(machine: Machine, folder: string): Promise<Emulator> {
    const socket = join(folder, "qmp.sock");
    await Deno.remove(socket).catch(ignoreMissing);
    const child = new Deno.Command("setpriv", {
      // The kernel kills it together with this process, however that ends.
      args: ["--pdeathsig", "KILL", "qemu-system-x86_64", ...emulatorArguments(machine, folder, socket)],
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    const complaints = new Response(child.stderr).text();
    const ended = child.status;
    let status: Deno.CommandStatus | undefined;
    ended.then((end) => status = end);
    const until = performance.now() + startMs;
    for (;;) {
      try {
        return new Emulator(child, ended, await Qmp.connect(socket));
      } catch (error) {
        if (status !== undefined) throw new Error(`Cannot start a guest: ${(await complaints).trim()}`);
        if (performance.now() > until) {
          child.kill("SIGKILL");
          throw error;
        }
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  get pid(): number {
    return this.#child.pid;
  }

  get isRunning(): boolean {
    return this.#status === undefined;
  }

  /** Ends it like a power cut. */
  async kill(): Promise<void> {
    if (this.isRunning) this.#child.kill("SIGKILL");
    await this.ended;
    this.qmp.close();
  }

  /** Sends a signal to the emulator, such as SIGSTOP, which stops the whole machine and its clock. */
  signal(signal: Deno.Signal): void {
    if (this.isRunning) this.#child.kill(signal);
  }
}

/**
 * The kernel's arguments that make software emulation quick, and a panic end the machine.
 *
 * Translated code is kept by virtual address, so a program that is placed at random is translated at every start.
 * With `norandmaps` 150 starts of a small program took 0.65 s instead of 4.0 s, side by side.
 */
const kernelArguments =
  "console=ttyS0 quiet panic=-1 mitigations=off norandmaps audit=0 rcupdate.rcu_expedited=1 tsc=reliable " +
  "no_timer_check random.trust_cpu=on";

/**
 * All that can be emulated, but for what is slower than what a kernel or a program does without it. AVX needs XSAVE; the
 * kernel's RAID 6, which btrfs loads, does not ask for that.
 */
const processor = "max,erms=off,fsrm=off,xsave=off,avx=off,avx2=off";

function emulatorArguments(machine: Machine, folder: string, socket: string): string[] {
  const { image, lan } = machine;
  const forwards = [...machine.forwards].map(([host, guest]) =>
    `,hostfwd=tcp:127.0.0.1:${host}-10.0.2.15:${guest}`
  );
  return [
    ...["-name", machine.name, "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", processor],
    ...["-smp", `${machine.cpus}`, "-m", `${machine.memoryMiB}`],
    ...["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"],
    ...["-kernel", image.vmlinuxPath, "-initrd", image.initramfsPath, "-append", commandLine(machine)],
    ...[
      "-chardev",
      `file,id=console,path=${join(folder, "console.log")},append=on`,
      "-serial",
      "chardev:console",
    ],
    ...["-qmp", `unix:${socket},server=on,wait=off`],
    // Restricted: the guest reaches neither the host nor anything beyond it.
    ...[
      "-netdev",
      `user,id=kit,restrict=${machine.reachesHost ? "off" : "on"}${forwards.join("")}`,
      "-device",
      "virtio-net-pci,netdev=kit,romfile=",
    ],
    ...lan?.args ?? [],
    // A flush reaches the host's memory, which outlives the emulator: waiting for the host's own disk would show no
    // more.
    ...machine.disks.flatMap(({ path, readOnly }, index) => [
      "-drive",
      `file=${path},format=raw,if=virtio,index=${index},cache=unsafe,readonly=${
        readOnly ? "on,file.locking=off" : "off"
      }`,
    ]),
    ...machine.shares.flatMap(({ hostPath, writable }, index) => [
      "-fsdev",
      `local,id=share${index},path=${hostPath},security_model=none,multidevs=remap${
        writable ? "" : ",readonly=on"
      }`,
      ...["-device", `virtio-9p-pci,fsdev=share${index},mount_tag=share${index}`],
    ]),
  ];
}

/** The guest's kernel command line: arguments for the kernel, then for its first process. */
function commandLine(machine: Machine): string {
  const { name, lan, shares, modules, toolsDisk, rootDisk } = machine;
  const mounts = shares.map(({ guestPath, writable, cached }, index) =>
    `share${index}:${guestPath}:${writable ? "rw" : "ro"}:${cached ? "loose" : "none"}`
  );
  return [
    kernelArguments,
    ...machine.kernelArguments,
    `guest.name=${name}`,
    ...modules.length === 0 ? [] : [`guest.modules=${modules.join(",")}`],
    ...mounts.length === 0 ? [] : [`guest.shares=${mounts.join(",")}`],
    ...rootDisk === undefined ? [] : [`guest.root=${diskName(rootDisk)}`],
    ...toolsDisk === undefined ? [] : [`guest.tools=${diskName(toolsDisk)}`],
    ...lan === undefined ? [] : [
      `guest.lan=${lan.address}`,
      `guest.hosts=${lan.hosts.map(([address, host]) => `${address}:${host}`).join(",")}`,
    ],
  ].join(" ");
}

/** The guest's name of its disk of this number. */
export function diskName(index: number): string {
  return `vd${String.fromCharCode("a".charCodeAt(0) + index)}`;
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}

/** How long an emulator may take to answer, in milliseconds. */
const limitMs = 30_000;

interface Reply {
  readonly return?: unknown;
  readonly error?: { readonly desc: string };
}

/** The emulator's control connection (QMP): one command at a time, answered in order. */
class Qmp {
  readonly #connection: Deno.UnixConn;
  readonly #lines: AsyncGenerator<string>;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(connection: Deno.UnixConn) {
    this.#connection = connection;
    this.#lines = lines(connection.readable);
  }

  /** Connects to the emulator's socket, which has to exist. */
  static async connect(path: string): Promise<Qmp> {
    const qmp = new Qmp(await Deno.connect({ transport: "unix", path }));
    await qmp.#lines.next();
    await qmp.execute("qmp_capabilities");
    return qmp;
  }

  /** Runs one command; throws when the emulator refuses it or does not answer. */
  execute(command: string, args?: Record<string, unknown>): Promise<unknown> {
    const next = this.#last.then(() => this.#exchange(command, args));
    this.#last = next.catch(() => {});
    return next;
  }

  close(): void {
    try {
      this.#connection.close();
    } catch (error) {
      if (!(error instanceof Deno.errors.BadResource)) throw error;
    }
  }

  async #exchange(command: string, args?: Record<string, unknown>): Promise<unknown> {
    const request = JSON.stringify({ execute: command, ...(args === undefined ? {} : { arguments: args }) });
    await this.#connection.write(new TextEncoder().encode(`${request}\n`));
    let limit: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      limit = setTimeout(
        () => reject(new Error(`The emulator does not answer: command=${command}`)),
        limitMs,
      );
    });
    try {
      return await Promise.race([late, this.#reply(command)]);
    } finally {
      clearTimeout(limit);
    }
  }

  /** Events may come between answers. */
  async #reply(command: string): Promise<unknown> {
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done) throw new Error(`The emulator ended: command=${command}`);
      const reply = JSON.parse(value) as Reply;
      if (reply.error !== undefined) {
        throw new Error(`The emulator refuses: command=${command} ${reply.error.desc}`);
      }
      if ("return" in reply) return reply.return;
    }
  }
}
