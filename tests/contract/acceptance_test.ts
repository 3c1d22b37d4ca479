// The acceptance run on a simulated router: what it shows, what it refuses, and what a broken promise looks like.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { canGrowExt4Online } from "../../src/cli/acceptance/scratch.ts";
import { systemClock } from "../../src/host/clock.ts";
import { systemRandom } from "../../src/host/random.ts";
import type { AcceptanceReport } from "../../src/router_profile/report/report.ts";
import { parseProfile } from "../../src/router_profile/profile.ts";
import { describeDifferences, replayReport } from "../../src/simulator/replay/replay.ts";
import { problem } from "../../src/volume/model/finding.ts";
import type { HostLink, HostSide } from "../../src/doctor/probe/question.ts";
import type { RunAdapters } from "../../src/cli/acceptance/run.ts";
import { nvmeHostSide } from "../../src/cli/doctor/doctor.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import { plainDisk } from "../../src/simulator/model/disk.ts";
import { isLong } from "../support/long.ts";
import {
  type AcceptanceBench,
  folder,
  knownProfile,
  loopsMissing,
  stepsOf,
  withAcceptanceBench,
} from "./_acceptance_bench.ts";

async function differencesOf(report: AcceptanceReport): Promise<readonly string[]> {
  return describeDifferences(await replayReport(report, { clock: systemClock, random: systemRandom }));
}

/** What the owner of the bench's router has: none of it may be in a report. */
const owned = ["keeper", "hunter2", "127.0.0.1", "storage-pool", "try-it", "BEGIN", "ssh-rsa"];

async function assertNothingOwned(output: string): Promise<void> {
  for (const entry of [...Deno.readDirSync(output), ...Deno.readDirSync(`${output}/captures`)]) {
    if (entry.isDirectory) continue;
    const path = [`${output}/${entry.name}`, `${output}/captures/${entry.name}`].find((one) => {
      try {
        return Deno.statSync(one).isFile;
      } catch {
        return false;
      }
    })!;
    const text = await Deno.readTextFile(path);
    for (const known of owned) assert.ok(!text.includes(known), `${entry.name}: ${known}`);
  }
}

Deno.test("a run of the controller's half and the fences passes, leaves nothing, and replays without a difference", async () => {
  await withAcceptanceBench({}, async ({ run, state, simulator }) => {
    const before = state();
    const { code, report, output, lines, said } = await run();
    assert.equal(code, 0, [...lines, ...said].join("\n"));
    assert.deepEqual(state(), before);
    assert.deepEqual(simulator.violations.list(), []);
    assert.equal(stepsOf(report, "pass").length, 10);
    assert.deepEqual(stepsOf(report, "not here"), ["ext4: life", "xfs: life", "block: life"]);
    assert.deepEqual(said.filter((text) => text.includes("cleaning up:")), []);
    await assertNothingOwned(output);
    parseProfile(await Deno.readTextFile(`${output}/profile.json`));
    assert.match(
      await Deno.readTextFile(`${output}/captures/file-disk-detail.txt`),
      /^Flags: B - BLOCK-DEVICE; t - NVME/,
    );
    assert.deepEqual(await differencesOf(report), []);
  });
});

Deno.test({
  name: "volumes go through life on loop devices, and the replay has no difference",
  ignore: loopsMissing !== undefined,
  // A node keeps the C library until its process ends.
  sanitizeResources: false,
  fn: () =>
    withAcceptanceBench({
      exporter: "loop",
      scale: 1,
      connector: (scratch) => ({ kind: "loop", backing: `${scratch}/router` }),
    }, async ({ run, state }) => {
      const before = state();
      const cannotGrow = (kind: string) =>
        kind === "ext4" && !canGrowExt4Online() ? "this process may not grow ext4" : undefined;
      const kinds = isLong ? ["ext4", "xfs", "block"] as const : ["xfs"] as const;
      const { report, lines, said } = await run({ adapters: { cannotGrow, kinds, probe: knownProfile } });
      assert.deepEqual(stepsOf(report, "fail"), [], [...lines, ...said].join("\n"));
      const passed = stepsOf(report, "pass");
      for (const kind of kinds) {
        for (const step of ["snapshot in use", "restore compared with its moment", "clone", "deletion"]) {
          assert.ok(passed.includes(`${kind}: ${step}`), lines.join("\n"));
        }
      }
      assert.ok(passed.includes("xfs: growth") && passed.includes("nothing left"));
      assert.deepEqual(state(), before);
      assert.deepEqual(await differencesOf(report), []);
    }),
});

