// A simulated router for its own tests: without a network, or over SSH.
import type { Buffer } from "node:buffer";
import * as net from "node:net";
import { FakeClock } from "../fakes/clock.ts";
import { SeededRandom } from "../fakes/random.ts";
import { routerHostKey } from "../fakes/ssh_keys.ts";
import { Console, someoneElse } from "../../src/simulator/console/console.ts";
import type { Behaviours } from "../../src/simulator/behaviours.ts";
import { MemoryBacking } from "../../src/simulator/model/backing.ts";
import { noExporter } from "../../src/simulator/model/exports.ts";
import { Router, type RouterParts } from "../../src/simulator/model/router.ts";
import { getProfile, type Profile } from "../../src/simulator/profile.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "../../src/simulator/simulator.ts";
import { ssh2 } from "../../src/simulator/ssh/library.ts";
import { Timing } from "../../src/simulator/timing.ts";

/** Options of {@linkcode makeRouter}. */
export interface RouterFixture extends Partial<Omit<RouterParts, "profile">> {
  /** A profile, or the name of one. */
  readonly profile?: string | Profile;
}

/** A router in memory, on a clock that stands still. */
export function makeRouter({ profile = "ros-7.24", ...fixture }: RouterFixture = {}): Router {
  return new Router({
    clock: new FakeClock(),
    random: new SeededRandom(),
    behaviours: {},
    backing: new MemoryBacking(),
    exporter: noExporter,
    pools: [{ name: "storage-pool" }],
    ...fixture,
    profile: typeof profile === "string" ? getProfile(profile) : profile,
  });
}

/** A caller whose commands are not checked. */
export const anyone = someoneElse;

/** Runs a command and returns its output, with a refusal as its last line. */
export type Typing = (command: string) => Promise<string>;

/** A console on a router that takes no time. */
export function typeTo(router: Router, caller = anyone): Typing {
  const console = new Console(router, new Timing(0, new SeededRandom()));
  return async (command) => {
    const { output, refusal } = await console.execute(command, caller);
    return output + (refusal === undefined ? "" : `${refusal}\r\n`);
  };
}

/** A console on a fresh router whose base path exists. */
export async function typing(behaviours: Partial<Behaviours> = {}, profile = "ros-7.24"): Promise<Typing> {
  const type = typeTo(makeRouter({ behaviours, profile }));
  await type(makeBasePath);
  return type;
}

/** The command that makes the base path. */
export const makeBasePath = '/file add type="directory" name="storage-pool/metal-csi"';

/** The command that adds a disk of 1 GiB; `more` is appended. */
export function addCommand(slot: string, more = ""): string {
  return `/disk add type="file" slot="${slot}" file-path="/storage-pool/metal-csi/${slot}.img" ` +
    `file-size="1073741824" mount-filesystem="no"${more === "" ? "" : ` ${more}`}`;
}

/** The command that prints items as JSON. */
export function jsonCommand(command: string): string {
  return `:put [:serialize to=json options=json.no-string-conversion value=[${command}]]`;
}

/** A simulator without delays, with one user. */
export function startQuickly(options: SimulatorOptions = {}): Promise<Simulator> {
  return startSimulator({
    timingScale: 0,
    hostKey: routerHostKey.privatePem,
    users: [{ name: "csi", password: "secret" }],
    ...options,
  });
}

/** The result of an exec over SSH. */
export interface ExecResult {
  readonly stdout: string;
  readonly stderr: string;
  /** Undefined when there was none. */
  readonly status: number | undefined;
}

/** An SSH connection to a simulator. */
export class SshClient implements Disposable {
  readonly client = new ssh2.Client();
  readonly #closed = Promise.withResolvers<void>();

  /** Connects; rejects when it cannot. */
  static async connect(
    { sshPort }: Simulator,
    login: Readonly<Record<string, unknown>> = { username: "csi", password: "secret" },
  ): Promise<SshClient> {
    const connection = new SshClient();
    const ready = Promise.withResolvers<void>();
    connection.client.on("ready", () => ready.resolve());
    connection.client.on("error", (error) => ready.reject(error));
    connection.client.on("close", () => {
      connection.#closed.resolve();
      ready.reject(new Error("closed"));
    });
    // Nagle's algorithm would cost 40 ms for each step.
    const sock = net.connect({ host: "127.0.0.1", port: sshPort, noDelay: true });
    connection.client.connect({
      sock,
      ...login,
      algorithms: { cipher: ["aes128-gcm@openssh.com"], kex: ["curve25519-sha256"] },
    });
    try {
      await ready.promise;
    } catch (error) {
      // Its timers end with it.
      connection.client.end();
      await connection.closed;
      throw error;
    }
    return connection;
  }

  /** Resolves when the connection is gone. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** Runs a command; rejects when the channel is refused. */
  exec(command: string): Promise<ExecResult> {
    return new Promise((resolve, reject) => {
      this.client.exec(command, (error, channel) => {
        if (error !== undefined) return reject(error);
        let [stdout, stderr] = ["", ""];
        let status: number | undefined;
        channel.on("data", (data: Buffer) => stdout += data.toString());
        channel.stderr.on("data", (data: Buffer) => stderr += data.toString());
        channel.on("exit", (code: number) => status = code);
        channel.on("close", () => resolve({ stdout, stderr, status }));
      });
    });
  }

  [Symbol.dispose](): void {
    this.client.destroy();
  }
}
