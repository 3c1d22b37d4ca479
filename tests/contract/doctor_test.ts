// What `rds-csi doctor` finds on routers with one fault each, over real SSH. It changes nothing on any of them. What it has a
// fix for is in fixes_test.ts and advices_test.ts.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { createServer } from "node:net";
import { examine } from "../../src/cli/doctor/doctor.ts";
import { type DoctorOptions, readDoctorOptions } from "../../src/cli/doctor/options.ts";
import { formatProfile, type RouterProfile } from "../../src/router_profile/profile.ts";
import { systemClock } from "../../src/host/clock.ts";
import { systemNetwork } from "../../src/host/network.ts";
import { systemRandom } from "../../src/host/random.ts";
import type { Finding } from "../../src/volume/model/finding.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "../../src/simulator/simulator.ts";
import { getProfile } from "../../src/simulator/profile.ts";
import { aDisk, aRecord, testCluster } from "../fakes/records.ts";
import { makeSshKeys, routerHostKey } from "../fakes/ssh_keys.ts";

const password = "a test's password";

/** The rules of the quick start, for IPv4 and IPv6. */
const closedPorts = [
  "/ip/firewall/filter/add chain=input protocol=tcp dst-port=22,9 src-address=10.0.0.0/8 action=accept",
  "/ip/firewall/filter/add chain=input protocol=tcp dst-port=22,9 action=drop",
  "/ipv6/firewall/filter/add chain=input protocol=tcp dst-port=22,9 action=drop",
];

/** A router, and a doctor with all flags for it. */
interface Practice {
  readonly router: Simulator;
  /** Runs the doctor; a value of undefined leaves a flag out. */
  examine(flags?: Readonly<Record<string, string | undefined>>): Promise<Examined>;
}

interface Examined {
  readonly code: number;
  readonly findings: readonly Finding[];
}

async function withPractice(
  options: Partial<SimulatorOptions>,
  test: (practice: Practice) => Promise<void>,
): Promise<void> {
  await using router = await startSimulator({
    timingScale: 0,
    hostKey: routerHostKey.privatePem,
    users: [{ name: "rds-csi", password }, { name: "reader", password, mayWrite: false }],
    ...options,
  });
  for (const command of closedPorts) await control(router, "POST /console", { command });
  await test({
    router,
    examine: async (flags = {}) => {
      const before = await stateOf(router);
      const { code, out } = await run(router, { json: "true", ...flags });
      assert.deepEqual(await stateOf(router), before, "nothing changes");
      assert.deepEqual(router.violations.list(), []);
      return { code, findings: JSON.parse(out) };
    },
  });
}

async function stateOf(router: Simulator): Promise<unknown> {
  const { disks, files, subvolumes, exports } = await control<Record<string, unknown>>(router, "GET /state");
  return { disks, files, subvolumes, exports };
}

