// What `rds-csi doctor --probe` reports about routers of every kind, with hosts that can and cannot reach them, with
// unsuitable folders, and beside objects of others. Over real SSH.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import type { HostLink, HostName } from "../../src/doctor/probe/question.ts";
import type { Router } from "../../src/simulator/model/router.ts";
import { FakeHostSide } from "../fakes/host_side.ts";
import { nvmeHostSide } from "../../src/cli/doctor/doctor.ts";
import { readVolumeCommand } from "../../src/cli/config/config.ts";
import { defaultRouterBehaviours, type RouterBehaviours } from "../../src/router_profile/answers.ts";
import { formatProfile, type RouterProfile } from "../../src/router_profile/profile.ts";
import { behavioursOf, parsePlayed, profiles } from "../../src/simulator/profile.ts";
import type { Simulator, SimulatorOptions } from "../../src/simulator/simulator.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import { folder, type ProbeBench, withDirectBench, withProbeBench } from "./_probe_bench.ts";
import { makeScratch } from "../support/scratch.ts";

function probeTest(
  name: string,
  test: (bench: ProbeBench<Simulator>) => Promise<void>,
  options: Partial<SimulatorOptions> = {},
  scale?: number,
): void {
  Deno.test(name, () => withProbeBench(options, test, scale));
}

/** Without SSH, and on a clock that measures no load of the machine. */
function directTest(
  name: string,
  test: (bench: ProbeBench) => Promise<void>,
  options: Parameters<typeof withDirectBench>[0],
): void {
  Deno.test(name, () => withDirectBench(options, test));
}

async function rejectsWith(probing: Promise<unknown>, wording: RegExp): Promise<void> {
  await assert.rejects(probing, (error) => VolumeError.is(error) && wording.test(error.message));
}

for (const played of profiles) {
  directTest(`the probe prints the profile ${played.name} as it is, or why not`, async (bench) => {
    const before = bench.state();
    const { profile, unanswered } = await bench.probe();
    assert.deepEqual(bench.state(), before);
    assert.deepEqual(bench.router.violations.list(), []);
    assert.deepEqual([profile.version, profile.poolFilesystem], [
      played.version,
      played.poolFilesystem,
    ]);
    const hasRose = played.vocabulary.rose;
    const truth: Record<string, unknown> = { ...behavioursOf(played), limits: "enough" };
    for (const name of Object.keys(defaultRouterBehaviours) as (keyof RouterBehaviours)[]) {
      const answer = profile.answers[name];
      if (answer === undefined) assert.ok(unanswered[name], name);
      else assert.equal(answer, truth[name], name);
    }
    if (hasRose) assert.ok(Object.keys(profile.answers).length >= 4, JSON.stringify(unanswered));
    else assert.deepEqual(profile.answers, {});
  }, { profile: played.name });
}

directTest(
  "what the probe prints can be played by the simulator, and is taken by --router-profile",
  async ({ probe }) => {
    const { profile } = await probe();
    const text = formatProfile(profile);
    const reach = [
      "--rds-address",
      "10.0.0.1",
      "--rds-key",
      "/key",
      "--rds-host-key",
      "ssh-ed25519 AAAA",
      "--cluster-id",
      "c",
    ];
    const { config } = readVolumeCommand(
      ["pvc-1", ...reach, "--router-profile", "/p.json"],
      () => undefined,
      { readText: () => text },
    );
    assert.deepEqual(config.profile, profile);
    await withDirectBench({ profile: parsePlayed(text) }, async (bench) => {
      assert.deepEqual((await bench.probe()).profile, profile);
    });
  },
  { behaviours: { grow: "live", sideEffects: "ends-sessions", maxSlot: 32 } },
);

/** Too little room for what is copied, which takes its time over the wire. */
const smallPool = { name: "storage-pool", sizeBytes: 8n << 30n, freeBytes: 4n << 30n };

const seenByHosts: readonly Partial<RouterBehaviours>[] = [
  { grow: "live", unexport: 0 },
  { grow: "after-toggle", unexport: 10_000 },
  { grow: "live", unexport: "refuses-commands" },
];

for (const behaviours of seenByHosts) {
  probeTest(
    `the probe sees through real NVMe/TCP connections ${JSON.stringify(behaviours)}`,
    async ({ router, probe }) => {
      const host = nvmeHostSide("127.0.0.1", router.nvmePort!);
      const { profile, unanswered } = await probe({ host });
      const { grow, unexport } = profile.answers;
      const said = JSON.stringify(unanswered);
      assert.equal(grow, behaviours.grow, said);
      if (typeof behaviours.unexport === "number") {
        const lateMs = Number(unexport) - behaviours.unexport;
        assert.ok(lateMs >= 0 && lateMs <= 5000, `${unexport} ${said}`);
      } else assert.equal(unexport, behaviours.unexport, said);
    },
    { behaviours, exporter: "tcp", pools: [smallPool] },
    // Slow enough that a busy machine is not taken for a silent router.
    5,
  );
}

