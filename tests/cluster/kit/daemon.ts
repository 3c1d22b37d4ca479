import { join } from "node:path";
import { pause } from "./waiting.ts";

/** How long a program may take to end by itself, in milliseconds. */
const stopLimitMs = 10_000;
/** How many of the last lines of a log are shown. */
const tailLines = 20;

/** A foreign program that runs for as long as the cluster does, with its own log. */
export class Daemon {
  readonly name: string;
  readonly logFile: string;
  readonly #child: Deno.ChildProcess;
  readonly #end: Promise<Deno.CommandStatus>;
  #ended: Deno.CommandStatus | undefined;

  private constructor(name: string, logFile: string, child: Deno.ChildProcess) {
    this.name = name;
    this.logFile = logFile;
    this.#child = child;
    this.#end = child.status.then((status) => this.#ended = status);
  }

  /**
   * Starts it; its output is appended to `folder`/`name`.log. The kernel kills it together with this process, however
   * that ends.
   *
   * @param words the program's path and its arguments
   */
  static start(
    name: string,
    wording: readonly string[],
    options: { readonly folder: string; readonly env?: Readonly<Record<string, string>> },
  ): Daemon {
    const logFile = join(options.folder, `${name}.log`);
    const script = 'log=$1; shift; exec setpriv --pdeathsig KILL "$@" >>"$log" 2>&1';
    const child = new Deno.Command("/bin/sh", {
      args: ["-c", script, "sh", logFile, ...wording],
      stdin: "null",
      ...(options.env === undefined ? {} : { env: options.env }),
    }).spawn();
    return new Daemon(name, logFile, child);
  }

  get pid(): number {
    return this.#child.pid;
  }

  get isRunning(): boolean {
    return this.#ended === undefined;
  }

  /** Resolves when it has ended for any reason. */
  get ended(): Promise<unknown> {
    return this.#end;
  }

  /**
   * Waits until `test` returns that it serves; throws with the end of its log when it ends instead, or takes too long.
   */
  async ready(limitSeconds: number, test: () => Promise<boolean>, signal?: AbortSignal): Promise<void> {
    const until = performance.now() + limitSeconds * 1000;
    while (!await test()) {
      signal?.throwIfAborted();
      if (!this.isRunning) throw new Error(`${this.name} ended at its start:\n${await this.tail()}`);
      if (performance.now() > until) throw new Error(`${this.name} does not serve:\n${await this.tail()}`);
      await pause(100);
    }
  }

  /** Sends SIGTERM, and SIGKILL if it does not end by itself. Its exit code is ignored. */
  async stop(): Promise<void> {
    this.#signal("SIGTERM");
    const limit = setTimeout(() => this.#signal("SIGKILL"), stopLimitMs);
    await this.#end;
    clearTimeout(limit);
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    this.#signal("SIGKILL");
    await this.#end;
  }

  #signal(signal: Deno.Signal): void {
    if (!this.isRunning) return;
    try {
      this.#child.kill(signal);
    } catch (error) {
      // It has ended, and this process has not been notified yet.
      if (!(error instanceof TypeError)) throw error;
    }
  }

  /** The end of its output. */
  async tail(): Promise<string> {
    const text = await Deno.readTextFile(this.logFile);
    return text.trimEnd().split("\n").slice(-tailLines).join("\n");
  }
}

/** How long an ended program stays ended, in milliseconds: a kubelet waits longer each time. */
const restartMs = 1_000;

/**
 * A program that is started again whenever it ends, like a container in a pod: sidecars end when they lose the driver.
 */
export class Supervised {
  readonly #start: () => Daemon;
  readonly #watching: Promise<void>;
  #daemon: Daemon;
  #isWanted = true;
  #restarts = 0;

  constructor(start: () => Daemon) {
    this.#start = start;
    this.#daemon = start();
    this.#watching = this.#watch();
  }

  /** How often it has ended by itself. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Ends it for good. */
  async stop(): Promise<void> {
    this.#isWanted = false;
    await this.#daemon.stop();
    await this.#watching;
  }

  async #watch(): Promise<void> {
    for (;;) {
      await this.#daemon.ended;
      if (!this.#isWanted) return;
      await pause(restartMs);
      if (!this.#isWanted) return;
      this.#restarts++;
      this.#daemon = this.#start();
    }
  }
}
