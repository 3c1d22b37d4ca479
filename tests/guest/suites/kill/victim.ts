// The process that is killed: `victim STATE` says that it is ready, makes the calls that it is told to make, one a line, and
// kills itself where it is told to.

import { lines } from "../../../../tools/lines.ts";
import type { Boundary } from "./boundaries.ts";
import { listenToSteps, type Step } from "./steps.ts";

/** What a victim is told to do. */
export interface VictimOrder {
  /** As {@linkcode formatCall} writes it. */
  readonly call: string;
  readonly boundary?: Boundary;
  /** How long after its start the tool runs in whose midst it dies. */
  readonly delayMs?: number;
}

/** What a victim says. */
export type VictimWord =
  | { readonly word: "ready" }
  /** About to kill itself: the steps that it began. */
  | { readonly word: "dying"; readonly steps: readonly string[] }
  /** It has made the call, which failed or did not. */
  | { readonly word: "done"; readonly steps: readonly Step[]; readonly failure?: string };

/**
 * Serves as a victim until it is killed or has nothing more to do.
 *
 * @param open starts the node, and returns what makes a call that {@linkcode formatCall} has written
 */
export async function serveVictim(open: () => (call: string) => Promise<void>): Promise<void> {
  const process = new Victim();
  listenToSteps(process);
  const make = open();
  say({ word: "ready" });
  for await (const line of lines(Deno.stdin.readable)) {
    const order = JSON.parse(line) as VictimOrder;
    process.obey(order);
    const failure = await make(order.call).then(() => undefined, String);
    process.before("the answer");
    say({ word: "done", steps: process.steps.slice(0, -1), ...(failure === undefined ? {} : { failure }) });
  }
}

class Victim {
  #order: VictimOrder | undefined;
  steps: Step[] = [];

  obey(order: VictimOrder): void {
    this.#order = order;
    this.steps = [];
  }

  before(name: string): void {
    this.steps.push({ name, childMs: undefined });
    if (this.#order?.boundary?.moment === "before" && this.#isThere()) this.#die(Deno.pid);
  }

  during(name: string, ended: Promise<unknown>): void {
    const index = this.steps.length - 1;
    const started = performance.now();
    ended.then(() => this.steps[index] = { name, childMs: performance.now() - started });
    const { boundary, delayMs } = this.#order ?? {};
    if (boundary === undefined || boundary.moment === "before" || !this.#isThere()) return;
    // It leads its own group, to which its children belong.
    const die = () => this.#die(boundary.moment === "child dies" ? -Deno.pid : Deno.pid);
    setTimeout(die, delayMs);
    ended.then(die);
  }

  #isThere(): boolean {
    return this.#order?.boundary?.step === this.steps.length;
  }

  #die(pid: number): void {
    say({ word: "dying", steps: this.steps.map(({ name }) => name) });
    Deno.kill(pid, "SIGKILL");
  }
}

function say(word: VictimWord): void {
  let bytes = new TextEncoder().encode(`${JSON.stringify(word)}\n`);
  while (bytes.length > 0) bytes = bytes.subarray(Deno.stdout.writeSync(bytes));
}
