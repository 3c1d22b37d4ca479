// The probe measures beside a control, or gives no answer: what is lost, silent, gone or somebody else's is never taken
// for an answer, and every reason says what to do next.
import assert from "node:assert/strict";
import type { HostLink, HostName } from "../../src/doctor/probe/question.ts";
import type { RouterBehaviours } from "../../src/router_profile/answers.ts";
import type { ExecEnd, SshTransport } from "../../src/routeros/ssh/transport.ts";
import type { Behaviours } from "../../src/simulator/behaviours.ts";
import type { Router } from "../../src/simulator/model/router.ts";
import { behavioursOf, profiles } from "../../src/simulator/profile.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import { FakeHostSide } from "../fakes/host_side.ts";
import { isLong } from "../support/long.ts";
import { type ProbeBench, withDirectBench } from "./_probe_bench.ts";

const mebibyte = 1n << 20n;
const next = /probe again|by hand|make no copies/i;

/** Tests a probe, after which nothing is left. */
function probeTest(
  name: string,
  behaviours: Partial<Behaviours>,
  test: (bench: ProbeBench) => Promise<void>,
): void {
  Deno.test(name, () =>
    withDirectBench({ behaviours }, async (bench) => {
      const before = bench.state();
      await test(bench);
      await bench.router.model.clock.sleep(Number(behaviours.unexport ?? 0) || 0);
      assert.deepEqual(bench.state(), before);
    }));
}

type Probed = Awaited<ReturnType<ProbeBench["probe"]>>;

function assertNoAnswer(
  { profile, unanswered }: Probed,
  name: keyof RouterBehaviours,
  reason: RegExp,
): void {
  assert.equal(profile.answers[name], undefined, name);
  assert.match(unanswered[name]!, reason);
  assert.match(unanswered[name]!, next);
}

/** Runs a command as it is sent, or does something before it or behind it. */
type Around = (text: string, run: () => Promise<ExecEnd>) => Promise<ExecEnd>;

/** A transport that lets a test act around the commands. */
function around(inner: SshTransport, act: Around): SshTransport {
  return {
    target: inner.target,
    async connect(signal) {
      const { closed, close, exec } = await inner.connect(signal);
      return {
        closed,
        close,
        exec: (command, signal) => act(command.text, () => exec(command, signal)),
      };
    },
  };
}

/** Which question is being asked. */
class Question {
  name = "";
  readonly onProgress = (line: string) => {
    this.name = /asking: (\w+)/.exec(line)?.[1] ?? this.name;
  };
}

/** What happens to a connection once its export is off. */
interface Accident {
  /** The exports whose connections may meet it. */
  readonly in: RegExp;
  readonly error: "unavailable" | "deadline";
  /** Whether the connections to other exports meet it too. */
  readonly all: boolean;
  /** How many connections meet it. */
  readonly times: number;
}

/** A host whose connections are lost, or go silent, by chance in the moment of a withdrawal. */
class UnluckyHost extends FakeHostSide {
  readonly #router: Router;
  readonly #accident: Accident;
  #left: number;
  #isDown = false;

  constructor(router: Router, accident: Accident) {
    super(router);
    this.#router = router;
    this.#accident = accident;
    this.#left = accident.times;
  }

