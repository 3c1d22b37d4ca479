// Controllers as separate processes. Some are always started before they are needed.
import { type CsiClients, dial } from "../../src/csi/server/client.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { systemClock } from "../../src/host/clock.ts";
import type { RouterBehaviours } from "../../src/router_profile/answers.ts";
import { formatProfile } from "../../src/router_profile/profile.ts";
import { defaultBehaviours } from "../../src/simulator/behaviours.ts";
import { profiles } from "../../src/simulator/profile.ts";
import { routerHostKey } from "../fakes/ssh_keys.ts";
import { freePort, type Part, startPart } from "../support/parts.ts";
import { probedAnswers, reach, routerPassword, type StackOptions } from "../support/stack.ts";

/** A controller that serves. */
export interface Controller {
  readonly clients: CsiClients;
  /** SIGKILL. */
  kill(): Promise<void>;
}

/** The SSH port of the router that all controllers of this worker use. */
const sshPort = freePort();

/** Controllers of one router, which may start after them. */
export class Controllers implements AsyncDisposable {
  /** The options of the router. */
  static readonly router: StackOptions = { simulator: { sshPort } };
  readonly #folder: string;
  readonly #csi = loadCsi();
  readonly #ready: Promise<Controller>[] = [];
  readonly #used: Controller[] = [];
  readonly #all: Controller[] = [];
  #count = 0;

  /**
   * Starts `ahead` controllers, and one more whenever one is taken.
   *
   * @param reported what they are told about the router
   */
  constructor(ahead: number, reported: Partial<RouterBehaviours>) {
    this.#folder = Deno.makeTempDirSync({ prefix: "rds-csi-test-" });
    Deno.writeTextFileSync(`${this.#folder}/password`, `${routerPassword}\n`);
    const profile = formatProfile({
      ...profiles[0]!,
      answers: { ...probedAnswers(defaultBehaviours), ...reported },
    });
    Deno.writeTextFileSync(`${this.#folder}/profile.json`, profile);
    for (let count = 0; count < ahead; count++) this.#ready.push(this.#start());
  }

  /** Returns a controller that has handled no call yet. */
  async takeNew(): Promise<Controller> {
    this.#ready.push(this.#start());
    return await this.#ready.shift()!;
  }

  /** Returns a used controller, or a new one when there is none. */
  async take(): Promise<Controller> {
    return this.#used.pop() ?? await this.takeNew();
  }

  /** Returns a living controller for later use. */
  giveBack(controller: Controller): void {
    this.#used.push(controller);
  }

  async #start(): Promise<Controller> {
    const endpoint = `unix://${this.#folder}/${++this.#count}.sock`;
    const router = { sshPort, hostKeyPublic: routerHostKey.publicLine };
    const flags = [
      ...reach(router, `${this.#folder}/password`),
      ...["--router-profile", `${this.#folder}/profile.json`],
      ...["--log-level", "error", "--endpoint", endpoint],
      // Without /readyz it sends the router no commands of its own, only those of calls.
      ...["--metrics-address", ""],
    ];
    const part = startPart("sources", "serve", this.#folder, flags);
    const clients = dial(this.#csi, endpoint, systemClock);
    await part.ready(() => answers(clients));
    const controller = { clients, kill: () => kill(part, clients) };
    this.#all.push(controller);
    return controller;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#ready);
    await Promise.all(this.#all.map((controller) => controller.kill()));
    await Deno.remove(this.#folder, { recursive: true });
  }
}

async function kill(part: Part, clients: CsiClients): Promise<void> {
  await part.kill();
  clients.close();
}

/** Makes a call that needs no router, and returns whether it is answered. */
async function answers(clients: CsiClients): Promise<boolean> {
  try {
    await clients.identity.call("GetPluginInfo", {}, 1000);
    return true;
  } catch {
    return false;
  }
}
