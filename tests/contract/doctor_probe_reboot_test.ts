// A probe finds out, in two runs, how a reboot of the router affects an export. The disk that stays between the runs is
// named and is removed, however the runs end. Over real SSH.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { isDeepStrictEqual } from "node:util";
import { nvmeHostSide } from "../../src/cli/doctor/doctor.ts";
import type { Behaviours } from "../../src/simulator/behaviours.ts";
import type { Simulator, SimulatorOptions } from "../../src/simulator/simulator.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import { type ProbeBench, type RunOptions, withProbeBench } from "./_probe_bench.ts";
import { WatchedTransport } from "./_watched_transport.ts";

type Bench = ProbeBench<Simulator>;

function rebootTest(
  name: string,
  test: (bench: Bench) => Promise<void>,
  options: Partial<SimulatorOptions> = {},
  scale?: number,
): void {
  Deno.test(name, () => withProbeBench(options, test, scale));
}

async function reboot({ router }: Bench, disksLateMs = 0): Promise<void> {
  await control(router, "POST /reboot", { downMs: 2000, disksLateMs });
  await router.model.clock.sleep(4000);
}

function scratchDisks({ router }: Bench) {
  return router.model.disks.list().filter(({ filePath }) => filePath !== "");
}

async function rejectsWith(probing: Promise<unknown>, wording: RegExp): Promise<void> {
  await assert.rejects(probing, (error) => VolumeError.is(error) && wording.test(error.message));
}

/** A probe that stops as soon as it has removed what earlier probes left. */
async function cleanUp(bench: Bench): Promise<readonly string[]> {
  const stop = new AbortController();
  const shown: string[] = [];
  const onProgress = (line: string) => {
    if (line.includes("what an earlier probe left")) shown.push(line);
    if (line.includes("everything made is called")) stop.abort(new VolumeError("cancelled", "enough"));
  };
  await rejectsWith(bench.probe({ signal: stop.signal, onProgress }), /enough/);
  return shown;
}

for (const identity of ["kept", "new-per-export"] as const) {
  for (const bootIdentity of ["kept", "new"] as const) {
    const behaviours: Partial<Behaviours> = { identity, bootIdentity };
    rebootTest(
      `the probe tells a boot's identity (${bootIdentity}) from that of a toggle (${identity})`,
      async (bench) => {
        const before = bench.state();
        const said = (await bench.prepare()).join("\n");
        const [disk, ...more] = scratchDisks(bench);
        assert.deepEqual(more, []);
        assert.ok(said.includes(`disk ${disk?.slot} on ${disk?.filePath} stays`), said);
        await reboot(bench);
        const { profile, progress } = await bench.probe({ reboot: "after" });
        assert.equal(profile.answers.bootIdentity, bootIdentity);
        assert.ok(
          progress.some((line) => /the scratch disk was back \d+ s after the boot at the latest/.test(line)),
        );
        assert.ok(
          progress.some((line) => /before the boot: uuid=\w+ .* serial=\w+; after it: uuid=/.test(line)),
        );
        assert.deepEqual(bench.state(), before);
        assert.deepEqual(bench.router.violations.list(), []);
      },
      { behaviours },
    );
  }
}

rebootTest(
  "the probe tells a boot's identity through real NVMe/TCP connections",
  async (bench) => {
    const host = nvmeHostSide("127.0.0.1", bench.router.nvmePort!);
    await bench.prepare({ host });
    await reboot(bench);
    const { profile } = await bench.probe({ host, reboot: "after" });
    assert.equal(profile.answers.bootIdentity, "kept");
  },
  { behaviours: { bootIdentity: "kept" }, exporter: "tcp" },
  20,
);

rebootTest(
  "a probe after a reboot waits for disks that come late, and says when they came",
  async (bench) => {
    await bench.prepare();
    await reboot(bench, 60_000);
    const { profile, progress } = await bench.probe({ reboot: "after" });
    assert.equal(profile.answers.bootIdentity, "new");
    const [, seconds] = /was back (\d+) s after the boot/.exec(progress.join("\n")) ?? assert.fail();
    assert.ok(Number(seconds) >= 60 && Number(seconds) < 90, seconds);
  },
);