Deno.test("the health of drives is read without their names, also when one warns of what the report has as a word", () =>
  withAcceptanceBench({}, async ({ run, simulator: { model } }) => {
    const drive = model.disks.list().find(({ serial }) => serial !== "")!;
    const warned = { "critical-warning": ["temperature", "reliability-degraded"], "percentage-used": 104n };
    model.disks.replace({ ...drive, extra: { ...drive.extra, ...warned } });
    const { report, output } = await run({ adapters: { probe: knownProfile, kinds: [] } });
    const { result, note } = report.steps.find(({ step }) => step === "health reading")!;
    assert.equal(result, "pass");
    assert.match(note, /^2 drives, 0 partitions, 1 array, 1 Btrfs file system, they report warnings, spare/);
    assert.match(note, /faults: DriveUnreliable, DriveWorn$/);
    for (const file of ["report.json", "report.md"]) {
      const text = await Deno.readTextFile(`${output}/${file}`);
      for (const own of [drive.serial, drive.model, "nvme1"]) assert.ok(!text.includes(own), own);
    }
  }));

Deno.test("a router that refuses to report its drives' health has a step that is not here, and no other", () =>
  withAcceptanceBench({}, async ({ run, simulator }) => {
    const refusal = "input does not match any value of proplist";
    simulator.faults.arm({ match: "raid-member-state", nth: 1, times: 9, action: "error", value: refusal });
    const { report, code } = await run({ adapters: { probe: knownProfile, kinds: [] } });
    assert.deepEqual([stepsOf(report, "not here"), code], [["health reading"], 0]);
  }));

Deno.test("fences hold on a router whose exports have blocks of 4096 bytes", () =>
  withAcceptanceBench({ nvmeBlockBytes: 4096 }, async ({ run }) => {
    const { report, lines } = await run({ adapters: { probe: knownProfile, kinds: [] } });
    assert.deepEqual([stepsOf(report, "fail"), stepsOf(report, "not here")], [[], []], lines.join("\n"));
  }));

Deno.test("a run that may ask for a reboot measures when exports are served again, and whether they are the same", () =>
  withAcceptanceBench(
    { scale: 20, behaviours: { bootIdentity: "new" } },
    async ({ run, simulator, state }) => {
      const before = state();
      const ask = async () => {
        await control(simulator, "POST /reboot", { downMs: 20_000, disksLateMs: 10_000 });
        return "true";
      };
      const adapters = { probe: knownProfile, kinds: [], ask };
      const { report, output, lines } = await run({ flags: ["--reboot", "ask"], adapters });
      assert.deepEqual(stepsOf(report, "fail"), [], lines.join("\n"));
      const notes = report.steps.filter(({ step }) => /reboot: (settle|identity)/.test(step)).map((
        { note },
      ) => note);
      assert.match(notes.join("; "), /^the export is served \d+ s after the boot; new: what is mounted/);
      const { answers } = parseProfile(await Deno.readTextFile(`${output}/profile.json`));
      assert.equal(answers.bootIdentity, "new");
      assert.deepEqual(await differencesOf(report), []);
      assert.deepEqual(state(), before);
    },
  ));

