// Controllers as processes of their own, some of them always started before they are needed.
import { type CsiClients, dial } from "../../src/csi/server/client.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { systemClock } from "../../src/host/clock.ts";
import type { RouterBehaviours } from "../../src/router_profile/answers.ts";
import { formatProfile } from "../../src/router_profile/profile.ts";
import { defaultBehaviours } from "../../src/simulator/behaviours.ts";
import { profiles } from "../../src/simulator/profile.ts";
import { routerHostKey } from "../fakes/ssh_keys.ts";
import { freePort, type Part, startPart } from "../support/parts.ts";
import { reach, routerPassword, type StackOptions } from "../support/stack.ts";

/** A controller that serves. */
export interface Controller {
  readonly clients: CsiClients;
  /** SIGKILL. */
  kill(): Promise<void>;
}

/** The port that the router of all controllers of this worker is to listen on. */
const sshPort = freePort();

/** Controllers of one router, which need not be there yet. */
export class Controllers implements AsyncDisposable {
  /** Where their router is. */
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
      answers: { ...defaultBehaviours, ...reported },
    });
    Deno.writeTextFileSync(`${this.#folder}/profile.json`, profile);
    for (let count = 0; count < ahead; count++) this.#ready.push(this.#start());
  }

  /** A controller that has done nothing yet. */
  async takeNew(): Promise<Controller> {
    this.#ready.push(this.#start());
    return await this.#ready.shift()!;
  }

  /** Any controller. */
  async take(): Promise<Controller> {
    return this.#used.pop() ?? await this.takeNew();
  }

  /** Hands one back that is alive. */
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
      // Without /readyz to answer, it asks the router nothing that no call is about.
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

/** Asks for something that needs no router. */
async function answers(clients: CsiClients): Promise<boolean> {
  try {
    await clients.identity.call("GetPluginInfo", {}, 1000);
    return true;
  } catch {
    return false;
  }
}