for (const nvmeBlockBytes of [512, 4096] as const) {
  Deno.test(`the probe sees by what it writes, in blocks of ${nvmeBlockBytes} bytes, that copies share theirs, and are whole`, async () => {
    await withRealDisks({ nvmeBlockBytes }, ({ answers }, unanswered) => {
      assert.equal(answers.copyReturns, "when-done", unanswered["copyReturns"]);
    });
  });
}

/** Probes a router that keeps what hosts write, over real NVMe/TCP. */
async function withRealDisks(
  options: Partial<SimulatorOptions>,
  check: (profile: RouterProfile, unanswered: Readonly<Record<string, string>>) => void,
): Promise<void> {
  await using scratch = await makeScratch();
  const backingDirectory = scratch.path;
  await withProbeBench(
    { ...options, exporter: "tcp", backingDirectory },
    async ({ router, probe, state }) => {
      const before = state();
      const host = nvmeHostSide("127.0.0.1", router.nvmePort!);
      const { profile, unanswered } = await probe({ host });
      check(profile, unanswered);
      assert.deepEqual(state(), before);
    },
    20,
  );
}

/** A host to which scratch disks that are to be written look different; it counts what is written to any disk. */
class OtherDisk extends FakeHostSide {
  writes = 0;
  readonly #differs: Partial<HostLink>;

  constructor(router: Router, differs: Partial<HostLink>) {
    super(router);
    this.#differs = differs;
  }

