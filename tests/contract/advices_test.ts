// Every fix of `rds-csi doctor` for a router that is a flag, or something that only a person does: whoever follows it
// gets rid of the finding. A new entry without a trial fails here.
import assert from "node:assert/strict";
import { routerFixes } from "../../src/doctor/router/fixes.ts";
import { formatProfile } from "../../src/router_profile/profile.ts";
import { getProfile } from "../../src/simulator/profile.ts";
import type { SimulatorOptions } from "../../src/simulator/simulator.ts";
import { type Fix, formatFix } from "../../src/volume/model/finding.ts";
import { aDisk, aRecord } from "../fakes/records.ts";
import { makeSshKeys } from "../fakes/ssh_keys.ts";
import { type Flags, node, type Scene, user, withScene } from "./_fix_scene.ts";

/** How an advice is tried. */
interface Trial {
  readonly options?: Partial<SimulatorOptions>;
  readonly check: string;
  /** Causes the fault. */
  spoil?(scene: Scene): Promise<void>;
  /** The flags with the fault, beside those of the scene. */
  readonly wrong?: (scene: Scene) => Flags;
  readonly advice: () => Fix;
  /** What a person does who follows it. */
  follow?(scene: Scene): Promise<void>;
  /** The flags of a person who follows it, beside those of the scene. */
  readonly right?: (scene: Scene) => Flags;
}

const pool = (change: unknown) => (scene: Scene) => scene.control("PATCH /disks/storage-pool", change);
const keys = makeSshKeys();
const keyFlags = (file: string) => ({ folder }: Scene) => ({
  "rds-password-file": undefined,
  "rds-key": `${folder}/${file}`,
});
/** The profile that a probe of such a router has written. */
const profileOf = (name: string) => ({ folder }: Scene) => {
  Deno.writeTextFileSync(`${folder}/profile.json`, formatProfile({ ...getProfile(name), answers: {} }));
  return { "router-profile": `${folder}/profile.json` };
};
const keyImport = `/user/ssh-keys/import user=${user} public-key-file=key.pub`;
const pools = [{ name: "storage-pool" }, { name: "share", nfsSharing: true }];
const ofDirectories = { kind: "directory", "base-path": "/share/k8s" };

const trials: Readonly<Record<string, Trial>> = {
  address: {
    check: "reach",
    wrong: () => ({ "rds-address": "fe80::1" }),
    advice: () => routerFixes.address(),
  },
  name: { check: "reach", wrong: () => ({ "rds-address": "no.invalid" }), advice: () => routerFixes.name() },
  nvmeName: {
    check: "nvme-port",
    wrong: () => ({ "nvme-address": "no.invalid" }),
    advice: () => routerFixes.nvmeName(),
  },
  credentials: {
    check: "login",
    wrong: () => ({ "rds-password-file": undefined }),
    advice: () => routerFixes.credentials(),
  },
  secretMissing: {
    check: "login",
    wrong: ({ folder }) => ({ "rds-password-file": `${folder}/none` }),
    advice: () => routerFixes.secretMissing("rds-password-file"),
  },
  keyPublic: {
    check: "login",
    spoil: async (scene) => {
      await Deno.writeTextFile(`${scene.folder}/key`, keys.private);
      await Deno.writeTextFile(`${scene.folder}/key.pub`, keys.public);
      await scene.control("POST /files", { name: "key.pub", type: "file", contents: keys.public });
      await scene.type(keyImport);
    },
    wrong: keyFlags("key.pub"),
    advice: () => routerFixes.keyPublic(),
    right: keyFlags("key"),
  },
  poolLabel: {
    check: "pool",
    spoil: pool({ "fs-label": "" }),
    advice: () => routerFixes.poolLabel(),
    follow: pool({ "fs-label": "another" }),
  },
  poolFull: {
    check: "pool",
    spoil: pool({ free: 0 }),
    advice: () => routerFixes.poolFull(),
    follow: pool({ free: 2 ** 40 }),
  },
  poolCopy: {
    options: { pools: [{ name: "storage-pool" }, { name: "other" }] },
    check: "pool",
    spoil: (scene) => scene.control("PATCH /disks/other", { mounted: false, "fs-label": "storage-pool-fs" }),
    advice: () => routerFixes.poolCopy("storage-pool"),
    follow: (scene) => scene.control("PATCH /disks/other", { mounted: true, "fs-label": "another" }),
  },
  overcommit: {
    options: { profile: "xfs-pool" },
    check: "pool",
    wrong: () => ({ overcommit: "1.5" }),
    advice: () => routerFixes.overcommit(),
    right: () => ({ overcommit: "1" }),
  },
  probeAgain: {
    check: "profile",
    wrong: profileOf("ros-7.21"),
    advice: () => routerFixes.probeAgain(),
    right: profileOf("ros-7.24"),
  },
  basePath: {
    check: "base-path",
    spoil: (scene) => scene.control("POST /files", { name: "storage-pool/f", type: "file", contents: "" }),
    wrong: () => ({ "base-path": "/storage-pool/f" }),
    advice: () => routerFixes.basePath("/storage-pool/f.d"),
    right: () => ({ "base-path": "/storage-pool/f.d" }),
  },
  poolAway: {
    check: "base-path",
    wrong: () => ({ "base-path": "/usb1/csi" }),
    advice: () => routerFixes.poolAway("usb1", "/storage-pool/metal-csi"),
    right: () => ({ "base-path": "/storage-pool/metal-csi" }),
  },
  ownShare: {
    options: { pools: [...pools, { name: "own", nfsSharing: true }] },
    check: "share",
    spoil: (scene) => scene.control("POST /disks", { slot: "pvc-x", "file-path": "/share/x.img", size: 5 }),
    wrong: () => ofDirectories,
    advice: () => routerFixes.ownShare(),
    right: () => ({ ...ofDirectories, "base-path": "/own/k8s" }),
  },
  clusterId: {
    check: "disks",
    wrong: () => ({ "cluster-id": undefined }),
    advice: () => routerFixes.clusterId(),
  },
};