  override async connect(nqn: string, host: HostName): Promise<HostLink> {
    const link = await super.connect(nqn, host);
    if (!this.#accident.in.test(nqn)) return link;
    this.#isDown = false;
    let isMet = false;
    const read = (...args: Parameters<HostLink["read"]>) => {
      if (!isMet && this.#left > 0 && this.#isOff(nqn)) {
        isMet = true;
        this.#left--;
        this.#isDown = true;
      }
      const isDown = isMet || this.#isDown && this.#accident.all;
      if (!isDown) return link.read(...args);
      return Promise.reject(new VolumeError(this.#accident.error, "Cannot read from the export"));
    };
    return { ...link, read };
  }

  #isOff(nqn: string): boolean {
    return this.#router.disks.list().some((disk) => disk.nqn === nqn && !disk.exported);
  }
}

const withdrawn = /-cut(-control)?$/;
const unclear: readonly (readonly [what: string, accident: Accident, reason: RegExp])[] = [
  [
    "every connection is lost",
    { in: withdrawn, error: "unavailable", all: true, times: Infinity },
    /stayed on ended as well/,
  ],
  [
    "a connection is silent",
    { in: withdrawn, error: "deadline", all: false, times: Infinity },
    /was silent to its host/,
  ],
];

for (const [what, accident, reason] of unclear) {
  probeTest(
    `the probe learns nothing of a withdrawal during which ${what}`,
    { unexport: 5000 },
    async (bench) => {
      const probed = await bench.probe({ host: new UnluckyHost(bench.router.model, accident) });
      assertNoAnswer(probed, "unexport", reason);
    },
  );
}

probeTest(
  "one connection that is reset by chance makes no withdrawal quick",
  { unexport: 5000 },
  async (bench) => {
    const reset: Accident = { in: /-cut$/, error: "unavailable", all: false, times: 1 };
    const { profile: { answers }, unanswered } = await bench.probe({
      host: new UnluckyHost(bench.router.model, reset),
    });
    assert.ok(Number(answers.unexport) >= 5000, unanswered["unexport"] ?? String(answers.unexport));
  },
);

probeTest(
  "one connection that is reset by chance does not end the sessions of a router that refuses commands",
  { unexport: "refuses-commands" },
  async (bench) => {
    const reset: Accident = { in: /-cut$/, error: "unavailable", all: false, times: 1 };
    const probed = await bench.probe({ host: new UnluckyHost(bench.router.model, reset) });
    assertNoAnswer(probed, "unexport", /and another ended its session/);
  },
);

probeTest(
  "an answer to a withdrawal that comes late makes no withdrawal quick",
  { unexport: 5000 },
  async (bench) => {
    const { clock } = bench.router.model;
    const question = new Question();
    const transport = around(bench.transport, async (text, run) => {
      const end = await run();
      if (question.name === "unexport" && text.includes('nvme-tcp-export="no"')) await clock.sleep(8000);
      return end;
    });
    const { profile: { answers }, unanswered } = await bench.probe({ transport, ...question });
    assert.ok(Number(answers.unexport) >= 5000, unanswered["unexport"] ?? String(answers.unexport));
  },
);

/** What is asked, and the change that the router makes to no disk meanwhile. */
const changes: readonly (readonly [name: keyof RouterBehaviours, change: RegExp])[] = [
  ["unexport", /nvme-tcp-export="no"/],
  ["grow", /file-size="2097152"/],
  ["sideEffects", /comment="changed"/],
];

for (const [name, change] of changes) {
  probeTest(`a change of no disk does not answer ${name}`, {}, async (bench) => {
    const { disks } = bench.router.model;
    const question = new Question();
    const transport = around(bench.transport, (text, run) => {
      const slot = /\/disk set \[find where slot="([^"]+)"\]/.exec(text)?.[1];
      const disk = disks.list().find((disk) => disk.slot === slot);
      const isIt = question.name === name && disk !== undefined && change.test(text);
      if (isIt) disks.replace({ ...disk, slot: `${slot}-moved` });
      return run();
    });
    assertNoAnswer(await bench.probe({ transport, ...question }), name, /changed no scratch disk/);
  });
}

probeTest(
  "a free space that moves in coarse steps says nothing of copies",
  { freeStep: 1 << 30, allocation: "full", copyReturns: "at-once" },
  async (bench) => {
    const probed = await bench.probe();
    assert.ok(probed.progress.some((line) => /written to it made the free space fall by/.test(line)));
    assertNoAnswer(probed, "copyReturns", /it may still have run/);
  },
);

/** How long the answer to each copy of a large disk takes, in milliseconds. */
async function probeTimed(bench: ProbeBench, largeMs: readonly number[]): Promise<Probed> {
  const { clock } = bench.router.model;
  const left = [...largeMs];
  const transport = around(bench.transport, async (text, run) => {
    const end = await run();
    if (/\/file copy "[^"]*-source\.img"/.test(text)) await clock.sleep(left.shift()!);
    return end;
  });
  return await bench.probe({ transport });
}

probeTest(
  "one copy that is answered late by chance is no proof of a whole one",
  { allocation: "full", copyReturns: "at-once" },
  async (bench) => {
    assertNoAnswer(await probeTimed(bench, [2000, 5, 5]), "copyReturns", /it may still have run/);
  },
);

probeTest(
  "large copies that all take their time prove a whole one",
  { allocation: "full" },
  async (bench) => {
    const { profile: { answers }, unanswered } = await probeTimed(bench, [2000, 1800, 2100]);
    assert.equal(answers.copyReturns, "when-done", unanswered["copyReturns"]);
  },
);

probeTest(
  "a copy that is whole in small files, and late in disks that were written, is found to be late",
  { copyReturns: "at-once" },
  async (bench) => {
    const { delays } = bench.router.model;
    const transport = around(bench.transport, (text, run) => {
      delays.copyMs = text.includes("-tail.img") ? 2000 : 0;
      return run();
    });
    const { profile: { answers }, unanswered } = await bench.probe({ transport });
    assert.equal(answers.copyReturns, "at-once", unanswered["copyReturns"]);
  },
);

/** A host that sees other things than those at the exports with such an NQN. */
class OtherEyes extends FakeHostSide {
  readonly #in: RegExp;
  readonly #differs: Partial<HostLink>;

  constructor(router: Router, where: RegExp, differs: Partial<HostLink>) {
    super(router);
    this.#in = where;
    this.#differs = differs;
  }

