import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { SeededRandom } from "../../tests/fakes/random.ts";
import { ApiError } from "./api.ts";
import { Election, leadMs } from "./election.ts";
import type { LeaseState, LeaseStore } from "./lease.ts";

/** A lease in memory, with the API server's behaviour. */
class StatusStore {
  state: LeaseState | undefined;
  #version = 0;

  write(state: Omit<LeaseState, "version">, before: LeaseState | undefined): LeaseState {
    if (this.state?.version !== before?.version) throw new ApiError(409, "changed");
    this.state = { ...state, version: String(++this.#version) };
    return this.state;
  }
}

/** The behaviour of a candidate's requests. */
interface Link {
  /** Throws an error before the request reaches the store. */
  before?: () => void;
  /** Throws an error in place of the answer. */
  after?: () => void;
  /** How long each half of a request takes. */
  delayMs?: () => number;
}

/** What a request meets while the API server cannot be reached. */
function isGone(): never {
  throw new ApiError(0, "the network is gone");
}

function linked(board: StatusStore, clock: FakeClock, link: Link): LeaseStore {
  const through = async <T>(work: () => T, signal: AbortSignal): Promise<T> => {
    link.before?.();
    await clock.sleep(link.delayMs?.() ?? 0, signal).catch((error) => {
      throw new ApiError(0, String(error));
    });
    const answer = work();
    await clock.sleep(link.delayMs?.() ?? 0, signal).catch((error) => {
      throw new ApiError(0, String(error));
    });
    link.after?.();
    return answer;
  };
  return {
    read: (signal) => through(() => board.state, signal),
    write: (state, before, signal) => through(() => board.write(state, before), signal),
  };
}

/** The parts of a candidate without a race. */
function alone(clock: FakeClock, store: LeaseStore, identity = "a") {
  return { store, identity, clock, random: new SeededRandom(), report: () => {} };
}

/** Candidates for one lease, and those of them that lead. */
class Race {
  readonly clock = new FakeClock();
  readonly board = new StatusStore();
  readonly leading = new Set<string>();
  readonly led: string[] = [];
  readonly reported: string[] = [];
  readonly #stops: (() => Promise<void>)[] = [];
  readonly #random: SeededRandom;

  constructor(seed = 1) {
    this.#random = new SeededRandom(seed);
  }

  /** Lets a candidate take part; returns a function that stops it. */
  enter(identity: string, link: Link = {}, unwindMs = 0): () => Promise<void> {
    const stop = new AbortController();
    const election = new Election({
      store: linked(this.board, this.clock, link),
      identity,
      clock: this.clock,
      random: this.#random,
      report: (message) => this.reported.push(`${identity}: ${message}`),
    });
    const lead = async (signal: AbortSignal) => {
      assert.deepEqual([...this.leading], [], `${identity} leads beside another one`);
      this.leading.add(identity);
      this.led.push(identity);
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      await this.clock.sleep(unwindMs);
      this.leading.delete(identity);
    };
    const over = election.run(lead, stop.signal);
    const end = async () => {
      stop.abort(new Error("stopped"));
      await this.clock.advance(10_000);
      await over;
    };
    this.#stops.push(end);
    return end;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const stop of this.#stops) await stop();
  }
}

Deno.test("of two candidates one leads, and goes on leading", async () => {
  await using race = new Race();
  race.enter("a");
  race.enter("b");
  await race.clock.advance(10 * 60_000);
  assert.deepEqual(race.led.length, 1);
  assert.deepEqual([...race.leading], race.led);
});

Deno.test("a leader that stops gives up the lead at once", async () => {
  await using race = new Race();
  const stop = race.enter("a");
  await race.clock.advance(1_000);
  race.enter("b");
  await race.clock.advance(10_000);
  const stopping = stop();
  await race.clock.advance(4_000);
  await stopping;
  assert.deepEqual(race.led, ["a", "b"]);
  assert.deepEqual([...race.leading], ["b"]);
  assert.equal(race.board.state?.transitions, 1);
});

Deno.test("a leader that cannot renew stops before another one may replace it", async () => {
  await using race = new Race();
  const link: Link = {};
  race.enter("a", link, 4_000);
  await race.clock.advance(60_000);
  race.enter("b");
  await race.clock.advance(10_000);
  link.before = isGone;
  await race.clock.advance(leadMs + 4_000);
  assert.deepEqual([...race.leading], []);
  await race.clock.advance(15_000);
  assert.deepEqual(race.led, ["a", "b"]);
});

Deno.test("a lost lead is not given back early, because the last request may still be under way", async () => {
  await using race = new Race();
  const link: Link = {};
  race.enter("a", link);
  await race.clock.advance(10_000);
  link.before = isGone;
  await race.clock.advance(leadMs + 500);
  assert.deepEqual([...race.leading], []);
  delete link.before;
  await race.clock.advance(0);
  assert.equal(race.board.state?.holder, "a");
});

Deno.test("a leader gets the end of its lead with each renewal, and a candidate the name of the leader", async () => {
  const clock = new FakeClock();
  const board = new StatusStore();
  const until: number[] = [];
  const holders: string[] = [];
  const stop = new AbortController();
  const both = ["a", "b"].map((identity) =>
    new Election({
      ...alone(clock, linked(board, clock, {}), identity),
      leads: (untilMs) => until.push(untilMs - clock.monotonicMs()),
      heldBy: (holder) => holders.push(holder),
    }).run((signal) => clock.sleep(3_600_000, signal), stop.signal)
  );
  await clock.advance(60_000);
  assert.ok(until.length > 20, `${until.length} renewals`);
  assert.deepEqual([...new Set(until)], [leadMs]);
  assert.deepEqual([...new Set(holders)], [board.state?.holder]);
  stop.abort(new Error("stopped"));
  await clock.advance(10_000);
  await Promise.all(both);
});

Deno.test("a leader that could not renew learns whether another one has led since", async () => {
  for (const [between, heard] of [[undefined, []], ["other", ["other"]], ["", [""]]] as const) {
    const clock = new FakeClock();
    const board = new StatusStore();
    const holders: string[] = [];
    const link: Link = {};
    const stop = new AbortController();
    const over = new Election({
      ...alone(clock, linked(board, clock, link)),
      heldBy: (holder) => holders.push(holder),
    }).run((signal) => clock.sleep(3_600_000, signal), stop.signal);
    await clock.advance(5_000);
    link.before = isGone;
    await clock.advance(30_000);
    if (between !== undefined) board.state = { ...board.state!, holder: between, version: "other" };
    delete link.before;
    await clock.advance(5_000);
    assert.deepEqual([...new Set(holders)], heard);
    stop.abort(new Error("stopped"));
    await clock.advance(5_000);
    await over;
  }
});

Deno.test("renewals whose answers are lost keep the lease, and do not keep the leader forever", async () => {
  await using race = new Race();
  const link: Link = {};
  race.enter("a", link);
  await race.clock.advance(5_000);
  link.after = () => {
    throw new ApiError(0, "the answer was lost");
  };
  await race.clock.advance(leadMs + 3_000);
  assert.deepEqual([...race.leading], []);
  delete link.after;
  await race.clock.advance(30_000);
  assert.deepEqual([...race.leading], ["a"]);
});

Deno.test("a lease that is deleted gives nobody a second lead before the first one has ended", async () => {
  await using race = new Race();
  const link: Link = {};
  race.enter("a", link);
  await race.clock.advance(5_000);
  race.enter("b");
  await race.clock.advance(5_000);
  assert.deepEqual([...race.leading], ["a"]);
  // A person deletes the lease so that the other one takes over at once.
  link.before = isGone;
  race.board.state = undefined;
  for (let waitedMs = 0; waitedMs < 30_000; waitedMs += 100) {
    await race.clock.advance(100);
    assert.ok(race.leading.size < 2, `two led after ${waitedMs} ms`);
  }
  assert.deepEqual([...race.leading], ["b"]);
});

Deno.test("a lease that another process has taken ends the lead at once", async () => {
  await using race = new Race();
  race.enter("a");
  await race.clock.advance(5_000);
  race.board.state = { ...race.board.state!, holder: "somebody", version: "other" };
  await race.clock.advance(3_000);
  assert.deepEqual([...race.leading], []);
});

Deno.test("the lease of a process that is gone is taken once it was not renewed for its whole duration", async () => {
  await using race = new Race();
  race.board.state = { holder: "gone", durationSeconds: 15, transitions: 3, version: "9" };
  race.enter("a");
  await race.clock.advance(14_000);
  assert.deepEqual(race.led, []);
  await race.clock.advance(5_000);
  assert.deepEqual(race.led, ["a"]);
  assert.equal(race.board.state?.transitions, 4);
});

Deno.test("an invalid duration is ignored", async () => {
  await using race = new Race();
  race.board.state = { holder: "other", durationSeconds: 0, transitions: 0, version: "9" };
  race.enter("a");
  await race.clock.advance(14_000);
  assert.deepEqual(race.led, []);
});

Deno.test("a process that may not take part warns once, and does not lead", async () => {
  await using race = new Race();
  race.enter("a", {
    before: () => {
      throw new ApiError(403, "may not get leases");
    },
  });
  await race.clock.advance(60_000);
  assert.deepEqual(race.led, []);
  assert.deepEqual(race.reported, ["a: cannot take part in the leader election"]);
});

Deno.test("work that ends by itself gives the lead back, and gets it again", async () => {
  const clock = new FakeClock();
  const board = new StatusStore();
  const stop = new AbortController();
  let runs = 0;
  const reported: string[] = [];
  const election = new Election({
    ...alone(clock, linked(board, clock, {})),
    report: (message) => reported.push(message),
  });
  const over = election.run(() => Promise.reject(new Error(`run ${++runs}`)), stop.signal);
  await clock.advance(20_000);
  stop.abort(new Error("stopped"));
  await clock.advance(5_000);
  await over;
  assert.ok(runs > 1, `${runs} runs`);
  assert.equal(board.state?.holder, "");
  assert.ok(reported.includes("the loops have ended by themselves"));
});

for (let seed = 1; seed <= 40; seed++) {
  Deno.test(`two processes never lead at once, however requests go: seed ${seed}`, async () => {
    const race = new Race(seed);
    const chance = new SeededRandom(seed);
    const fail = (often: number) => () => {
      if (chance.fraction() < often) throw new ApiError(chance.fraction() < 0.5 ? 0 : 500, "it went wrong");
    };
    const links = ["a", "b", "c"].map((identity) => {
      const link: Link = {
        before: fail(0.3),
        after: fail(0.2),
        delayMs: () => chance.fraction() < 0.1 ? chance.fraction() * 20_000 : chance.fraction() * 500,
      };
      race.enter(identity, link, chance.fraction() * 4_000);
      return link;
    });
    for (let minute = 0; minute < 20; minute++) {
      const link = links[Math.floor(chance.fraction() * links.length)]!;
      const { before } = link;
      link.before = fail(1);
      await race.clock.advance(chance.fraction() * 60_000);
      link.before = before!;
      await race.clock.advance(30_000);
    }
    assert.ok(race.led.length > 1, "somebody led");
    for (const link of links) Object.assign(link, { before: undefined, after: undefined, delayMs: () => 0 });
    await race[Symbol.asyncDispose]();
    assert.deepEqual([...race.leading], []);
  });
}
