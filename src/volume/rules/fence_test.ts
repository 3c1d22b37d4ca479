import assert from "node:assert/strict";
import type { FenceMemory } from "../model/staging/state.ts";
import { type FenceInput, judgeFence, type OfferedRead, settleTimesToUnstage } from "./fence.ts";
import type { Connection } from "../ports/node_ports.ts";

const prefix = "nqn.2000-02.com.mikrotik";
const own = `${prefix}:pvc-1:5-0a0b0c0d`;
const later = `${prefix}:pvc-1:6-11111111`;
const sameCounter = `${prefix}:pvc-1:5-99999999`;
const other = `${prefix}:pvc-2:9-22222222`;
const host = { hostNqn: "nqn.2014-08.org.nvmexpress:uuid:node-1", hostId: "node-1" };
const settleMs = 120_000;
const minMs = settleTimesToUnstage * settleMs;
const now = Date.UTC(2026, 0, 1);

function path(change: Partial<Connection> = {}): Connection {
  return {
    nqn: own,
    name: "nvme3",
    state: "connecting",
    stateName: "connecting",
    address: "10.0.0.1",
    port: 4420,
    hostNqn: host.hostNqn,
    hostId: host.hostId,
    ...change,
  };
}

function read(offered: readonly string[] | undefined, change: Partial<OfferedRead> = {}): OfferedRead {
  return { address: "10.0.0.1", port: 4420, offered, ...change };
}

function input(change: Partial<FenceInput> = {}): FenceInput {
  return {
    volumeId: "pvc-1",
    nqn: own,
    connections: [path()],
    host,
    reads: [read([other])],
    unstaging: true,
    memory: undefined,
    nowMs: now,
    settleMs,
    ...change,
  };
}

/** Missing for long enough with the next read. */
const almost: FenceMemory = {
  lastMissedMs: now - 30_000,
  missedForMs: minMs - 10_000,
  askedMs: now - 60_000,
};

const fenced: readonly [string, Partial<FenceInput>][] = [
  ["a later epoch of what waits in a map, though the kernel has given the connection up", {
    connections: [],
    queued: true,
    reads: [read([later])],
  }],
  ["a later epoch", { reads: [read([other, later])] }],
  ["a later epoch, while another address is silent", {
    connections: [path(), path({ address: "10.0.0.2" })],
    reads: [read(undefined), read([later], { address: "10.0.0.2" })],
  }],
  ["an epoch of the same counter that began after the router went back in time", {
    reads: [read([sameCounter])],
  }],
  ["any epoch of a volume that the legacy driver connected", {
    nqn: `${prefix}:pvc-1`,
    connections: [path({ nqn: `${prefix}:pvc-1` })],
    reads: [read([`${prefix}:pvc-1:1-33333333`])],
  }],
  ["what is unstaged, for its absence of ten settle times", { memory: almost }],
  ["what is unstaged, for an empty list of ten settle times", { memory: almost, reads: [read([])] }],
  ["what is unstaged, for an earlier epoch of ten settle times", {
    memory: almost,
    reads: [read([`${prefix}:pvc-1:4-44444444`])],
  }],
  ["a later epoch, though nobody unstages it", { unstaging: false, reads: [read([later])] }],
  ["a call that names a later epoch, and unstages nothing", { unstaging: false, publishedNqn: later }],
  ["a controller that is being deleted, and a later epoch", {
    connections: [path({ state: "deleting" })],
    reads: [read([later])],
  }],
  ["a call that names a later epoch, from a silent target", {
    reads: [read(undefined)],
    publishedNqn: later,
  }],
  ["a call that names a later epoch, of which the target asked at another port says nothing", {
    publishedNqn: later,
  }],
];

for (const [name, change] of fenced) {
  Deno.test(`judgeFence() returns fenced for: ${name}`, () => {
    assert.equal(judgeFence(input(change)).state, "fenced");
  });
}