  override async connect(nqn: string, host: HostName): Promise<HostLink> {
    return { ...await super.connect(nqn, host), ...this.#in.test(nqn) ? this.#differs : {} };
  }
}

probeTest("a copy that is short when the router has answered is found to be late", {}, async (bench) => {
  const short = { namespaceBytes: () => Promise.resolve(mebibyte) };
  const host = new OtherEyes(bench.router.model, /-tail1$/, short);
  const { profile: { answers }, unanswered } = await bench.probe({ host });
  assert.equal(answers.copyReturns, "at-once", unanswered["copyReturns"]);
});

probeTest("a copy that never holds what was written is no answer", {}, async (bench) => {
  const blank = { read: (_lba: bigint, blocks: number) => Promise.resolve(new Uint8Array(512 * blocks)) };
  const host = new OtherEyes(bench.router.model, /-tail1$/, blank);
  assertNoAnswer(await bench.probe({ host }), "copyReturns", /does not hold what was written/);
});

probeTest("what others write is not taken for a copy that goes on", {}, async (bench) => {
  const { model } = bench.router;
  const before = model.pools()[0]!;
  const question = new Question();
  const transport = around(bench.transport, (_text, run) => {
    if (question.name === "copyReturns") {
      const { pool, ...disk } = model.pools()[0]!;
      model.disks.replace({ ...disk, pool: { ...pool, otherBytes: pool.otherBytes + 200n * mebibyte } });
    }
    return run();
  });
  assertNoAnswer(await bench.probe({ transport, ...question }), "copyReturns", /it may still have run/);
  model.disks.replace(before);
});

/** How connections break: all that there are, at one of the commands of the host. */
type Break = "reset" | "silent";

/** How many commands of a kind count of each connection: more come where a host reads without a pause, or fills a disk. */
const counted = 3;

/** A host whose connections all break at one of its commands; those that it makes later work. */
class BreakingHost extends FakeHostSide {
  /** The commands that count so far. */
  commands = 0;
  readonly #router: Router;
  readonly #how: Break;
  readonly #at: number;
  #generation = 0;

  constructor(router: Router, how: Break, at: number) {
    super(router);
    this.#router = router;
    this.#how = how;
    this.#at = at;
  }

  override async connect(nqn: string, host: HostName): Promise<HostLink> {
    this.#count();
    const generation = this.#generation;
    const link = await super.connect(nqn, host);
    const counts = new Map<string, number>();
    const via = <Result>(kind: string, command: () => Promise<Result>): Promise<Result> => {
      const count = (counts.get(kind) ?? 0) + 1;
      counts.set(kind, count);
      if (count <= counted) this.#count();
      return generation === this.#generation ? command() : this.#broken();
    };
    return {
      ...link,
      namespaceBytes: (context) => via("size", () => link.namespaceBytes(context)),
      namespaceIdentity: (context) => via("identity", () => link.namespaceIdentity(context)),
      read: (...args) => via("read", () => link.read(...args)),
      write: (...args) => via("write", () => link.write(...args)),
      flush: (context) => via("flush", () => link.flush(context)),
    };
  }

  #count(): void {
    if (++this.commands === this.#at) this.#generation++;
  }

  async #broken(): Promise<never> {
    if (this.#how === "reset") throw new VolumeError("unavailable", "Cannot ask the target: it reset");
    await this.#router.clock.sleep(10_000);
    throw new VolumeError("deadline", "Cannot ask the target: no answer");
  }
}

const every = isLong ? 1 : 3;

for (const how of ["reset", "silent"] as const) {
  Deno.test(`connections that are ${how}, whenever that is, leave nothing and no wrong answer`, async () => {
    const behaviours = { unexport: 5000, allocation: "full" } as const;
    const truth = { ...behavioursOf(profiles[0]!, behaviours), limits: "enough" };
    let answered = 0, probes = 0;
    for (let at = 1, commands = at; at <= commands; at += every) {
      await withDirectBench({ behaviours }, async (bench) => {
        const before = bench.state();
        const host = new BreakingHost(bench.router.model, how, at);
        const { profile: { answers: { unexport = 5000, ...answers } } } = await bench.probe({ host });
        commands = host.commands;
        answered += Object.keys(answers).length;
        probes++;
        const wrong = Object.entries(answers).filter(([name, answer]) =>
          answer !== truth[name as keyof typeof truth]
        );
        assert.deepEqual(wrong, [], `at command ${at} of the host`);
        const ms = Number(unexport);
        assert.ok(ms >= 5000 && ms < 20_000, `${unexport} at command ${at} of the host`);
        await bench.router.model.clock.sleep(5000);
        assert.deepEqual(bench.state(), before, `at command ${at} of the host`);
      });
    }
    assert.ok(answered > 3 * probes, `${answered} answers to ${probes} probes`);
  });
}
