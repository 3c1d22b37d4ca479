import assert from "node:assert/strict";
import { eventually } from "../../../tests/support/eventually.ts";
import { fakeCall } from "../../../tests/fakes/contexts.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { Deps, host, prefix } from "../../../tests/support/kernel_connector.ts";
import { withTarget } from "../../../tests/support/nvme_target.ts";
import { identityFor } from "../../simulator/model/exports.ts";
import type { Target } from "../../volume/ports/node_ports.ts";
import { discover } from "../discover.ts";

const [A, B] = ["10.0.0.1", "10.0.0.2"] as const;

function nqnOf(name: string): string {
  return `${prefix}:${name}:1-0a0b0c0d`;
}

function target(name: string, ...addresses: readonly string[]): Target {
  return { nqn: nqnOf(name), addresses, port: 4420 };
}

/** Volumes of a frozen router; their calls have as much time as a kubelet's. */
function eight(deps: Deps): readonly Promise<unknown>[] {
  return Array.from({ length: 8 }, (_, at) => {
    const connecting = deps.connector.connect(target(`frozen-${at}`, A), fakeCall(deps.clock, 120_000));
    connecting.catch(() => {});
    return connecting;
  });
}

async function secondsOf(deps: Deps, work: Promise<unknown>): Promise<number> {
  const beganMs = deps.clock.now();
  await deps.inTime(work);
  return (deps.clock.now() - beganMs) / 1000;
}

Deno.test("connect() of a healthy router's volume does not wait for eight volumes of a frozen router", async () => {
  const deps = new Deps(true, 120_000);
  deps.freeze(A);
  const frozen = eight(deps);
  await deps.clock.advance(0);
  const seconds = await secondsOf(deps, deps.connect(target("healthy", B)));
  assert(seconds <= 1, `${seconds} s`);
  for (const each of frozen) {
    await assert.rejects(deps.inTime(each), refusal("unavailable", /does not answer: .*address=10.0.0.1/));
  }
  const asked = deps.asked.filter((address) => address === A);
  assert.deepEqual([deps.processes.lines.length, asked.length], [1, 1], "one question serves all volumes");
});

Deno.test("connect() waits once for a router that froze right after its answer, and at most 65 s", async () => {
  const deps = new Deps(true, 120_000);
  await deps.connect(target("before", A));
  deps.freeze(A);
  const frozen = eight(deps);
  await deps.clock.advance(0);
  const seconds = await secondsOf(deps, deps.connect(target("healthy", B)));
  assert(seconds > 50 && seconds <= 65, `${seconds} s`);
  const next = await secondsOf(deps, deps.connect(target("another", B)));
  assert(next <= 4, `${next} s`);
  await deps.inTime(Promise.allSettled(frozen));
  assert.equal(deps.processes.lines.length, 4, "of the eight, the kernel met one");
});

Deno.test("connect() of twelve volumes with one dead address of two is as fast as without it", async () => {
  const deps = new Deps(true, 120_000);
  deps.freeze(A);
  const names = Array.from({ length: 12 }, (_, at) => `volume-${at}`);
  const seconds = await secondsOf(deps, Promise.all(names.map((name) => deps.connect(target(name, A, B)))));
  assert(seconds <= 1, `${seconds} s`);
  assert.deepEqual(new Set(deps.addresses), new Set([B]));
});

Deno.test("connect() names the silent address, and not the one that is fine", async () => {
  const deps = new Deps();
  deps.freeze(A);
  deps.refuse = () => "Invalid argument";
  const failing = deps.inTime(deps.connect(target("volume", A, B)));
  await assert.rejects(failing, (error: Error) => {
    assert.match(error.message, /does not answer: \S+ address=10.0.0.1 /);
    assert.doesNotMatch(error.message, /does not answer: \S+ address=10.0.0.2/);
    return true;
  });
});

Deno.test("connect() asks a silent target again after five seconds", async () => {
  const deps = new Deps();
  deps.freeze(A);
  const failing = () => assert.rejects(deps.inTime(deps.connect(target("volume", A))));
  await failing();
  await failing();
  assert.deepEqual(deps.asked, [A]);
  deps.silent.clear();
  deps.hang = () => undefined;
  await deps.clock.advance(5_000);
  await deps.connect(target("volume", A));
  assert.deepEqual([deps.asked, deps.addresses], [[A, A], [A]]);
});

Deno.test("connect() names the address that another program's connect waits for", async () => {
  const deps = new Deps(true, 20_000);
  deps.add({ nqn: "(efault)", address: "10.9.9.9", state: "connecting" });
  deps.script = () => deps.clock.sleep(60_000).then(() => undefined);
  const failing = deps.inTime(deps.connect(target("volume", A)));
  await assert.rejects(failing, refusal("unavailable", /still at another connect: .*connecting=10.9.9.9/));
});