/** Each of these would be fenced if one thing were different. */
const spared: readonly [string, Partial<FenceInput>][] = [
  ["what waits in a map and is offered again", { connections: [], queued: true, reads: [read([own])] }],
  ["what waits in a map for a router that does not answer", {
    connections: [],
    queued: true,
    reads: [read(undefined)],
  }],
  ["what its target offers, however long it was missed", { memory: almost, reads: [read([own])] }],
  ["what its target offers beside a later epoch", { memory: almost, reads: [read([later, own])] }],
  ["what one of several addresses offers", {
    memory: almost,
    connections: [path(), path({ address: "10.0.0.2" })],
    reads: [read([later]), read([own], { address: "10.0.0.2" })],
  }],
  ["what an address offers that it is not connected through", {
    memory: almost,
    reads: [read([later]), read([own], { address: "10.0.0.9" })],
  }],
  ["what a call names in an earlier epoch", {
    publishedNqn: `${prefix}:pvc-1:4-44444444`,
    reads: [read(undefined)],
  }],
  ["what a call names with the same counter, from a silent target: the call may be old", {
    publishedNqn: sameCounter,
    reads: [read(undefined)],
  }],
  ["what its target offers beside an epoch of the same counter", {
    memory: almost,
    reads: [read([sameCounter]), read([own])],
  }],
  ["what a call names in the same epoch", { publishedNqn: own, reads: [read(undefined)] }],
  ["what a silent target might offer", { memory: almost, reads: [read(undefined)] }],
  ["what nobody was asked about", { memory: almost, reads: [] }],
  ["what another port does not offer", { memory: almost, reads: [read([later], { port: 4421 })] }],
  ["what another address does not offer", {
    memory: almost,
    reads: [read([later], { address: "10.0.0.9" }), read(undefined)],
  }],
  ["what is connected as another host", {
    memory: almost,
    connections: [path({ hostNqn: "nqn.2014-08.org.nvmexpress:uuid:other" })],
    reads: [read([later])],
  }],
  ["what is connected with another host id", {
    memory: almost,
    connections: [path({ hostId: "other" })],
    reads: [read([later])],
  }],
  ["what is connected as another host, even when a call names a later epoch", {
    connections: [path({ hostNqn: "" })],
    publishedNqn: later,
  }],
  ["what one of two paths connects as another host", {
    memory: almost,
    connections: [path(), path({ hostId: "other" })],
    reads: [read([later])],
  }],
  ["what nobody has asked to unstage", { memory: undefined, unstaging: false }],
  ["what nobody asks to unstage any more", {
    memory: { ...almost, askedMs: now - 301_000 },
    unstaging: false,
  }],
  ["what is asked to be unstaged by another clock", {
    memory: { ...almost, askedMs: now + 1_000 },
    unstaging: false,
  }],
  ["what is connected, by a connector that cannot say as whom it asks", {
    memory: almost,
    host: undefined,
    reads: [read([later])],
  }],
];

for (const [name, change] of spared) {
  Deno.test(`judgeFence() does not fence, and starts its clock again for: ${name}`, () => {
    const result = judgeFence(input(change));
    assert.deepEqual([result.state, result.state === "undecided" && result.memory], [
      "undecided",
      undefined,
    ]);
  });
}

const waiting: readonly [string, readonly string[]][] = [
  ["an empty list", []],
  ["a list of others", [other]],
  ["an earlier epoch", [`${prefix}:pvc-1:4-44444444`]],
  ["the form of the legacy driver", [`${prefix}:pvc-1`]],
  ["an epoch of another form", [`${prefix}:pvc-1:7`, `${prefix}:pvc-1:7-zz`, `${prefix}:pvc-1:`]],
  ["a later epoch of a volume whose name begins alike", [`${prefix}:pvc-11:6-11111111`]],
  ["a later epoch of a volume whose name ends alike", [`${prefix}:xpvc-1:6-11111111`]],
  ["a later epoch under another prefix", ["nqn.2024-01.org.example:pvc-1:6-11111111"]],
];

for (const [name, offered] of waiting) {
  Deno.test(`judgeFence() waits for ten settle times on seeing ${name}`, () => {
    assert.deepEqual(judgeFence(input({ reads: [read(offered)] })), {
      state: "undecided",
      why: "its target does not offer it, perhaps only for a while",
      memory: { lastMissedMs: now, missedForMs: 0, askedMs: now },
    });
  });
}

