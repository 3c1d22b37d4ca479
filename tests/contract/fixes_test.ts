// Every fix that `rds-csi doctor` prints for a router corrects the fault for which it is printed, and changes nothing
// else: each entry of the table is typed at a simulated router, or in a shell. A new entry without a trial fails here.
import assert from "node:assert/strict";
import { nodeFixes } from "../../src/doctor/node/fixes.ts";
import { judgePolicy } from "../../src/doctor/router/access.ts";
import { routerFixes } from "../../src/doctor/router/fixes.ts";
import { judgePools } from "../../src/doctor/router/pools.ts";
import { judgeClock } from "../../src/doctor/router/software.ts";
import { getProfile } from "../../src/simulator/profile.ts";
import type { SimulatorOptions } from "../../src/simulator/simulator.ts";
import { type Finding, type Fix, formatFix } from "../../src/volume/model/finding.ts";
import { readPage } from "../docs/pages.ts";
import { aDisk, aRecord } from "../fakes/records.ts";
import { makeSshKeys } from "../fakes/ssh_keys.ts";
import { hostOutput } from "../../tools/host_command.ts";
import {
  configuration,
  differences,
  type Flags,
  node,
  password,
  type Scene,
  user,
  withScene,
} from "./_fix_scene.ts";

/** How an entry of the table is tried. */
interface Trial {
  readonly options?: Partial<SimulatorOptions>;
  /** Causes the fault for which the fix is meant. */
  spoil?(scene: Scene): Promise<void>;
  /** The doctor's finding then, with the fix. */
  find(scene: Scene): Promise<Finding | undefined>;
  /** The entry that must be printed. */
  readonly entry: (scene: Scene) => Fix;
  /** Replaces `…`, FILE and NODES in the command, as a person would. */
  readonly fill?: (command: string, scene: Scene) => string;
  /** Where the commands are typed. @default {"router"} */
  readonly at?: "router" | "shell";
  /** The configuration lines that are removed or added, each once. */
  readonly changes: readonly RegExp[];
  /** Whether the fix only displays something, so that the finding stays. @default {false} */
  readonly looks?: boolean;
  /** A step that a person does before the fix, such as uploading a file. */
  prepare?(scene: Scene): Promise<void>;
  /** Checks the result where the doctor cannot see it. */
  mended?(scene: Scene, printed: string): Promise<void>;
}

const filled = (from: string, to: string) => (command: string) => command.replace(from, to);
const complaintOf = (check: string) => (scene: Scene) => scene.complaint(check);
const keys = makeSshKeys();

