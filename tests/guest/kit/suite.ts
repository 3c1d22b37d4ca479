import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "../../../tools/build.ts";
import { Guest, type GuestOptions } from "./guest.ts";
import { eventMark, type InsideEvent } from "./inside.ts";
import { isLong } from "../../support/long.ts";
import { freePort } from "../../support/parts.ts";
import { Report } from "../../support/suite_report.ts";
import type { AnySuite } from "../../support/suites.ts";
import type { LanPlace } from "./emulator.ts";

/** The exports of a file of suites/. */
export interface Suite extends AnySuite<Bench> {
  /** Whether it needs dist/rds-csi. */
  readonly needsBinary?: boolean;
  /** Whether it needs csi-sanity, which is built with Go. */
  readonly needsGo?: boolean;
  /** Whether it needs the image's archive, and a control plane's programs on this machine. */
  readonly needsImage?: boolean;
  /** Whether it needs root, who may give this machine an address and serve at a router's ports. */
  readonly needsRoot?: boolean;
}

/** The project's proto file, which is put beside a bundle. */
const protoPath = fileURLToPath(new URL("../../../proto/csi.proto", import.meta.url));
/** Where the consoles of guests with a failed test are stored, and other logs. */
export const keptFolder = fileURLToPath(new URL("../../../dist/guest", import.meta.url));

/** Default time limit of all tests of one file in a guest, in seconds. */
const insideSeconds = 600;

/** Starts guests and reports tests for a suite; it ends everything that it started. */
export class Bench {
  readonly report: Report;
  /** A folder of the host for the suite's own files. */
  readonly folder: string;
  readonly #name: string;
  readonly #toolsPath: string;
  /** Aborted when the suite has to end. */
  readonly signal: AbortSignal;
  readonly #guests: Guest[] = [];