  override async connect(nqn: string, host: HostName): Promise<HostLink> {
    const link = await super.connect(nqn, host);
    const counted = {
      write: (...args: Parameters<HostLink["write"]>) => (this.writes++, link.write(...args)),
    };
    return { ...link, ...counted, .../-(shared|tail)$/.test(nqn) ? this.#differs : {} };
  }
}

const written = ["copyReturns"] as const;

const someByte = (_lba: bigint, blocks: number) => Promise.resolve(new Uint8Array(512 * blocks).fill(1, -1));
const notItsOwn: readonly (readonly [what: string, differs: Partial<HostLink>, reason: RegExp])[] = [
  ["has another size", { namespaceBytes: () => Promise.resolve(1n << 30n) }, /another size/],
  ["holds something", { read: someByte }, /not blank/],
];

for (const [what, differs, reason] of notItsOwn) {
  probeTest(`the probe writes nothing to an export that ${what}`, async ({ router, probe, state }) => {
    const before = state();
    const host = new OtherDisk(router.model, differs);
    const { profile, unanswered } = await probe({ host });
    for (const name of written) {
      assert.equal(profile.answers[name], undefined);
      assert.match(unanswered[name]!, reason);
      assert.match(unanswered[name]!, /nothing was written/);
    }
    assert.equal(host.writes, 0);
    assert.deepEqual(state(), before);
  });
}

probeTest(
  "the probe writes nothing where the router has another disk of that name",
  async ({ router, probe }) => {
    const host = new OtherDisk(router.model, {});
    const disk = { slot: "pvc-1", "file-path": `${folder}/pvc-1.img`, "file-size": "1048576" };
    await control(router, "POST /disks", disk);
    for (const suffix of ["shared", "tail"]) {
      const same = `[/disk get [find where file-path~"-${suffix}.img"] nvme-tcp-server-nqn]`;
      router.faults.arm({
        match: `where nvme-tcp-server-nqn=.*-${suffix}`,
        nth: 1,
        times: Infinity,
        action: "run-before",
        value: `/disk set "pvc-1" nvme-tcp-server-nqn=${same}`,
      });
    }
    const { unanswered } = await probe({ host });
    for (const name of written) {
      assert.match(unanswered[name]!, /nothing was written because the router has another disk/);
    }
    assert.equal(host.writes, 0);
  },
);

probeTest(
  "the probe says why there is no answer where exports cannot be reached",
  async ({ probe, state }) => {
    const before = state();
    // No process listens on the discard port.
    const { profile, unanswered } = await probe({ host: nvmeHostSide("127.0.0.1", 9) });
    for (const name of ["grow", "sideEffects", "unexport", ...written] as const) {
      assert.equal(profile.answers[name], undefined);
      assert.match(unanswered[name]!, /cannot be reached from here.*nothing listens/);
    }
    assert.deepEqual(state(), before);
  },
);

const noGood: readonly (readonly [what: string, basePath: string, wording: RegExp])[] = [
  ["does not exist", `${folder}/nowhere`, /does not exist/],
  ["is a file", `${folder}/note.txt`, /is no folder/],
  ["is on no pool", "/usb1/csi", /on no mounted pool/],
];

for (const [what, basePath, wording] of noGood) {
  probeTest(
    `the probe refuses a folder that ${what}, and makes nothing`,
    async ({ router, probe, state }) => {
      router.model.files.create(`${folder.slice(1)}/note.txt`, 4n, "note");
      const before = state();
      await rejectsWith(probe({ basePath }), wording);
      assert.deepEqual(state(), before);
      const changes = router.journal.list().filter(({ command }) =>
        /\b(add|set|remove|copy)\b/.test(command)
      );
      assert.deepEqual(changes, []);
    },
  );
}

probeTest("the probe refuses a folder on a pool that is not mounted", async ({ router, probe }) => {
  await control(router, "PATCH /disks/storage-pool", { mounted: false });
  await rejectsWith(probe(), /on no mounted pool/);
});

probeTest("the probe spares objects that only look like its own", async ({ router, probe, state }) => {
  const { files } = router.model;
  const disk = (slot: string, path: string) =>
    control(router, "POST /disks", { slot, "file-path": path, "file-size": "1048576" });
  await disk("rds-csi-probe-01234567-0", "/storage-pool/elsewhere/rds-csi-probe-01234567-value.img");
  await disk("rds-csi-probe-abcdefgh-0", `${folder}/rds-csi-probe-abcdefgh-value.img`);
  await disk("rds-csi-probe-0123456789", `${folder}/rds-csi-probe-0123456789.img`);
  await disk("pvc-1", `${folder}/sub/rds-csi-probe-01234567-value.img`);
  files.makeDirectories("storage-pool/rds-csi-probe-01234567-folder");
  router.model.subvolumes.add("storage-pool/elsewhere/rds-csi-probe-01234567-top", false, undefined);
  const before = state();
  // The probe removes what an earlier probe really left.
  await disk("rds-csi-probe-01234567-1", `${folder}/rds-csi-probe-01234567-grow.img`);
  const { progress } = await probe();
  assert.deepEqual(state(), before);
  const shown = progress.filter((line) => line.includes("what an earlier probe left"));
  assert.deepEqual(shown.map((line) => line.replace(/.*left: /, "")), [
    `disk rds-csi-probe-01234567-1 on ${folder}/rds-csi-probe-01234567-grow.img`,
    `file ${folder}/rds-csi-probe-01234567-grow.img`,
  ]);
});

probeTest("the probe names what it cannot remove, and commands that can", async ({ router, probe }) => {
  router.faults.arm({
    match: "/file remove .*-grow.img",
    nth: 1,
    times: Infinity,
    action: "error",
    value: "failure: busy",
  });
  await assert.rejects(probe(), (error) => {
    assert.ok(VolumeError.is(error, "precondition"));
    assert.match(error.message, /\n\/file remove \[find where name="storage-pool.*-grow\.img"\]$/);
    return true;
  });
});

probeTest("the probe continues after a command that is never answered", async ({ router, probe, state }) => {
  const before = state();
  router.faults.arm({ match: "/file add .*-written.txt", nth: 1, times: 1, action: "hang", value: "after" });
  const limits = { commandMs: 100_000, connectMs: 1_000_000, lastCommandMs: 1_000_000 };
  const { profile, unanswered } = await probe({ limits });
  assert.match(unanswered["copyReturns"]!, /the answer was lost/);
  assert.equal(profile.answers.subvolumeNames, "nested");
  assert.deepEqual(state(), before);
});

probeTest("the probe leaves a pool with little room alone", async ({ probe, state }) => {
  const before = state();
  const { unanswered } = await probe();
  assert.match(unanswered["copyReturns"]!, /too little room/);
  assert.deepEqual(state(), before);
}, { pools: [{ name: "storage-pool", sizeBytes: 8n << 30n, freeBytes: 1n << 30n }] });

probeTest("the probe answers nothing wrongly for a user who may not write", async ({ probe, state }) => {
  const before = state();
  const { profile } = await probe();
  assert.deepEqual(profile.answers, {});
  assert.deepEqual(state(), before);
}, { users: [{ name: "admin", password: "admin", mayWrite: false }] });
