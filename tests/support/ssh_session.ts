// A session over a transport without a network, for the tests of the session.
import assert from "node:assert/strict";
import { FakeClock } from "../fakes/clock.ts";
import { fakeCall } from "../fakes/contexts.ts";
import { SeededRandom } from "../fakes/random.ts";
import { type FakeRouter, FakeSshTransport, torn } from "../fakes/ssh_transport.ts";
import { rejectsWith } from "../fakes/volume_errors.ts";
import type { CallContext } from "../../src/volume/ports/system.ts";
import { command, ros } from "../../src/routeros/console/command.ts";
import type { ExecReply } from "../../src/routeros/ssh/exec_request.ts";
import type { CommandEvent } from "../../src/routeros/ssh/observer.ts";
import { Session, type SessionOptions } from "../../src/routeros/ssh/session.ts";
import { ConnectError, type ExecEnd } from "../../src/routeros/ssh/transport.ts";

/** A session, its reports, and its router. */
export interface SessionBench {
  readonly clock: FakeClock;
  readonly ssh: FakeSshTransport;
  readonly session: Session;
  readonly events: CommandEvent[];
  readonly states: string[];
  readonly breaker: string[];
  /** Sends `/test name=…`. */
  run(name: string, options?: RunOptions): Promise<ExecReply>;
}

interface RunOptions {
  readonly key?: string;
  readonly context?: CallContext;
  /** Makes it a long request. */
  readonly timeoutMs?: number;
}

/** Makes one. */
export function bench(options: Partial<SessionOptions> = {}): SessionBench {
  const clock = new FakeClock();
  const ssh = new FakeSshTransport();
  const events: CommandEvent[] = [];
  const states: string[] = [];
  const breaker: string[] = [];
  const session = new Session({
    transport: ssh,
    clock,
    random: new SeededRandom(),
    observer: {
      command: (event) => events.push(event),
      connection: ({ state }) => states.push(state),
      breaker: ({ state }) => breaker.push(state),
    },
    ...options,
  });
  const run: SessionBench["run"] = (name, { key = name, context = fakeCall(clock), ...more } = {}) =>
    session.run({ kind: "test", key, command: command(ros`/test name=${name}`), context, ...more });
  return { clock, ssh, session, events, states, breaker, run };
}

/** Makes a router that answers each command only when the test ends it. */
export function manual(ssh: FakeSshTransport) {
  const open: { readonly name: string; readonly end: (end: ExecEnd) => void }[] = [];
  ssh.router = (text, signal) =>
    new Promise((resolve) => {
      open.push({ name: text.slice(12, -1), end: resolve });
      signal.addEventListener("abort", () => resolve(torn()));
    });
  return open;
}

/** A router that answers nothing until its channel is given up. */
export const frozen: FakeRouter = (_text, signal) =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(torn("half"))));

/** Makes every attempt to connect fail. */
export function refuse(ssh: FakeSshTransport, reason = "ECONNREFUSED", lasting = false): void {
  ssh.onConnect = () => {
    throw new ConnectError(reason, { lasting });
  };
}

/** Makes a transport whose attempts to connect never end by themselves. */
export function hangConnecting(ssh: FakeSshTransport): void {
  ssh.connect = (signal?: AbortSignal) =>
    new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(new Error("aborted"))));
}

/** Opens the breaker; afterwards its first delay, of at most a second, has begun. */
export async function openBreaker({ ssh, run, clock, breaker }: SessionBench): Promise<void> {
  refuse(ssh);
  const failure = rejectsWith(run("first"), "unavailable");
  for (let i = 0; i < 100 && breaker.length === 0; i++) await clock.advance(50);
  await failure;
  assert.deepEqual(breaker, ["open"]);
  assert.equal(ssh.attempts, 3);
}