Deno.test("addPaths() adds no path where there is no connection, it is deleted, or it is not offered there", async () => {
  const deps = new Deps();
  const both = target("volume", A, B);
  const add = () => deps.connector.addPaths(both, deps.call);
  deps.offers = () => [both.nqn];
  assert.deepEqual(await add(), []);
  const own = deps.add({ nqn: both.nqn, address: A, ...host });
  deps.set(own, "deleting");
  await add();
  deps.set(own, "connecting");
  deps.offers = () => [];
  const [missing] = await add();
  assert.match(missing?.reason ?? "", /does not offer the subsystem there/);
  assert.deepEqual(deps.addresses, [A]);
  await deps.clock.advance(2_000);
  deps.offers = () => [both.nqn];
  assert.deepEqual([await add(), deps.addresses], [[], [A, B]]);
});

Deno.test("addPaths() lets every connect go before it", async () => {
  const deps = new Deps();
  deps.offers = () => [nqnOf("old")];
  deps.add({ nqn: nqnOf("old"), address: A, ...host });
  let open = () => {};
  deps.hang = (address) => address === "10.0.0.9" ? new Promise((resolve) => open = resolve) : undefined;
  const first = deps.connect(target("first", "10.0.0.9")).catch(() => {});
  await deps.clock.advance(0);
  const adding = deps.connector.addPaths(target("old", A, B), deps.call);
  await deps.clock.advance(0);
  const next = deps.connect(target("next", B));
  await deps.clock.advance(0);
  open();
  await deps.inTime(Promise.all([first, next, adding]));
  const nqns = deps.processes.runs.map(({ options }) => /nqn=[^,:]+:([^,:]+):/.exec(options.input!)![1]);
  assert.deepEqual(nqns, ["first", "next", "old"]);
});

Deno.test("addPaths() makes no connection whose subsystem was disconnected while it waited for its turn", async () => {
  const deps = new Deps();
  const both = target("old", A, B);
  deps.offers = () => [both.nqn];
  deps.add({ nqn: both.nqn, address: A, ...host });
  let open = () => {};
  deps.hang = (address) => address === "10.0.0.9" ? new Promise((resolve) => open = resolve) : undefined;
  const first = deps.connect(target("first", "10.0.0.9")).catch(() => {});
  await deps.clock.advance(0);
  const adding = deps.connector.addPaths(both, deps.call);
  await deps.clock.advance(0);
  await deps.inTime(deps.connector.disconnect(both.nqn, deps.call));
  open();
  await deps.inTime(Promise.all([first, adding]));
  assert.ok(!(await deps.connector.connected()).includes(both.nqn));
});

Deno.test("connect() beside a listener that says nothing connects to a healthy target over TCP", async () => {
  await withTarget(async ({ target: healthy, file, access, where }) => {
    using silent = Deno.listen({ hostname: "127.0.0.2", port: where.port });
    const accepted: Deno.Conn[] = [];
    const accepting = (async () => {
      for await (const connection of silent) accepted.push(connection);
    })();
    const nqn = nqnOf("healthy");
    healthy.serve(nqn, file, { ...access, identity: identityFor(nqn) });
    const deps = new Deps(true, 60_000, discover);
    const to = { nqn, addresses: ["127.0.0.2", "127.0.0.1"], port: where.port };
    const missing = await deps.connect(to);
    assert.deepEqual([missing.map(({ address }) => address), deps.addresses], [["127.0.0.2"], ["127.0.0.1"]]);
    const frozen = deps.connect({ ...to, addresses: ["127.0.0.2"], nqn: nqnOf("frozen") });
    let failed: unknown;
    frozen.catch((error) => failed = error);
    await eventually(async () => {
      await deps.clock.advance(500);
      return failed !== undefined;
    });
    assert.match(String(failed), /does not answer: .*address=127.0.0.2/);
    silent.close();
    await accepting;
    for (const connection of accepted) connection.close();
  });
});

Deno.test("connect() gives both of two routers their turns, where each connect takes longer than an answer counts", async () => {
  const deps = new Deps(true, 120_000);
  deps.script = () => deps.clock.sleep(3_000).then(() => undefined);
  const ended: string[] = [];
  const connect = (name: string, address: string) =>
    deps.connect(target(name, address)).then(() => void ended.push(address));
  await deps.inTime(
    Promise.all(["a", "b", "c", "d"].flatMap((name) => [connect(`${name}1`, A), connect(`${name}2`, B)])),
  );
  assert.deepEqual(ended.slice(0, 6), [A, A, B, A, B, A], "the first of A began before B came");
});