for (const address of ["10.0.0.1", "10.0.0.2"]) {
  Deno.test(`judgeFence() never fences a live controller, at ${address}`, () => {
    const connections = ["10.0.0.1", "10.0.0.2"].map((each) =>
      path({ address: each, state: each === address ? "live" : "connecting" })
    );
    const result = judgeFence(
      input({ connections, memory: almost, reads: [read([later])], publishedNqn: later }),
    );
    assert.deepEqual(result, { state: "live" });
  });
}

Deno.test("judgeFence() finds nothing to fence where nothing is connected", () => {
  assert.deepEqual(judgeFence(input({ connections: [], memory: almost })), { state: "gone" });
});

/** The states after reads at those times, each with what the target offered. */
function history(
  reads: readonly (readonly [number, readonly string[] | undefined])[],
  unstaging = true,
): readonly string[] {
  let memory: FenceMemory | undefined;
  return reads.map(([seconds, offered]) => {
    const result = judgeFence(
      input({ reads: [read(offered)], memory, nowMs: now + seconds * 1000, unstaging }),
    );
    memory = result.state === "undecided" ? result.memory : undefined;
    return result.state;
  });
}

function assertNever(states: readonly string[], message?: string): void {
  assert.deepEqual(new Set(states), new Set(["undecided"]), message);
}

/** Reads at those seconds, none of which offers the volume. */
function missed(...seconds: readonly number[]): readonly (readonly [number, readonly string[]])[] {
  return seconds.map((at) => [at, []] as const);
}

/** Reads every 30 seconds, the first and the last at those seconds, none of which offers the volume. */
function missedFrom(first: number, last: number): ReturnType<typeof missed> {
  return missed(...Array.from({ length: (last - first) / 30 + 1 }, (_, index) => first + 30 * index));
}

Deno.test("judgeFence() never fences a missing volume that is not being unstaged", () => {
  assertNever(history(missedFrom(0, 86_400), false));
});

Deno.test("judgeFence() lets the clock of an unstage run on at other checks, which never fence", () => {
  let memory: FenceMemory | undefined;
  const states = Array.from({ length: 42 }, (_, index) => {
    // The kubelet repeats the call every two minutes; a check runs every half minute.
    const change = { memory, nowMs: now + index * 30_000, unstaging: index % 4 === 0 && index <= 40 };
    const result = judgeFence(input({ ...change, reads: [read([])] }));
    memory = result.state === "undecided" ? result.memory : undefined;
    return result.state;
  });
  assertNever(states);
  assert.deepEqual(memory, {
    lastMissedMs: now + 1_230_000,
    missedForMs: 1_230_000,
    askedMs: now + 1_200_000,
  });
  assert.equal(judgeFence(input({ memory, nowMs: now + 1_240_000 })).state, "fenced");
});

Deno.test("judgeFence() starts the clock again for an unstage after a time without one", () => {
  const memory = { lastMissedMs: now - 30_000, missedForMs: 2 * minMs, askedMs: now - 301_000 };
  const result = judgeFence(input({ memory }));
  assert.deepEqual(result.state === "undecided" && result.memory, {
    lastMissedMs: now,
    missedForMs: 0,
    askedMs: now,
  });
});

Deno.test("judgeFence() waits for the disks of a router that has booted, first none and then some", () => {
  const boot = [[0, undefined], [30, undefined]] as const;
  assertNever(history([...boot, ...missedFrom(60, 600), [630, [other]], [690, [other]], [720, [own]]]));
});

Deno.test("judgeFence() waits again after a toggle of the export, and after a silence", () => {
  for (const between of [[own], undefined]) {
    assertNever(history([...missedFrom(0, 1170), [1200, between], ...missedFrom(1230, 2430)]));
  }
});

Deno.test("judgeFence() is not hurried by a clock that is set forward", () => {
  const jumps = missed(...Array.from({ length: 31 }, (_, index) => 110 * index));
  assertNever(history(jumps), "of each gap a third of the settle time counts");
  assertNever(history([...missedFrom(0, 1200), ...missedFrom(87_000, 87_030)]), "a day later it begins anew");
});

Deno.test("judgeFence() starts again when the clock was set back", () => {
  assertNever(history([...missedFrom(0, 1200), ...missedFrom(1170, 2370)]));
  assert.equal(history([...missed(0), ...missedFrom(-30, 1170), ...missed(1171)]).at(-1), "fenced");
});