  constructor(name: string, folder: string, toolsPath: string, signal: AbortSignal) {
    this.#name = name;
    this.report = new Report(name);
    this.folder = folder;
    this.#toolsPath = toolsPath;
    this.signal = signal;
    signal.addEventListener("abort", () => void this.#endGuests(), { once: true });
  }

  /** Boots a guest with the tools (deno, rds-csi, csi-sanity) in /opt/tools. */
  async guest(options: GuestOptions = {}): Promise<Guest> {
    this.signal.throwIfAborted();
    const folder = join(this.folder, `guest-${this.#guests.length}-${options.name ?? "guest"}`);
    await Deno.mkdir(folder);
    const limitSeconds = 3600;
    const guest = await Guest.start(
      folder,
      { toolsPath: this.#toolsPath, limitSeconds, ...options },
      (made) => {
        this.#guests.push(made);
      },
    );
    if (this.signal.aborted) await this.#endGuests();
    return guest;
  }

  /**
   * Boots guests in their own network, all at once; the first one carries the network.
   *
   * @param options of all guests, or of each by its name
   */
  async guests<Name extends string>(
    names: readonly Name[],
    options: GuestOptions | ((name: Name) => GuestOptions) = {},
  ): Promise<Record<Name, Guest>> {
    const lan = new Lan(names);
    const of = typeof options === "function" ? options : () => options;
    const started = names.map(async (name) =>
      [name, await this.guest({ cpus: 1, ...of(name), name, lan: lan.location(name) })] as const
    );
    return Object.fromEntries(await Promise.all(started)) as Record<Name, Guest>;
  }

  /** Runs one test on the host and reports its result; a failure does not end the suite. */
  test(name: string, body: () => Promise<string>): Promise<boolean> {
    return this.report.test(name, this.signal, body);
  }

  /**
   * Runs tests that each continue where the one before has ended; a failure ends the sequence, because the rest could
   * only fail too. Returns whether all passed.
   */
  async story(tests: readonly (readonly [name: string, body: () => Promise<string>])[]): Promise<boolean> {
    for (const [name, body] of tests) if (!await this.test(name, body)) return false;
    return true;
  }

  /**
   * Runs a file of tests in a guest, with the Deno there, and reports each of them. It is bundled here, so that the
   * guest neither fetches nor compiles.
   *
   * @param file URL of the file, such as `new URL("x_inside.ts", import.meta.url)`
   * @param args its Deno.args
   */
  async inside(
    guest: Guest,
    file: URL,
    args: readonly string[] = [],
    limitSeconds = insideSeconds,
  ): Promise<void> {
    const name = file.pathname.replace(/.*\//, "").replace(/\.ts$/, "");
    const folder = join(guest.folder, "host", name);
    await bundle(fileURLToPath(file), folder);
    await Deno.mkdir(join(folder, "proto"));
    await Deno.copyFile(protoPath, join(folder, "proto/csi.proto"));
    const run = new InsideRun(this.report);
    const text = [
      "/opt/tools/deno",
      "run",
      "--allow-all",
      "--no-config",
      "--no-lock",
      `/host/${name}/main.js`,
      ...args,
    ];
    const env = {
      DENO_DIR: "/tmp/deno",
      DENO_NO_UPDATE_CHECK: "1",
      NO_COLOR: "1",
      TEST_LONG: isLong ? "1" : "",
    };
    try {
      const script = `exec ${text.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ")}`;
      const { status } = await guest.run(script, { env, limitSeconds, onLine: (line) => run.hear(line) });
      run.end(name, status === 0 ? undefined : `the file ended with status ${status}`);
    } catch (error) {
      run.end(name, this.signal.aborted ? this.signal.reason : error);
    }
  }

  /** Ends all guests; after a failed test their consoles' output is kept. */
  async close(): Promise<void> {
    await this.#endGuests();
    if (this.report.counts.failed > 0) await this.#keepConsoles();
    await Deno.remove(this.folder, { recursive: true });
  }

  /** The seed of a suite's random numbers: GUEST_SEED, or a fixed one except in a long run. */
  seed(): number {
    const given = Deno.env.get("GUEST_SEED");
    const drawn = isLong ? crypto.getRandomValues(new Uint32Array(1))[0]! : 20261121;
    const seed = given === undefined ? drawn : Number(given);
    this.report.say(`GUEST_SEED=${seed}`);
    return seed;
  }

  async #endGuests(): Promise<void> {
    await Promise.all(this.#guests.map((guest) => guest.end()));
  }

  /** Keeps what may tell why a test has failed, under the suite's name. */
  async keep(what: string, name: string, text: string): Promise<void> {
    await Deno.mkdir(keptFolder, { recursive: true });
    const path = join(keptFolder, `${this.#name}-${name}.log`);
    await Deno.writeTextFile(path, text);
    this.report.say(`${what} is kept in ${path}`);
  }

  async #keepConsoles(): Promise<void> {
    for (const [index, guest] of this.#guests.entries()) {
      await this.keep(`the console of ${guest.name}`, `${index}-${guest.name}`, await guest.console());
    }
  }
}

/** The messages of a test file in a guest. */
class InsideRun {
  readonly #report: Report;
  #running: string | undefined;
  #count = 0;
  /** Lines since the last test ended, in case one fails. */
  #lines: string[] = [];

  constructor(report: Report) {
    this.#report = report;
  }

  hear(line: string): void {
    if (!line.startsWith(eventMark)) {
      this.#lines.push(line);
      return;
    }
    const event = JSON.parse(line.slice(eventMark.length)) as InsideEvent;
    if (event.kind === "begin") {
      this.#running = event.name;
      return;
    }
    this.#running = undefined;
    this.#count++;
    if ("showed" in event) this.#report.passed(event.name, event.milliseconds, event.showed);
    else this.#fail(event.name, event.milliseconds, event.failure);
    this.#lines = [];
  }

  /** A test that did not end, or did not even begin, has failed. */
  end(file: string, problem: unknown): void {
    if (this.#running !== undefined) this.#fail(this.#running, 0, problem ?? "it never ended");
    else if (problem !== undefined) this.#fail(file, 0, problem);
    else if (this.#count === 0) this.#fail(file, 0, "it has no tests");
  }

  #fail(name: string, milliseconds: number, failure: unknown): void {
    this.#report.failed(name, milliseconds, failure);
    for (const line of this.#lines.slice(-40)) this.#report.say(`  ${line}`);
  }
}

/**
 * A network of up to ten guests, each with a card for it besides the kit's own. The first guest's emulator carries the
 * switch; the others reach it by datagrams on the host's loopback. There are no connections. So any guest, even the
 * first one, may lose its power and come back, and packets to a frozen guest are lost, as on a real wire.
 */
class Lan {
  readonly #names: readonly string[];
  readonly #hub: readonly number[];
  readonly #spokes: readonly number[];

  /** The addresses are 10.77.0.1 and following, in the order of the guests' host names. */
  constructor(names: readonly string[]) {
    this.#names = names;
    this.#hub = names.slice(1).map(freePort);
    this.#spokes = names.slice(1).map(freePort);
  }

  /** The address of a guest in it. */
  address(name: string): string {
    return `10.77.0.${this.#index(name) + 1}`;
  }

  /** The options with which a guest joins it. */
  location(name: string): LanPlace {
    const index = this.#index(name);
    const hosts = this.#names.map((other) => [this.address(other), other] as const);
    const mac = `52:54:00:77:00:${(index + 1).toString(16).padStart(2, "0")}`;
    const card = (
      backend: string,
    ) => ["-device", `virtio-net-pci,id=lan-card,netdev=${backend},mac=${mac},romfile=`];
    if (index > 0) {
      return {
        address: this.address(name),
        hosts,
        args: [...this.#wire("lan", index - 1, false), ...card("lan")],
      };
    }
    const spokes = this.#hub.flatMap((_, spoke) => [
      ...this.#wire(`wire${spoke}`, spoke, true),
      ...["-netdev", `hubport,id=hub${spoke},hubid=0,netdev=wire${spoke}`],
    ]);
    return {
      address: this.address(name),
      hosts,
      args: [...spokes, "-netdev", "hubport,id=lan,hubid=0", ...card("lan")],
    };
  }

  #wire(id: string, spoke: number, atHub: boolean): string[] {
    const [local, remote] = atHub
      ? [this.#hub[spoke], this.#spokes[spoke]]
      : [this.#spokes[spoke], this.#hub[spoke]];
    const end = (side: string, port: number | undefined) =>
      `${side}.type=inet,${side}.host=127.0.0.1,${side}.port=${port}`;
    return ["-netdev", `dgram,id=${id},${end("local", local)},${end("remote", remote)}`];
  }

  #index(name: string): number {
    const index = this.#names.indexOf(name);
    if (index < 0) throw new Error(`There is no guest ${name} in this network`);
    return index;
  }
}