/** This process as a host, with connections that differ in one respect. */
function changedHost(
  { simulator }: AcceptanceBench,
  change: (link: HostLink) => Partial<HostLink>,
  letsIn = false,
): HostSide {
  const host = nvmeHostSide("127.0.0.1", simulator.nvmePort!);
  return {
    ...host,
    async connect(nqn, name, context) {
      const link = await host.connect(nqn, name, context).catch((error) => {
        if (!letsIn) throw error;
        return undefined;
      });
      const gone = () => Promise.reject(new VolumeError("unavailable", "it is gone"));
      return {
        serial: link?.serial ?? "",
        blockBytes: (context) => link?.blockBytes(context) ?? gone(),
        namespaceBytes: (context) => link?.namespaceBytes(context) ?? gone(),
        namespaceIdentity: (context) => link?.namespaceIdentity(context) ?? gone(),
        read: (lba, blocks, context) => link?.read(lba, blocks, context) ?? gone(),
        write: (lba, data, context) => link?.write(lba, data, context) ?? gone(),
        flush: (context) => link?.flush(context) ?? gone(),
        [Symbol.asyncDispose]: async () => await link?.[Symbol.asyncDispose](),
        ...link && change(link),
      };
    },
  };
}

/** Routers that break one promise, and the line that says so. */
const broken: readonly (readonly [
  what: string,
  step: string,
  simulated: Parameters<typeof withAcceptanceBench>[0],
  adapters: (bench: AcceptanceBench) => Partial<RunAdapters>,
])[] = [
  [
    "goes on serving an export that was withdrawn",
    "fence: withdrawal during writes",
    { behaviours: { unexport: 600_000 } },
    () => ({}),
  ],
  [
    "serves an export under its old name",
    "fence: the name of the old export",
    {},
    (bench) => ({ host: changedHost(bench, () => ({}), true) }),
  ],
  [
    "has lost what it acknowledged",
    "fence: nothing written afterwards",
    {},
    (bench) => ({
      host: changedHost(bench, (link) => ({
        read: async (lba, blocks, context) => (await link.read(lba, blocks, context)).fill(0),
      })),
    }),
  ],
  [
    "leaves something on this machine",
    "nothing left",
    {},
    () => ({ leftHere: () => Promise.resolve(["/mnt/left"]) }),
  ],
  [
    "cuts off what the driver needs whole",
    "probe",
    {},
    () => ({
      probe: async (options) => {
        const probed = await knownProfile(options);
        return { ...probed, profile: { ...probed.profile, answers: { limits: "too-small" } } };
      },
    }),
  ],
];

for (const [what, step, simulated, adapters] of broken) {
  Deno.test(`a router that ${what} fails the line "${step}" alone, and the run leaves nothing`, async () => {
    await withAcceptanceBench(simulated, async (bench) => {
      // An export that lingers is none that the run can end.
      const withoutExports = () => ({ ...bench.state() as Record<string, unknown>, exports: [] });
      const before = withoutExports();
      const { code, report, lines } = await bench.run({
        adapters: { probe: knownProfile, kinds: [], ...adapters(bench) },
      });
      assert.deepEqual(stepsOf(report, "fail"), [step], lines.join("\n"));
      assert.equal(code, 1);
      assert.deepEqual(withoutExports(), before);
    });
  });
}