rebootTest("a probe after no reboot says so, and keeps the disk for the reboot to come", async (bench) => {
  const before = bench.state();
  await bench.prepare();
  const standing = bench.state();
  await rejectsWith(bench.probe({ reboot: "after" }), /uptime has not fallen/);
  assert.deepEqual(bench.state(), standing);
  await reboot(bench);
  assert.equal((await bench.probe({ reboot: "after" })).profile.answers.bootIdentity, "new");
  assert.deepEqual(bench.state(), before);
});

rebootTest("a probe after a reboot without one before it says so", async (bench) => {
  const before = bench.state();
  await rejectsWith(bench.probe({ reboot: "after" }), /none is listed.*--probe alone removes it/);
  assert.deepEqual(bench.state(), before);
});

rebootTest("any later probe removes the disk that a run before a reboot left", async (bench) => {
  const before = bench.state();
  await bench.prepare();
  const [first] = scratchDisks(bench);
  assert.ok(
    (await bench.prepare()).some((line) =>
      line.includes(`removing what an earlier probe left: disk ${first?.slot} `)
    ),
  );
  const [second, ...more] = scratchDisks(bench);
  assert.deepEqual(more, []);
  const shown = (await cleanUp(bench)).join("\n");
  assert.ok(shown.includes(`disk ${second?.slot} `), shown);
  assert.deepEqual(bench.state(), before);
});

rebootTest("a run leaves nothing where this machine cannot reach the export", async (bench) => {
  const before = bench.state();
  const host = nvmeHostSide("127.0.0.1", 9);
  await rejectsWith(bench.prepare({ host }), /Cannot make a disk that survives.*cannot be reached from here/);
  assert.deepEqual(bench.state(), before);
});

/**
 * Makes a run over a transport that stops the run, or loses the router, at one command; returns whether the run failed.
 */
async function endAt(
  bench: Bench,
  at: number,
  end: "stopped" | "lost",
  run: (options: RunOptions) => Promise<unknown>,
): Promise<boolean> {
  const stop = new AbortController();
  const transport = new WatchedTransport(bench.transport, at, (watched) => {
    if (end === "stopped") return stop.abort(new VolumeError("cancelled", "Stopped by SIGINT"));
    watched.gone = true;
    watched.drop();
  });
  try {
    await run({ transport, signal: stop.signal });
    return false;
  } catch (error) {
    if (VolumeError.is(error)) return true;
    throw error;
  }
}

rebootTest("a run before a reboot that is stopped leaves nothing, at any of its commands", async (bench) => {
  const before = bench.state();
  let at = 1;
  while (await endAt(bench, at, "stopped", bench.prepare)) {
    assert.deepEqual(bench.state(), before, `stopped at command ${at++}`);
  }
  assert.ok(at > 8, `${at} commands`);
});

rebootTest(
  "what a run before a reboot leaves that loses the router goes with the next one",
  async (bench) => {
    const before = bench.state();
    let [at, dirty] = [1, 0];
    for (; await endAt(bench, at, "lost", bench.prepare); at++) {
      await bench.router.model.clock.sleep(1000);
      const isDirty = !isDeepStrictEqual(bench.state(), before);
      dirty += Number(isDirty);
      assert.equal((await cleanUp(bench)).length > 0, isDirty, `lost at command ${at}`);
      assert.deepEqual(bench.state(), before, `lost at command ${at}`);
    }
    assert.ok(at > 8 && dirty > 3, `${at} commands, ${dirty} times something was left`);
  },
);

for (const end of ["stopped", "lost"] as const) {
  rebootTest(
    `a run after a reboot that is ${end} can be run again, or has removed the disk`,
    async (bench) => {
      const before = bench.state();
      let again = 0;
      for (let at = 1; at <= 12; at++) {
        await bench.prepare();
        await reboot(bench);
        assert.ok(await endAt(bench, at, end, (options) => bench.probe({ ...options, reboot: "after" })));
        const stands = scratchDisks(bench).some(({ filePath }) => filePath.endsWith("-reboot.img"));
        if (stands && again++ < 3) {
          assert.equal((await bench.probe({ reboot: "after" })).profile.answers.bootIdentity, "new");
        } else await cleanUp(bench);
        assert.deepEqual(bench.state(), before, `${end} at command ${at}`);
      }
      assert.ok(again > 0);
    },
  );
}