const trials: Readonly<Record<string, Trial>> = {
  sshRefused: {
    // An address list and a port that the fix must not change.
    spoil: (scene) => type(scene, "/ip/service/set ssh disabled=yes available-from=10.0.0.0/8 port=22"),
    find: complaintOf("reach"),
    entry: () => routerFixes.sshRefused(),
    changes: [
      /^- ip\/service .*10.0.0.0\/8","disabled":true,/,
      /^\+ ip\/service .*10.0.0.0\/8","max-sessions":20,"name":"ssh","port":22/,
    ],
  },
  portSilent: {
    spoil: (scene) => type(scene, "/ip/firewall/filter/add chain=input protocol=tcp dst-port=22 action=drop"),
    find: complaintOf("reach"),
    entry: ({ router }) => routerFixes.portSilent(router.sshPort),
    fill: (command, { router }) =>
      filled("NODES", node)(command).replace(`dst-port=${router.sshPort}`, "dst-port=22"),
    changes: [/^\+ ip\/firewall\/filter .*"src-address":"10.1.2.3"/],
  },
  nvmeSilent: {
    spoil: async (scene) => {
      await exportOne(scene);
      await type(scene, "/ip/firewall/filter/add chain=input protocol=tcp dst-port=4420 action=drop");
    },
    find: (scene) => scene.complaint("nvme-port", { "node-id": "worker-1" }),
    entry: () => routerFixes.nvmeSilent(4420),
    fill: filled("NODES", node),
    changes: [/^\+ ip\/firewall\/filter .*"src-address":"10.1.2.3"/],
  },
  sshClosed: {
    spoil: (scene) => type(scene, "/ip/service/set ssh available-from=10.0.0.0/8"),
    find: complaintOf("host-key"),
    entry: () => routerFixes.sshClosed("127.0.0.1"),
    looks: true,
    changes: [/^- ip\/service .*10.0.0.0\/8"/, /^\+ ip\/service .*10.0.0.0\/8,127.0.0.1"/],
    mended: async (scene, printed) => {
      assert.match(printed, /10\.0\.0\.0\/8/);
      await type(scene, "/ip/service/set ssh available-from=10.0.0.0/8,127.0.0.1");
      assert.equal(await scene.complaint("host-key"), undefined);
    },
  },
  hostKeyLine: {
    find: (scene) => scene.complaint("host-key", { "rds-host-key": undefined }),
    entry: ({ router }) => routerFixes.hostKeyLine(router.hostKeyPublic, "127.0.0.1", router.sshPort),
    at: "shell",
    looks: true,
    changes: [],
    mended: (scene, printed) => keyShown(scene, printed),
  },
  noPassword: {
    options: { users: [{ name: user, password: "" }, { name: "admin", password }] },
    find: () =>
      Promise.resolve({
        check: "login",
        state: "problem",
        found: "",
        fix: formatFix(routerFixes.noPassword(user)),
      }),
    entry: () => routerFixes.noPassword(user),
    fill: filled("password=…", `password="${password}"`),
    changes: [],
    mended: async ({ router, complaint }) => {
      assert.equal(await complaint("login"), undefined);
      assert.deepEqual(router.violations.list(), []);
    },
  },
  keyRefused: {
    spoil: (scene) => Deno.writeTextFile(`${scene.folder}/key`, keys.private),
    find: (scene) => scene.complaint("login", withKey(scene)),
    entry: () => routerFixes.keyRefused(user, "127.0.0.1"),
    prepare: (scene) => upload(scene, "driver.pub", keys.public),
    fill: filled("FILE.pub", "driver.pub"),
    changes: [/^\+ user\/ssh-keys .*"user":"rds-csi"/],
    mended: async (scene) => assert.equal(await scene.complaint("login", withKey(scene)), undefined),
  },
  keyUnusable: {
    spoil: async ({ folder }) => {
      await hostOutput("sh", ["-ec", `ssh-keygen -q -t ed25519 -N 'a passphrase' -f ${folder}/key`]);
    },
    find: (scene) => scene.complaint("login", withKey(scene)),
    entry: () => routerFixes.keyUnusable(user),
    at: "shell",
    fill: (command, { folder }) => `cd ${folder}; ${command}`,
    changes: [/^\+ user\/ssh-keys .*"user":"rds-csi"/, /^\+ file .*rds-csi-key.pub/],
    mended: async (scene) => {
      await upload(scene, "rds-csi-key.pub", await Deno.readTextFile(`${scene.folder}/rds-csi-key.pub`));
      const printed = formatFix(routerFixes.keyUnusable(user));
      await scene.type(/\/user\/ssh-keys\/import \S+ \S+/.exec(printed)![0]);
      assert.equal(await scene.complaint("login", withKey(scene, "rds-csi-key")), undefined);
    },
  },
  passwordRefused: {
    spoil: (scene) => type(scene, `/user/set ${user} password=another`),
    find: complaintOf("login"),
    entry: () => routerFixes.passwordRefused(user, "127.0.0.1"),
    fill: filled("password=…", `password="${password}"`),
    changes: [],
  },
  policy: {
    // The group from the quick start exists and lacks a policy; another user's group lacks the same one.
    spoil: async (scene) => {
      await type(
        scene,
        "/user/group/add name=rds-csi policy=ssh,read; /user/group/add name=look policy=ssh,read",
      );
      await type(scene, `/user/add name=other group=look password=x; /user/set ${user} group=rds-csi`);
    },
    find: complaintOf("policy"),
    entry: () => routerFixes.policy(user),
    changes: [
      /^- user\/group .*"name":"rds-csi".*!write/,
      /^\+ user\/group .*"name":"rds-csi","policy":"ssh,read,write,!/,
    ],
  },
  policyUnclear: {
    find: () => Promise.resolve(judgePolicy('"amber kettle"', user)),
    entry: () => routerFixes.policyUnclear(),
    looks: true,
    changes: [],
  },
  sessions: {
    options: { behaviours: { maxSessions: 3 } },
    find: complaintOf("ssh-sessions"),
    entry: () => routerFixes.sessions(),
    changes: [/^- ip\/service .*"max-sessions":3/, /^\+ ip\/service .*"max-sessions":20/],
  },
  portOpen: {
    find: complaintOf("firewall"),
    entry: () => routerFixes.portOpen(4420, true, true),
    fill: filled("NODES", node),
    changes: [
      /^\+ ip\/firewall\/filter .*"passthrough"/,
      /^\+ ip\/firewall\/filter .*"accept".*"dst-port":"4420".*"src-address":"10.1.2.3"/,
      /^\+ ip\/firewall\/filter .*"drop".*"dst-port":"4420"/,
      /^\+ ipv6\/firewall\/filter .*"passthrough"/,
      /^\+ ipv6\/firewall\/filter .*"drop".*"dst-port":"4420"/,
    ],
    // What is left of the check is SSH, which this does not concern.
    mended: async ({ complaint }) => assert.match((await complaint("firewall"))!.found, /^SSH/),
  },
  portClosed: {
    spoil: (scene) => type(scene, onlyIpv4),
    find: complaintOf("firewall"),
    entry: () => routerFixes.portClosed(4420),
    fill: filled("NODES", node),
    changes: [/^\+ ip\/firewall\/filter .*"accept".*"dst-port":"4420".*"src-address":"10.1.2.3"/],
  },
  sshOpen: {
    spoil: (scene) => type(scene, `${onlyIpv4} protocol=tcp dst-port=4420 src-address=!10.0.0.0/8`),
    find: complaintOf("firewall"),
    entry: () => routerFixes.sshOpen("available-from"),
    fill: filled("NODES", `${node},127.0.0.1`),
    changes: [
      /^- ip\/service .*"available-from":""/,
      /^\+ ip\/service .*"available-from":"10.1.2.3,127.0.0.1"/,
    ],
  },
  sshExploited: {
    options: { profile: { ...getProfile("ros-7.24"), version: "7.24.1 (stable)" } },
    find: complaintOf("version"),
    entry: () => routerFixes.sshExploited(user, "available-from"),
    fill: filled("NODES", "127.0.0.1"),
    changes: [
      ...[/^- ip\/service .*"available-from":""/, /^\+ ip\/service .*"available-from":"127.0.0.1"/],
      ...[/^- user .*"address":""/, /^\+ user .*"address":"127.0.0.1".*"name":"rds-csi"/],
    ],
    // Only the upgrade itself mends it; until then SSH is limited.
    mended: async ({ complaint }) => assert.equal(await complaint("login"), undefined),
  },
  packageDisabled: {
    spoil: (scene) => scene.control("PUT /package", { state: "disabled" }),
    find: complaintOf("package"),
    entry: () => routerFixes.packageDisabled("rose-storage"),
    changes: [/^- system\/package .*"disabled":true/, /^\+ system\/package .*"disabled":false/],
  },
  packageMissing: {
    spoil: (scene) => scene.control("PUT /package", { state: "missing" }),
    find: complaintOf("package"),
    entry: () => routerFixes.packageMissing("rose-storage"),
    prepare: (scene) => upload(scene, "rose-storage-7.24-arm64.npk", "a package"),
    changes: [/^\+ system\/package .*"rose-storage"/],
  },
  clockUnknown: {
    find: () => Promise.resolve(judgeClock(undefined, 0)),
    entry: () => routerFixes.clockUnknown(),
    looks: true,
    changes: [],
  },
  clockOff: {
    find: () => Promise.resolve(judgeClock(0, 3_600_000)),
    entry: () => routerFixes.clockOff(),
    looks: true,
    changes: [],
  },
  poolLook: {
    spoil: (scene) => scene.control("PATCH /disks/storage-pool", { state: "degraded" }),
    find: complaintOf("pool"),
    entry: () => routerFixes.poolLook("storage-pool"),
    looks: true,
    changes: [],
    mended: (_, printed) => Promise.resolve(assert.match(printed, /state="degraded"/)),
  },
  btrfsLook: {
    spoil: (scene) =>
      scene.control("PATCH /filesystems/storage-pool-fs", { devs: ["storage-pool", "missing"] }),
    find: complaintOf("drives"),
    entry: () => routerFixes.btrfsLook(),
    looks: true,
    changes: [],
    mended: (_, printed) => Promise.resolve(assert.match(printed, /MISSING-DEVS.*devs=storage-pool;missing/)),
  },
  labelLook: {
    spoil: (scene) =>
      scene.control("POST /disks", {
        slot: "pvc-x",
        "file-path": "/storage-pool/x.img",
        size: 5,
        "fs-label": "storage-pool-fs",
      }),
    find: complaintOf("pool"),
    entry: () => routerFixes.labelLook("storage-pool-fs"),
    looks: true,
    changes: [],
    mended: (_, printed) => Promise.resolve(assert.match(printed, /pvc-x/)),
  },
  poolTwice: {
    spoil: async (scene) => {
      await scene.control("PATCH /disks/storage-pool", { "fs-uuid": "40437dbc" });
      const drive = { slot: "nvme9", size: 5, "fs-uuid": "40437dbc", "fs-label": "storage-pool-fs" };
      await scene.control("POST /disks", drive);
    },
    find: complaintOf("pool"),
    entry: () => routerFixes.poolTwice("nvme9", "nvme9"),
    changes: [/^- disk .*"mounted":true.*"slot":"nvme9"/, /^\+ disk .*"slot":"nvme9"/],
  },
  poolUnmounted: {
    options: { pools: [{ name: "storage-pool" }, { name: "other" }] },
    spoil: (scene) => scene.control("PATCH /disks/other", { mounted: false }),
    find: complaintOf("pool"),
    entry: () => routerFixes.poolUnmounted("other"),
    changes: [/^- disk .*"slot":"other"/, /^\+ disk .*"mounted":true.*"slot":"other"/, /^\+ file .*"other"/],
  },
  folderMissing: {
    find: (scene) => scene.complaint("base-path", deepPath),
    entry: () => routerFixes.folderMissing("storage-pool/a"),
    changes: [/^\+ file .*"storage-pool\/a","type":"directory"/],
    mended: async (scene) => assert.equal(await scene.complaint("base-path", deepPath), undefined),
  },
  shareOn: {
    options: { pools: [{ name: "storage-pool" }, { name: "share" }] },
    find: (scene) => scene.complaint("share", ofDirectories),
    entry: () => routerFixes.shareOn("share"),
    changes: [/^- disk .*"slot":"share"/, /^\+ disk .*"nfs-sharing":true.*"slot":"share"/],
    mended: async (scene) => assert.equal(await scene.complaint("share", ofDirectories), undefined),
  },
  shareOff: {
    spoil: (scene) => type(scene, "/disk/set storage-pool nfs-sharing=yes smb-sharing=yes media-sharing=yes"),
    find: complaintOf("share"),
    entry: () => routerFixes.shareOff("storage-pool", "nfs-sharing", "smb-sharing", "media-sharing"),
    changes: [/^- disk .*"storage-pool","smb-sharing":true/, /^\+ disk (?!.*sharing).*"slot":"storage-pool"/],
  },
  autoSharingOff: {
    spoil: (scene) => type(scene, "/disk/settings/set auto-smb-sharing=yes auto-media-sharing=yes"),
    find: complaintOf("share"),
    entry: () => routerFixes.autoSharingOff(),
    changes: [],
  },
  recordDamaged: {
    spoil: async (scene) => {
      const disk = {
        slot: "pvc-damaged",
        "file-path": "/storage-pool/metal-csi/pvc-damaged.img",
        "file-size": "1048576",
      };
      await scene.control("POST /disks", { ...disk, comment: "{rds1 c=1}" });
    },
    find: complaintOf("disks"),
    entry: () => routerFixes.recordDamaged("pvc-damaged"),
    fill: filled('"…"', JSON.stringify(aDisk(aRecord(), { id: "pvc-damaged" }).comment)),
    changes: [/^- disk .*\{rds1 c=1\}/, /^\+ disk .*"comment":"\{rds1 c=9f86d081 .*"slot":"pvc-damaged"/],
  },
  hostList: {
    spoil: async (scene) => {
      const disk = { slot: "pvc-listed", "file-path": "/storage-pool/metal-csi/pvc-listed.img", size: 5 };
      const { comment } = aDisk(aRecord(), { id: "pvc-listed" });
      const port = { "nvme-tcp-server-port": "4420" };
      const hosts = { "nvme-tcp-server-allow-host-name": "nqn.2014-08.org.example:host" };
      await scene.control("POST /disks", { ...disk, ...port, ...hosts, comment });
    },
    find: complaintOf("disks"),
    entry: () => routerFixes.hostList("pvc-listed"),
    changes: [
      /^- disk .*"nvme-tcp-server-allow-host-name":"nqn.2014-08.org.example:host".*"slot":"pvc-listed"/,
      /^\+ disk .*"slot":"pvc-listed"/,
    ],
  },
  exportsLook: {
    spoil: (scene) => exportOne(scene, "9"),
    find: (scene) => scene.complaint("nvme-port", { "nvme-port": "9" }),
    entry: () => routerFixes.exportsLook(),
    looks: true,
    changes: [],
    mended: (_, printed) => Promise.resolve(assert.match(printed, / pvc-x /)),
  },
};

const onlyIpv4 = "/ipv6/settings/set disable-ipv6=yes; /ip/firewall/filter/add chain=input action=drop ";
const ofDirectories = { "kind": "directory", "base-path": "/share/k8s" };
const deepPath = { "base-path": "/storage-pool/a/b" };

async function type(scene: Scene, command: string): Promise<void> {
  await scene.type(command);
}

function withKey({ folder }: Scene, name = "key"): Flags {
  return { "rds-password-file": undefined, "rds-key": `${folder}/${name}` };
}

async function upload(scene: Scene, name: string, contents: string): Promise<void> {
  await scene.control("POST /files", { name, type: "file", contents });
}

async function exportOne(scene: Scene, port = "4420"): Promise<void> {
  const disk = { slot: "pvc-x", "file-path": "/storage-pool/x.img", size: 5, "nvme-tcp-export": true };
  await scene.control("POST /disks", { ...disk, "nvme-tcp-server-port": port });
}

async function keyShown({ router }: Scene, printed: string): Promise<void> {
  await Promise.resolve(assert.ok(printed.includes(router.hostKeyPublic.split(" ")[1]!), printed));
}

/** An entry of a table, called with sample arguments. */
function sample(entry: (...args: never[]) => Fix): Fix {
  return (entry as (...args: unknown[]) => Fix)("sample", "sample", "sample");
}

const withCommands = (table: Readonly<Record<string, (...args: never[]) => Fix>>) =>
  Object.entries(table).filter(([, entry]) => sample(entry).commands.length > 0).map(([name]) => name);

Deno.test("every fix with a command is tried", () => {
  assert.deepEqual(Object.keys(trials).toSorted(), withCommands(routerFixes).toSorted());
  // tests/node/fixes_test.ts tries the fixes of a node.
  assert.deepEqual(withCommands(nodeFixes).toSorted(), ["loadTransport", "propagation"]);
});

Deno.test("a fix without a command names none, and fixes are made in the tables only", async () => {
  for (const [name, entry] of Object.entries({ ...routerFixes, ...nodeFixes })) {
    const fix = sample(entry as (...args: never[]) => Fix);
    if (fix.commands.length === 0) {
      assert.doesNotMatch(formatFix(fix), /(^|\s)\/(ip|user|disk|system|file)\/|modprobe|mount --/, name);
    }
  }
  for (const folder of ["src/doctor/router", "src/doctor/node", "src/cli/doctor"]) {
    for await (const { name } of Deno.readDir(folder)) {
      if (!name.endsWith(".ts") || name === "fixes.ts" || name.endsWith("_test.ts")) continue;
      assert.doesNotMatch(
        await Deno.readTextFile(`${folder}/${name}`),
        /\bcommands\s*:|\badvice\(|\bfix:\s*["'`]/,
        name,
      );
    }
  }
});

for (const [name, trial] of Object.entries(trials)) {
  Deno.test(`the fix ${name} mends what it is printed for, and changes nothing else`, () =>
    withScene(trial.options ?? {}, async (scene) => {
      await trial.spoil?.(scene);
      const finding = await trial.find(scene);
      const entry = trial.entry(scene);
      assert.equal(finding?.fix, formatFix(entry), "it is printed");
      await trial.prepare?.(scene);
      const before = await configuration(scene);
      let printed = "";
      for (const command of entry.commands) {
        const typed = trial.fill?.(command, scene) ?? command;
        printed += trial.at === "shell" ? await hostOutput("sh", ["-ec", typed]) : await scene.type(typed);
      }
      if (!trial.looks && trial.mended === undefined) {
        assert.equal((await trial.find(scene))?.fix, undefined, "it is mended");
      }
      await trial.mended?.(scene, printed);
      const changed = differences(before, await configuration(scene));
      assert.equal(changed.length, trial.changes.length, changed.join("\n"));
      for (const form of trial.changes) {
        assert.ok(changed.some((line) => form.test(line)), `${form}: ${changed.join("\n")}`);
      }
    }));
}

Deno.test("the fix policy makes the group where there is none, and leaves the group that the user was in", () =>
  withScene({}, async (scene) => {
    await type(scene, `/user/group/add name=look policy=ssh,read; /user/set ${user} group=look`);
    assert.notEqual(await scene.complaint("policy"), undefined);
    const before = await configuration(scene);
    for (const command of routerFixes.policy(user).commands) await scene.type(command);
    assert.equal(await scene.complaint("policy"), undefined);
    const changed = differences(before, await configuration(scene));
    const forms = [
      /^- user .*"group":"look"/,
      /^\+ user .*"group":"rds-csi"/,
      /^\+ user\/group .*"name":"rds-csi"/,
    ];
    assert.equal(changed.length, forms.length, changed.join("\n"));
    for (const form of forms) assert.ok(changed.some((line) => form.test(line)), changed.join("\n"));
  }));

const secrets: readonly (readonly [what: string, write: (folder: string) => Promise<void>, fix: Fix])[] = [
  ["is missing", () => Promise.resolve(), routerFixes.secretMissing("rds-key")],
  [
    "is the public half",
    (folder) => Deno.writeTextFile(`${folder}/key`, keys.public),
    routerFixes.keyPublic(),
  ],
  ["is none", (folder) => Deno.writeTextFile(`${folder}/key`, "no key"), routerFixes.keyUnusable(user)],
  ["is of the type ECDSA", async (folder) => {
    await hostOutput("sh", ["-ec", `ssh-keygen -q -t ecdsa -m PEM -N '' -f ${folder}/key`]);
  }, routerFixes.keyUnusable(user)],
];

for (const [what, write, fix] of secrets) {
  Deno.test(`doctor says what to do when the key file ${what}`, () =>
    withScene({}, async (scene) => {
      await write(scene.folder);
      const finding = await scene.complaint("login", withKey(scene));
      assert.equal(finding?.fix, formatFix(fix));
    }));
}

Deno.test("doctor says where to look for a pool on a router that has none", () => {
  assert.deepEqual(
    judgePools([], { basePaths: [], overcommit: 1 }).map(({ fix }) => fix),
    ["/disk/print detail"],
  );
});

Deno.test("the RouterOS commands that errors.md and alerts.md name are understood, and change nothing", () =>
  withScene({}, async (scene) => {
    const pages = ["docs/reference/errors.md", "docs/reference/alerts.md"].map(readPage);
    const named = pages.flatMap((
      { text },
    ) => [...text.matchAll(/`(\/(?:disk|file|ip|system|user)\/[^`]*)`/g)]);
    assert.ok(named.length >= 2, "the pages name some");
    const before = await configuration(scene);
    for (const [, command] of named) await scene.type(command!);
    assert.deepEqual(await configuration(scene), before);
  }));
