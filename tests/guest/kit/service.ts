import type { GuestCommand } from "./agent.ts";
import { quote } from "./agent.ts";
import type { Guest } from "./guest.ts";

/** How long a program in a guest may take until it serves, in seconds: 3 on an idle machine. */
const startSeconds = 120;
/** How long it may take to end by itself, in seconds. */
const stopSeconds = 60;

/** Where a program of the executable runs in a guest. */
export interface ServiceOptions {
  /**
   * `shared`: in its own mount namespace like a container's, whose kubelet folder and /dev share their mounts with the
   * host's; `private`: neither does; undefined: in the guest's own.
   */
  readonly namespace?: "shared" | "private";
}

/** A program of the executable that runs in a guest, with its output. */
export class GuestService {
  readonly #guest: Guest;
  readonly #name: string;
  readonly #command: GuestCommand;
  readonly #lines: string[];
  #hasEnded = false;

  private constructor(guest: Guest, name: string, command: GuestCommand, lines: string[]) {
    this.#guest = guest;
    this.#name = name;
    this.#command = command;
    this.#lines = lines;
    const end = () => this.#hasEnded = true;
    command.end.then(end, end);
  }

  /** Starts `rds-csi NAME ARGS…`. */
  static async start(
    guest: Guest,
    name: string,
    args: readonly string[],
    options: ServiceOptions = {},
  ): Promise<GuestService> {
    const lines: string[] = [];
    const text = ["/opt/tools/rds-csi", name, ...args].map(quote).join(" ");
    const command = await guest.start(inNamespace(text, options.namespace), {
      onLine: (line) => lines.push(line),
      env: { NO_COLOR: "1" },
    });
    return new GuestService(guest, name, command, lines);
  }

  /** Waits until `isReady` accepts its output lines. */
  async ready(isReady: (lines: readonly string[]) => boolean | Promise<boolean>): Promise<void> {
    const until = performance.now() + startSeconds * 1000;
    while (!await isReady(this.#lines)) {
      if (this.#hasEnded) throw new Error(`${this.#name} ended at its start:\n${this.tail()}`);
      if (performance.now() > until) throw new Error(`${this.#name} does not serve:\n${this.tail()}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Its whole output, as lines. */
  get lines(): readonly string[] {
    return this.#lines;
  }

  /** The end of its output. */
  tail(count = 30): string {
    return this.#lines.slice(-count).join("\n");
  }

  get isRunning(): boolean {
    return !this.#hasEnded;
  }

  /** Sends SIGTERM, and waits; throws when it does not end properly. */
  async stop(): Promise<void> {
    await this.signal("TERM");
    const { status } = await this.#ended();
    if (status !== 0) throw new Error(`${this.#name} ended with ${status}:\n${this.tail()}`);
  }

  /** Sends SIGKILL to it alone: its children go on. */
  async killAlone(): Promise<void> {
    await this.signal("KILL");
    await this.#ended();
  }

  /** The id of its process in the guest. */
  get pid(): Promise<number> {
    return this.#command.pid;
  }

  /** Sends it a signal, such as KILL, STOP, CONT. */
  async signal(name: string): Promise<void> {
    await this.#guest.sh(`kill -${name} ${await this.pid}`);
  }

  async #ended() {
    let limit: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      const problem = `${this.#name} has not ended within ${stopSeconds} s:\n${this.tail()}`;
      limit = setTimeout(() => reject(new Error(problem)), stopSeconds * 1000);
    });
    try {
      return await Promise.race([late, this.#command.end]);
    } finally {
      clearTimeout(limit);
    }
  }
}

/** A script whose process becomes the program. */
function inNamespace(text: string, namespace: ServiceOptions["namespace"]): string {
  if (namespace === undefined) return `exec ${text}`;
  const propagation = namespace === "shared" ? "shared" : "private";
  // As a container's root: what is unmounted on the host does not stay mounted in it.
  const inside =
    `mount --make-slave / && mount --make-${propagation} /dev && mount --make-${propagation} /var/lib/kubelet`;
  return `set -e
    mkdir -p /var/lib/kubelet
    mountpoint -q /var/lib/kubelet || { mount --bind /var/lib/kubelet /var/lib/kubelet; mount --make-shared /var/lib/kubelet; }
    exec unshare --mount --propagation unchanged sh -c ${quote(`${inside} && exec ${text}`)}`;
}