/** Advices that are followed elsewhere, or by nothing that a test could do. */
const elsewhere: Readonly<Record<string, string>> = {
  moreBasePaths: "directories_doctor_test.ts",
  legacySnapshots: "controller_legacy_snapshots_test.ts lists them",
  probeLeftovers: "doctor_probe_stop_test.ts removes them",
  otherRouter: "no simulated router can be replaced",
};

Deno.test("every advice is followed by a test", () => {
  const isAdvice = (entry: (...args: never[]) => Fix) =>
    (entry as (...args: unknown[]) => Fix)("sample", "sample", "sample").commands.length === 0;
  const all = Object.entries(routerFixes).filter(([, entry]) => isAdvice(entry)).map(([name]) => name);
  assert.deepEqual([...Object.keys(trials), ...Object.keys(elsewhere)].toSorted(), all.toSorted());
});

for (const [name, trial] of Object.entries(trials)) {
  Deno.test(`whoever follows the advice ${name} gets rid of its finding`, () =>
    withScene(trial.options ?? {}, async (scene) => {
      await trial.spoil?.(scene);
      const finding = await scene.complaint(trial.check, trial.wrong?.(scene) ?? {});
      assert.equal(finding?.fix, formatFix(trial.advice()), JSON.stringify(finding));
      await trial.follow?.(scene);
      const left = await scene.complaint(trial.check, trial.right?.(scene) ?? {});
      assert.equal(left?.fix, undefined, JSON.stringify(left));
    }));
}

for (const [credentials, spoil] of [["key", "10.0.0.0/8"], ["password", "10.0.0.0/8"]] as const) {
  Deno.test(`the fix of a refused ${credentials} adds the address of this machine, such as a pod's, to the user`, () =>
    withScene({}, async (scene) => {
      await Deno.writeTextFile(`${scene.folder}/key`, keys.private);
      await scene.control("POST /files", { name: "key.pub", type: "file", contents: keys.public });
      if (credentials === "key") await scene.type(keyImport);
      await scene.type(`/user/set ${user} address=${spoil}`);
      const flags = credentials === "key" ? keyFlags("key")(scene) : {};
      const { fix } = (await scene.complaint("login", flags))!;
      const entry = credentials === "key" ? routerFixes.keyRefused : routerFixes.passwordRefused;
      assert.equal(fix, formatFix(entry(user, "127.0.0.1")));
      assert.match(fix!, /the user's address .*127\.0\.0\.1, in a pod without masquerading the pod network/);
      await scene.type(entry(user, "127.0.0.1").commands[0]!.replace("NODES", `${spoil},127.0.0.1`));
      assert.equal(await scene.complaint("login", flags), undefined);
    }));
}

/** The rules of the quick start, for one node. */
const closedPorts = [
  "/ip/firewall/filter/add chain=input protocol=tcp dst-port=22 src-address=127.0.0.0/8 action=accept",
  `/ip/firewall/filter/add chain=input protocol=tcp dst-port=4420 src-address=${node} action=accept`,
  "/ip/firewall/filter/add chain=input protocol=tcp dst-port=22,4420 action=drop",
  "/ipv6/firewall/filter/add chain=input protocol=tcp dst-port=22,4420 action=drop",
];

for (
  const [from, flags, reach] of [
    ["a laptop, which the firewall keeps from the data", {}, { state: "silent", reason: "no answer" }],
    ["a controller's pod, before there is a volume", {}, { state: "refused", reason: "nobody listens" }],
    ["a node", { "node-id": "worker-1" }, { state: "open", ms: 1 }],
  ] as const
) {
  Deno.test(`the doctor has no warning about an ideal set-up from ${from}`, () =>
    withScene({}, async (scene) => {
      for (const rule of closedPorts) await scene.type(rule);
      if (reach.state !== "refused") {
        const disk = aDisk(aRecord(), { id: "pvc-x" });
        await scene.control("POST /disks", {
          slot: disk.id,
          "file-path": "/storage-pool/metal-csi/x.img",
          size: 5,
          comment: disk.comment,
          "nvme-tcp-export": true,
          "nvme-tcp-server-port": "4420",
        });
      }
      scene.reachData = () => Promise.resolve(reach);
      const findings = await scene.findings(flags);
      const faults = findings.filter(({ state }) => state !== "ok" && state !== "skipped");
      assert.deepEqual(faults, []);
      assert.deepEqual(findings.filter(({ fix }) => fix !== undefined), [], "nothing is to be mended");
    }));
}
