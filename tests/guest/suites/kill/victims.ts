import { fileURLToPath } from "node:url";
import { lines } from "../../../../tools/lines.ts";
import type { Boundary } from "./boundaries.ts";
import { formatCall } from "./node.ts";
import type { Step } from "./steps.ts";
import type { VictimOrder, VictimWord } from "./victim.ts";

/** Victims that are started ahead of time, as starting one takes longest of all. */
export class Victims<Call extends { readonly method: string }> {
  readonly #statePath: string;
  readonly #waiting: Victim[];

  constructor(statePath: string, ahead: number) {
    this.#statePath = statePath;
    this.#waiting = Array.from({ length: ahead }, () => this.#start());
  }

  /** What a call does when nobody is killed: its steps. The victim lives on, for further calls. */
  async count(call: Call): Promise<readonly Step[]> {
    const [victim] = this.#waiting;
    const word = await victim!.obey({ call: formatCall(call) });
    if (word?.word !== "done" || word.failure !== undefined) {
      throw new Error(`${call.method} failed while its steps were counted: ${JSON.stringify(word)}`);
    }
    return word.steps;
  }

  /** Lets a call be killed there; answers the steps that it had begun. */
  async kill(call: Call, boundary: Boundary, childMs = 0): Promise<readonly string[]> {
    const victim = this.#waiting.shift()!;
    this.#waiting.push(this.#start());
    const order = { call: formatCall(call), boundary, delayMs: boundary.fraction * childMs };
    const word = await victim.obey(order);
    if (word?.word === "done") {
      await victim.end();
      throw new Error(`${call.method} took other steps and was not killed: ${JSON.stringify(word)}`);
    }
    const { signal } = await victim.status;
    if (word?.word === "dying" && signal === "SIGKILL") return word.steps;
    throw new Error(`${call.method} was not killed: ${signal} ${JSON.stringify(word)}`);
  }

  async close(): Promise<void> {
    await Promise.all(this.#waiting.map((victim) => victim.end()));
  }

  #start(): Victim {
    return new Victim(this.#statePath);
  }
}

class Victim {
  readonly #child: Deno.ChildProcess;
  readonly #texts: AsyncGenerator<string>;
  readonly #input: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;
  readonly #ready: Promise<unknown>;

  constructor(statePath: string) {
    const self = fileURLToPath(Deno.mainModule);
    const text = [
      Deno.execPath(),
      "run",
      "--allow-all",
      "--no-config",
      "--no-lock",
      self,
      "victim",
      statePath,
    ];
    // It leads a group of its own, as the first process of a container.
    this.#child = new Deno.Command("setsid", { args: text, stdin: "piped", stdout: "piped" }).spawn();
    this.#texts = lines(this.#child.stdout);
    this.#input = this.#child.stdin.getWriter();
    this.#ready = this.#texts.next();
    this.#ready.catch(() => {});
  }

  get status(): Promise<Deno.CommandStatus> {
    return this.#child.status;
  }

  /** Its last word; undefined when it ended without one. */
  async obey(order: VictimOrder): Promise<VictimWord | undefined> {
    await this.#ready;
    await this.#input.write(new TextEncoder().encode(`${JSON.stringify(order)}\n`));
    const { value } = await this.#texts.next();
    return value === undefined ? undefined : JSON.parse(value) as VictimWord;
  }

  async end(): Promise<void> {
    await this.#ready;
    await this.#input.close();
    await this.#child.status;
  }
}