/** What makes a router, or a folder on it, one that no run may use, and what the refusal says. */
const refusals: readonly (readonly [
  what: string,
  prepare: (bench: AcceptanceBench) => void,
  reason: RegExp,
  options?: { readonly basePath?: string; readonly profile?: string; readonly flags?: readonly string[] },
])[] = [
  ["a folder that is not there", () => {}, /does not exist/, { basePath: "/storage-pool/missing" }],
  ["a folder on no pool", () => {}, /on no mounted pool/, { basePath: "/other/scratch" }],
  ["the top of a pool", () => {}, /top of the pool/, { basePath: "/storage-pool" }],
  [
    "a folder with a file",
    ({ simulator: { model } }) => void model.files.makeDirectories(`${folder}/photos`.slice(1)),
    /not empty: file=\/storage-pool\/try-it\/here\/photos/,
  ],
  [
    "a folder with somebody's disk",
    ({ simulator }) => addImage(simulator, `${folder}/pvc-1.00c0ffee.img`),
    /holds, or is in, a base path in use/,
  ],
  [
    "a folder in a base path in use",
    ({ simulator }) => addImage(simulator, `/storage-pool/try-it/pvc-1.00c0ffee/disk.img`),
    /holds, or is in, a base path in use/,
  ],
  ...["names-of-00c0ffee/shop_data_fast_pvc-1", "build-cache.1.00c0ffee"].map((
    name,
  ) =>
    [
      `a folder beside ${name.split("/")[0]}`,
      ({ simulator: { model } }: AcceptanceBench) =>
        void model.files.makeDirectories(`storage-pool/try-it/${name}`),
      /is in a base path in use: folder=\/storage-pool\/try-it\//,
    ] as const
  ),
  [
    "a folder that holds a base path in use",
    ({ simulator }) => addImage(simulator, `${folder}/csi/pvc-1.00c0ffee.img`),
    /holds, or is in, a base path in use/,
  ],
  ["a degraded pool", (bench) => setState(bench, "degraded"), /array is not sound/],
  ["a pool that syncs", (bench) => setState(bench, "clean, sync:repair, resync = 3%"), /array is busy/],
  [
    "a pool that is nearly full",
    ({ simulator: { model } }) => {
      const [pool] = model.pools();
      Object.assign(pool!.pool, { otherBytes: pool!.sizeBytes - (20n << 30n) });
    },
    /less than 16 GiB or 10 % free/,
  ],
  ["a router that has just booted", ({ simulator: { model } }) => model.system.boot(0), /just booted/],
];

function addImage({ model }: AcceptanceBench["simulator"], filePath: string): void {
  model.disks.add({ ...plainDisk, type: "file", slot: "vm-1", filePath, sizeBytes: 1n << 20n });
}

function setState({ simulator: { model } }: AcceptanceBench, state: string): void {
  Object.assign(model.pools()[0]!.pool, { state });
}

for (const [what, prepare, reason, { basePath } = {}] of refusals) {
  Deno.test(`a run refuses ${what}, and changes nothing`, async () => {
    await withAcceptanceBench({}, async (bench) => {
      prepare(bench);
      const before = bench.state();
      await assert.rejects(
        bench.run(basePath === undefined ? {} : { basePath }),
        (error) => VolumeError.is(error, "precondition") && reason.test(error.message),
      );
      assert.deepEqual(bench.state(), before);
    });
  });
}

Deno.test("a run refuses a RouterOS with holes in SSH, unless it is told to take it", async () => {
  await withAcceptanceBench({ profile: "ros-7.21" }, async ({ run, state }) => {
    const before = state();
    await assert.rejects(run(), /holes in SSH .* or give --accept-vulnerable/);
    assert.deepEqual(state(), before);
    const stop = new AbortController();
    const flags = ["--accept-vulnerable"];
    const say = () => stop.abort(new VolumeError("cancelled", "enough was seen"));
    // So does the doctor call it a problem.
    const findings = [problem("version", "7.21 has holes in SSH")];
    await assert.rejects(run({ flags, findings, signal: stop.signal, adapters: { say } }), /enough was seen/);
  });
});

Deno.test("an image beside the folder that no driver has made keeps no run away", async () => {
  await withAcceptanceBench({}, async (bench) => {
    addImage(bench.simulator, "/storage-pool/vm-storage-001.img");
    const stop = new AbortController();
    const say = () => stop.abort(new VolumeError("cancelled", "enough was seen"));
    await assert.rejects(bench.run({ signal: stop.signal, adapters: { say } }), /enough was seen/);
  });
});

Deno.test("a run refuses what the doctor calls a problem, and anything but yes", async () => {
  await withAcceptanceBench({}, async ({ run, state }) => {
    const before = state();
    await assert.rejects(
      run({ findings: [problem("pool", "it is on fire")] }),
      /the doctor has a problem: pool: it is on fire/,
    );
    const ask = () => Promise.resolve("y");
    await assert.rejects(run({ flags: ["--yes=false"], adapters: { ask } }), /the answer was not yes/);
    assert.deepEqual(state(), before);
  });
});
