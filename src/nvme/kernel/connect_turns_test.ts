import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { VolumeError } from "../../volume/errors.ts";
import { ConnectTurns } from "./connect_turns.ts";

const { signal } = new AbortController();

/** Turns whose works end when the test says so. */
class Scene {
  readonly clock = new FakeClock();
  readonly turns = new ConnectTurns(this.clock);
  /** The works that began, in order. */
  readonly begun: string[] = [];
  readonly #ends = new Map<string, () => void>();

  begin(name: string, address: string, turn?: "last"): Promise<void> {
    const running = this.turns.run(address, { signal, turn }, () => {
      this.begun.push(name);
      return new Promise<void>((resolve) => this.#ends.set(name, resolve));
    });
    running.catch(() => {});
    return running;
  }

  async end(name: string): Promise<void> {
    this.#ends.get(name)!();
    await this.clock.advance(0);
  }

  /** Begins a work of that address whose child is left behind; returns what ends the child. */
  async leave(address: string): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const running = this.turns.run(address, { signal }, (leave) => {
      leave(promise);
      return Promise.reject(new VolumeError("deadline", "Cannot wait"));
    });
    running.catch(() => {});
    await this.clock.advance(0);
    return resolve;
  }
}

Deno.test("turns go round by address, one at a time", async () => {
  const scene = new Scene();
  for (const name of ["a1", "a2", "a3", "b1", "b2"]) void scene.begin(name, name[0]!);
  for (let at = 0; at < 5; at++) {
    await scene.clock.advance(0);
    assert.equal(scene.begun.length, at + 1);
    await scene.end(scene.begun.at(-1)!);
  }
  assert.deepEqual(scene.begun, ["a1", "a2", "b1", "a3", "b2"]);
});

Deno.test("an address whose last turn was long goes after the others, and a last turn after all", async () => {
  const scene = new Scene();
  void scene.begin("slow", "a");
  await scene.clock.advance(60_000);
  void scene.begin("last", "b", "last");
  void scene.begin("a", "a");
  void scene.begin("b1", "b");
  void scene.begin("b2", "b");
  for (const name of ["slow", "b1", "b2", "a", "last"]) await scene.end(name);
  assert.deepEqual(scene.begun, ["slow", "b1", "b2", "a", "last"]);
});

Deno.test("a turn ends with its child, also where its call has gone, or after 75 s", async () => {
  const scene = new Scene();
  const end = await scene.leave("a");
  void scene.begin("next", "b");
  await scene.clock.advance(30_000);
  assert.deepEqual(scene.begun, []);
  end();
  await scene.clock.advance(0);
  assert.deepEqual(scene.begun, ["next"]);
  await scene.end("next");
  await scene.leave("a");
  void scene.begin("late", "b");
  await scene.clock.advance(74_999);
  assert.deepEqual(scene.begun, ["next"]);
  await scene.clock.advance(1);
  assert.deepEqual(scene.begun, ["next", "late"]);
});

Deno.test("at most four children are left behind: the next turn begins when one of them ends", async () => {
  const scene = new Scene();
  const ends: (() => void)[] = [];
  for (let at = 0; at < 4; at++) {
    ends.push(await scene.leave("a"));
    await scene.clock.advance(75_000);
  }
  void scene.begin("fifth", "b");
  await scene.clock.advance(200_000);
  assert.deepEqual(scene.begun, []);
  ends[2]!();
  await scene.clock.advance(0);
  assert.deepEqual(scene.begun, ["fifth"]);
});

Deno.test("a call that ends while it waits gives its turn to the next one", async () => {
  const scene = new Scene();
  void scene.begin("first", "a");
  const gone = new AbortController();
  const waiting = scene.turns.run("b", { signal: gone.signal }, () => Promise.resolve());
  void scene.begin("next", "c");
  gone.abort(new VolumeError("cancelled", "The client went away"));
  await assert.rejects(waiting, refusal("cancelled", /went away/));
  await scene.end("first");
  assert.deepEqual(scene.begun, ["first", "next"]);
});