function optionsFor(router: Simulator, flags: Readonly<Record<string, string | undefined>>): DoctorOptions {
  const all = {
    "rds-address": "127.0.0.1",
    "rds-port": String(router.sshPort),
    "rds-password-file": "/test/password",
    "rds-host-key": router.hostKeyPublic,
    "cluster-id": "test",
    // A port without a listener: 4420 may be in use on this machine.
    "nvme-port": "9",
    ...flags,
  };
  const args = Object.entries(all).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}=${value}`]
  );
  // A profile is given as its text.
  const readText = (text: string) => text;
  return readDoctorOptions(
    args.map((arg) => arg === "--json=true" ? "--json" : arg),
    () => undefined,
    readText,
  );
}

async function run(
  router: Simulator,
  flags: Readonly<Record<string, string | undefined>>,
  { onLine = () => {}, signal = new AbortController().signal }: {
    readonly onLine?: (line: string) => void;
    readonly signal?: AbortSignal;
  } = {},
) {
  const printed: string[] = [];
  const errors: string[] = [];
  const io = {
    out: (line: string) => {
      printed.push(line);
      onLine(line);
    },
    // A line about the current step, printed only in the output for people.
    err: (line: string) => {
      if (signal.aborted) return void errors.push(line);
      assert.match(line, flags.json === undefined ? /^doctor: looking at the router at / : /^never$/);
    },
    env: () => undefined,
    signal,
  };
  const adapters = {
    clock: systemClock,
    random: systemRandom,
    network: systemNetwork(systemClock),
    readText: (path: string) => {
      assert.equal(path, "/test/password");
      return Promise.resolve(`${password}\n`);
    },
  };
  const halves = {
    json: flags.json !== undefined,
    router: optionsFor(router, flags),
    named: [],
    node: undefined,
  };
  return {
    code: await examine(halves, { router: adapters, node: () => assert.fail("no node here") }, io),
    out: printed.join("\n"),
    err: errors.join("\n"),
  };
}

function practiceTest(
  name: string,
  test: (practice: Practice) => Promise<void>,
  options: Partial<SimulatorOptions> = {},
): void {
  Deno.test(name, () => withPractice(options, test));
}

/** The only finding of a check that is not all right. */
function complaintOf({ findings }: Examined, check: string): Finding {
  const complaints = findings.filter((finding) => finding.check === check && finding.state !== "ok");
  assert.equal(complaints.length, 1, JSON.stringify(findings, null, 1));
  return complaints[0]!;
}

practiceTest(
  "doctor finds nothing wrong with a router as it should be, and ends with 0",
  async ({ examine, router }) => {
    const { code, findings } = await examine();
    assert.equal(code, 0);
    assert.deepEqual(router.journal.list().filter(({ outcome }) => outcome !== "ok"), [], "refused commands");
    assert.deepEqual(findings.map(({ check, state }) => `${check} ${state}`), [
      ...["reach ok", "host-key ok", "login ok", "version ok", "package ok", "policy ok", "ssh-sessions ok"],
      ...[
        "firewall ok",
        "firewall ok",
        "clock ok",
        "pool ok",
        "drives ok",
        "base-path ok",
        "share ok",
        "disks ok",
        "nvme-port ok",
      ],
    ]);
  },
);

practiceTest("doctor judges the port of the share for directories", async (practice) => {
  const { findings } = await practice.examine({ kind: "directory", "base-path": "/storage-pool/k8s" });
  const found = findings.filter(({ check }) => check === "firewall").map(({ found }) => found);
  assert.match(found[0]!, /^port 2049: over IPv4 open to everyone/);
});

practiceTest("doctor skips the firewall where the user may not read it", async (practice) => {
  const refusal = { match: "/ip firewall", nth: 1, times: 1, action: "error" } as const;
  practice.router.faults.arm({ ...refusal, value: "not enough permissions (9)" });
  const { code, findings } = await practice.examine();
  assert.equal(code, 0);
  const firewall = findings.filter(({ check }) => check === "firewall");
  assert.deepEqual(firewall.map(({ state }) => state), ["skipped"]);
  assert.match(firewall[0]!.found, /^cannot judge who reaches port 9 and SSH: .*not enough permissions/);
});

practiceTest("doctor prints lines for people, with the fix below", async ({ router }) => {
  const { code, out } = await run(router, { "rds-host-key": undefined });
  assert.equal(code, 1);
  assert.match(out, /^ok {7}reach +127\.0\.0\.1 port \d+ answers in \d+ ms$/m);
  assert.match(out, /^problem {2}host-key +--rds-host-key is not given; presented=SHA256:/m);
  assert.ok(out.includes(`--rds-host-key '${router.hostKeyPublic}'`), out);
  assert.match(out, /^doctor: 1 ok, 3 warnings, 1 problem$/m);
});

practiceTest(
  "doctor tells which ways to log in there are, and sends no password to an unknown host",
  async (practice) => {
    const foreign = makeSshKeys().public;
    const examined = await practice.examine({ "rds-host-key": foreign });
    assert.equal(examined.code, 1);
    const finding = complaintOf(examined, "host-key");
    assert.match(finding.found, /presented=SHA256:.* pinned=SHA256:/);
    assert.match(complaintOf(examined, "login").found, /not tried.*publickey, password/);
    assert.match(complaintOf(examined, "router").found, /version, package, .*disks/);
    assert.deepEqual(practice.router.journal.list(), []);
  },
);

const wrong: readonly (readonly [
  what: string,
  flags: Readonly<Record<string, string | undefined>>,
  check: string,
  state: string,
  text: RegExp,
  options?: Partial<SimulatorOptions>,
])[] = [
  [
    "a host key that nobody checks",
    { "rds-insecure-skip-verify": "true" },
    "host-key",
    "warning",
    /not checked/,
  ],
  ["a host key that is none", { "rds-host-key": "ssh-rsa !" }, "host-key", "problem", /Cannot read/],
  ["a RouterOS that cannot fence", {}, "version", "problem", /too old; the driver needs 7\.21/, {
    profile: { ...getProfile("ros-7.24"), version: "7.20.8 (long-term)" },
  }],
  ["a clock that is wrong", {}, "clock", "warning", /3(?:599|600) s ahead/, { clock: ahead(3_600_000) }],
];

for (const [what, flags, check, state, text, options] of wrong) {
  practiceTest(`doctor finds ${what}`, async ({ examine }) => {
    const examined = await examine(flags);
    const finding = complaintOf(examined, check);
    assert.equal(finding.state, state);
    assert.match(finding.found, text);
    assert.ok(finding.fix !== undefined, "it says what puts it right");
    const problems = examined.findings.filter((finding) => finding.state === "problem");
    assert.deepEqual(problems, state === "problem" ? [finding] : [], "one fault is one problem");
    assert.equal(examined.code, problems.length);
  }, options);
}

/** Adds an array below the pool, and a drive that shares a Btrfs with it. */
async function addParts(practice: Practice, state: string): Promise<void> {
  await control(practice.router, "PATCH /disks/storage-pool", { "fs-uuid": "40437dbc" });
  const mirror = { slot: "storage-pool-m0", type: "raid", size: 5, "raid-master": "storage-pool", state };
  await control(practice.router, "POST /disks", mirror);
  const drive = { slot: "nvme9", size: 5, "fs-uuid": "40437dbc", "mount-filesystem": false, mounted: false };
  await control(practice.router, "POST /disks", drive);
}

practiceTest(
  "doctor finds a degraded mirror below a pool, and no fault in a Btrfs drive",
  async (practice) => {
    await addParts(practice, "degraded, sync:recover, recovery = 3%");
    const { found } = complaintOf(await practice.examine(), "pool");
    assert.match(found, /with nvme9.*storage-pool-m0 below it is degraded/);
  },
);

practiceTest("doctor notes an array that checks itself", async (practice) => {
  await addParts(practice, "clean, sync:repair, resync = 3%");
  await control(practice.router, "PATCH /disks/storage-pool", { state: "clean, sync:repair, resync = 3%" });
  const { code, findings } = await practice.examine();
  assert.equal(code, 0);
  assert.match(findings.find(({ check }) => check === "pool")!.found, /clean, sync:repair, resync = 3%/);
});

for (const words of ["not enough permissions (9)", "std failure: not allowed (9)"]) {
  practiceTest(`doctor takes "${words}" for a missing policy, to read or to write`, async (practice) => {
    for (
      const [match, found] of [["/system resource", /may not read/], [
        "/disk set",
        /read but not write/,
      ]] as const
    ) {
      practice.router.faults.arm({ match, nth: 1, times: 1, action: "error", value: words });
      if (match === "/system resource") {
        // The doctor reads the version first.
        practice.router.faults.arm({ match, nth: 1, times: 1, action: "error", value: words });
      }
      const finding = complaintOf(await practice.examine(), "policy");
      assert.equal(finding.state, "problem");
      assert.match(finding.found, found);
      assert.match(finding.fix!, /policy=ssh,read,write/);
    }
  });
}

practiceTest("doctor names the policy that the user's group lacks", async ({ router, examine }) => {
  for (
    const command of [
      "/user/group/add name=viewers policy=ssh,read,test",
      `/user/add name=viewer group=viewers password="${password}"`,
    ]
  ) {
    await control(router, "POST /console", { command });
  }
  const finding = complaintOf(await examine({ "rds-user": "viewer" }), "policy");
  assert.match(finding.found, /^viewer may read but not write: .*; its group viewers lacks write$/);
});

practiceTest("doctor tells own disks from damaged and foreign ones", async (practice) => {
  const disks = [
    aDisk(aRecord(), { id: "pvc-own" }),
    aDisk(aRecord({ cluster: "ffffffff" }), { id: "pvc-other" }),
    { ...aDisk(aRecord(), { id: "pvc-damaged" }), comment: "{rds1 c=1}" },
    { ...aDisk(aRecord(), { id: "backup" }), comment: "" },
  ];
  for (const { id, comment } of disks) {
    const file = { "file-path": `/storage-pool/metal-csi/${id}.img`, "file-size": "1048576" };
    await control(practice.router, "POST /disks", { slot: id, ...file, comment });
  }
  const examined = await practice.examine();
  assert.match(complaintOf(examined, "disks").found, /^1 with a damaged record.*: pvc-damaged$/);
  const plate = `storage-pool/metal-csi/names-of-${testCluster}/a_photos__pvc-damaged`;
  practice.router.model.files.makeDirectories(plate);
  assert.match(complaintOf(await practice.examine(), "disks").found, /: pvc-damaged \[a\/photos\]$/);
  const counted = examined.findings.find(({ check, state }) => check === "disks" && state === "ok");
  assert.match(
    counted!.found,
    /^1 of this cluster, 1 of other clusters, 0 .* Go driver, 1 without a known owner/,
  );
});

practiceTest(
  "doctor misses an exported disk behind a port that refuses, and finds one that answers",
  async (practice) => {
    const server = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    assert.ok(address !== null && typeof address === "object");
    const port = String(address.port);
    const disk = { slot: "pvc-x", "file-path": "/storage-pool/x.img", size: 5, "nvme-tcp-export": true };
    try {
      await control(practice.router, "POST /disks", { ...disk, "nvme-tcp-server-port": port });
      const { findings } = await practice.examine({ "nvme-port": port });
      assert.match(findings.at(-1)!.found, /answers; exported there: 1/);
    } finally {
      await new Promise<void>((resolve) => server.close(() => resolve()));
    }
    const finding = complaintOf(await practice.examine({ "nvme-port": port }), "nvme-port");
    assert.equal(finding.state, "problem");
  },
);

practiceTest("doctor goes on behind a question that the router refuses", async (practice) => {
  const refuse = (match: string) =>
    practice.router.faults.arm({ match, nth: 1, times: 1, action: "error", value: "failure: no" });
  refuse("/system package");
  refuse("/system clock");
  const examined = await practice.examine();
  assert.equal(complaintOf(examined, "package").state, "problem");
  assert.equal(complaintOf(examined, "clock").state, "warning");
  assert.equal(examined.findings.length, 16);
});

practiceTest(
  "doctor names what a probe found out that makes the router useless, or harmful",
  async (practice) => {
    const findings = async (answers: RouterProfile["answers"]) => {
      const profile = formatProfile({ ...practice.router.model.profile, answers });
      const examined = await practice.examine({ "router-profile": profile });
      return examined.findings.filter(({ check }) => check === "profile").map(({ state, found }) =>
        `${state}: ${found}`
      );
    };
    const [small, harmful, ...more] = await findings({ limits: "too-small", sideEffects: "ends-sessions" });
    assert.match(small!, /^problem: .*comments of 255 bytes.*no controller starts/);
    assert.match(harmful!, /^problem: .*no volume is created/);
    assert.deepEqual(more, []);
    assert.match((await findings({ limits: "enough" })).join(), /^ok: /);
  },
);

practiceTest(
  "doctor says the same under answers in other forms, and with words that nobody knows",
  async (practice) => {
    const { findings } = await practice.examine();
    assert.deepEqual(findings.filter(({ state }) => state !== "ok"), []);
  },
  { behaviours: { output: "hostile", maxPut: 4096 } },
);

/** This machine's clock, and a router's clock that differs from it. */
function ahead(ms: number): SimulatorOptions["clock"] {
  return { ...systemClock, now: () => systemClock.now() + ms };
}

Deno.test("doctor prints each finding as it comes, and keeps what it has found when it is stopped", async () => {
  await withPractice({}, async ({ router }) => {
    const stop = new AbortController();
    router.faults.arm({ match: "/system package", nth: 1, times: 99, action: "hang", value: undefined });
    const onLine = (line: string) => {
      if (/^ok +version/.test(line)) stop.abort(new VolumeError("cancelled", "Stopped by SIGINT"));
    };
    const { code, out, err } = await run(router, {}, { onLine, signal: stop.signal });
    assert.deepEqual(out.split("\n").map((line) => line.split(/ +/)[1]).slice(0, 4), [
      "reach",
      "host-key",
      "login",
      "version",
    ]);
    assert.match(out, /doctor: 4 ok, 0 warnings, 0 problems$/);
    assert.match(err, /interrupted before every check was done: Stopped by SIGINT/);
    assert.equal(code, 1);
  });
});
