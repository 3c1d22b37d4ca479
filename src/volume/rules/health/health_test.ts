import assert from "node:assert/strict";
import {
  aDisk,
  aHolder,
  aPool,
  aRecord,
  aSnapshotId,
  plainImage,
  subvolumeImage,
  testBase,
  testCluster,
  testPrefix,
} from "../../../../tests/fakes/records.ts";
import { LookCounter } from "../../../../tests/fakes/look_counter.ts";
import type { HealthStatus } from "../../model/health/health.ts";
import { judgeHealth } from "./health.ts";
import type { FileView, Inventory, Pool, StoredFile, StoredVolume } from "../../model/inventory.ts";

const bases = [testBase, "/pool/more"];
const epoch = { counter: 3, nonce: "0123abcd" };
const held = aDisk(aRecord({ epoch, holders: [aHolder("a")] }));
const idle = aDisk(aRecord());
const pool = aPool();
const file = (path: string, sizeBytes = idle.sizeBytes): StoredFile => ({
  path,
  sizeBytes,
  directory: false,
});

/** A router with these disks, and an image for each. */
function view(
  volumes: readonly StoredVolume[],
  over: Partial<Inventory & FileView> = {},
): Inventory & FileView {
  const files = volumes.map((disk) => file(disk.imagePath, disk.sizeBytes));
  return { volumes, files, pools: [pool], upMs: 86_400_000, ...over };
}

function problemsOf(seen: Inventory & FileView): [HealthStatus, string][] {
  const health = judgeHealth(seen, testCluster, bases).find(({ id }) => id === "pvc-1");
  return (health ?? assert.fail("not judged")).problems.map(({ status, reason }) => [status, reason]);
}

Deno.test("judgeHealth() finds no problem of healthy volumes", () => {
  const volumes = [
    idle,
    aDisk(aRecord({ epoch, holders: [aHolder("a")] }), { id: "pvc-2" }),
    aDisk(aRecord({ epoch }), { id: "pvc-3", imagePath: plainImage("pvc-3") }),
    aDisk(aRecord(), { id: "pvc-4", imagePath: subvolumeImage("pvc-4", "/pool/more") }),
  ];
  const seen = judgeHealth(view(volumes), testCluster, bases);
  assert.deepEqual(seen, volumes.map(({ id }) => ({ id, problems: [] })));
});

Deno.test("judgeHealth() takes a pool whose row cannot be read for no pool that is away", () => {
  const unreadablePools = [{ mountPoint: "pool", reason: "no size" }];
  assert.deepEqual(problemsOf(view([idle], { pools: [], files: [], unreadablePools })), [
    ["DEGRADED", "DiskUnreadable"],
  ]);
});

Deno.test("judgeHealth() names each problem", () => {
  const other = { ...idle, id: "disk1", comment: "" };
  const away = view([idle], { pools: [{ ...pool, mountPoint: "other" }], files: [] });
  const cases: [string, Inventory & FileView, [HealthStatus, string][]][] = [
    ["the image is gone", view([idle], { files: [] }), [["DATA_LOSS", "ImageMissing"]]],
    [
      "a folder in place of the image",
      view([idle], { files: [{ ...file(idle.imagePath), directory: true }] }),
      [["DATA_LOSS", "ImageMissing"]],
    ],
    ["the pool is away", away, [["INACCESSIBLE", "PoolNotMounted"]]],
    [
      "the image is shorter",
      view([idle], { files: [file(idle.imagePath, 5n)] }),
      [["DATA_LOSS", "ImageTooSmall"]],
    ],
    [
      "the image is longer",
      view([idle], { files: [file(idle.imagePath, idle.sizeBytes + 1n)] }),
      [["DEGRADED", "SizeMismatch"]],
    ],
    ["another file", view([{ ...idle, imagePath: "/pool/csi/x.img" }]), [["INACCESSIBLE", "ForeignImage"]]],
    ["off while it is held", view([{ ...held, exported: false }]), [["INACCESSIBLE", "NotExported"]]],
    [
      "exported under another NQN",
      view([{ ...held, exportNqn: `${testPrefix}:pvc-1:2-0123abcd` }]),
      [["INACCESSIBLE", "ExportedDifferently"]],
    ],
    ["on without a holder", view([{ ...idle, exported: true }]), [["DEGRADED", "ExportedWithoutHolder"]]],
    ["a second disk on the image", view([idle, other]), [["DEGRADED", "ImageShared"]]],
    ["its record is gone", view([{ ...idle, comment: "" }]), [["INACCESSIBLE", "RecordDamaged"]]],
    [
      "its record is damaged",
      view([{ ...idle, comment: idle.comment.replace("b=1", "b=2") }]),
      [["INACCESSIBLE", "RecordDamaged"]],
    ],
    ["its disk cannot be read", view([{ ...idle, unreadable: "no size" }]), [["DEGRADED", "DiskUnreadable"]]],
    ["its disk is gone", view([], { files: [file(subvolumeImage("pvc-1"))] }), [[
      "INACCESSIBLE",
      "DiskMissing",
    ]]],
    ["its disk is gone, a file", view([], { files: [file(plainImage("pvc-1"))] }), [
      ["INACCESSIBLE", "DiskMissing"],
    ]],
    [
      "several at once",
      view([{ ...held, exported: false }, other], {
        files: [file(idle.imagePath, 5n)],
        pools: [{ ...pool, state: "degraded" }],
      }),
      [
        ["DEGRADED", "PoolDegraded"],
        ["DATA_LOSS", "ImageTooSmall"],
        ["INACCESSIBLE", "NotExported"],
        ["DEGRADED", "ImageShared"],
      ],
    ],
  ];
  for (const [name, seen, problems] of cases) assert.deepEqual(problemsOf(seen), problems, name);
});

Deno.test("judgeHealth() reports what the router itself does, or may do, with the disk", () => {
  const used = view([{ ...idle, routerUses: ["it is swap space"], mayBeMounted: true }]);
  assert.deepEqual(problemsOf(used), [["DEGRADED", "UsedByRouter"]]);
  const [health] = judgeHealth(used, testCluster, bases);
  assert.match(health!.problems[0]!.message, /it is swap space/);
  assert.deepEqual(problemsOf(view([{ ...held, mayBeMounted: true }])), [["DEGRADED", "MayBeMounted"]]);
});

Deno.test("judgeHealth() calls a pool degraded whose state does not begin with a sound one, or an array below it", () => {
  const seen = (own: Partial<Pool>) => problemsOf(view([idle], { pools: [{ ...pool, ...own }] }));
  const sound = ["", "clean", "active", "active-idle", "read-auto", "write-pending", "clean, resync = 3%"];
  for (const state of sound) assert.deepEqual(seen({ state }), [], state);
  const degraded = [["DEGRADED", "PoolDegraded"]];
  const others = ["degraded", "recovering", "inactive", "CLEAN", "failed", "degraded, recovery = 3%"];
  for (const state of others) assert.deepEqual(seen({ state }), degraded, state);
  assert.deepEqual(seen({ unsoundArrays: [{ slot: "m0", state: "degraded" }] }), degraded);
});

Deno.test("judgeHealth() does not judge what is not this cluster's", () => {
  const legacyId = "pvc-0f8fad5b-d9cb-469f-a165-70867728950e";
  const disks = [
    aDisk(aRecord({ cluster: "ffffffff" })),
    { ...idle, comment: "", imagePath: "/pool/csi/precious.img" },
    { ...idle, comment: "", imagePath: `/pool/elsewhere/pvc-1.${testCluster}.img` },
    { ...idle, comment: "{rds1 }", imagePath: "/pool/csi/precious.img" },
    aDisk(aRecord(), {
      id: legacyId,
      imagePath: `/pool/csi/${legacyId}.img`,
      exported: true,
      exportNqn: `${testPrefix}:${legacyId}`,
      comment: "",
    }),
  ];
  for (const disk of disks) {
    assert.deepEqual(judgeHealth(view([disk], { files: [] }), testCluster, bases), [], disk.imagePath);
  }
});

Deno.test("judgeHealth() mistakes no other file for a volume that has lost its disk", () => {
  const others = [
    file(`${testBase}/pvc-1.ffffffff.img`),
    file(`/pool/elsewhere/pvc-1.${testCluster}.img`),
    file(`${testBase}/deep/pvc-1.${testCluster}.img`),
    file(`${testBase}/pvc-1.${testCluster}.img.0123abcd.part`),
    file(`${testBase}/pvc-1.${testCluster}.img.bak`),
    file(`${testBase}/pvc-1.${testCluster}/notes.txt`),
    file(`${testBase}/${aSnapshotId("s")}.pvc-1.1.n.${testCluster}.img`),
    file(`${testBase}/${aSnapshotId("s")}.pvc-1.1.n.${testCluster}/disk.img`),
    file(`${testBase}/-a.${testCluster}.img`),
    file(`${testBase}/${"x".repeat(33)}.${testCluster}.img`),
    { ...file(`${testBase}/pvc-1.${testCluster}`), directory: true },
    { ...file(plainImage("pvc-1")), directory: true },
  ];
  for (const one of others) {
    assert.deepEqual(judgeHealth(view([], { files: [one] }), testCluster, bases), [], one.path);
  }
  const known = view([idle], { files: [file(idle.imagePath), file(plainImage("pvc-1"))] });
  assert.deepEqual(problemsOf(known), []);
});

Deno.test("judgeHealth() finds a lost disk also in an allowed folder that lies in another one", () => {
  const inner = `${testBase}/inner`;
  for (const path of [plainImage("pvc-1", inner), subvolumeImage("pvc-1", inner)]) {
    const health = judgeHealth(view([], { files: [file(path)] }), testCluster, [testBase, inner]);
    assert.deepEqual(health.map(({ id, problems }) => [id, problems.length]), [["pvc-1", 1]], path);
  }
});

Deno.test("judgeHealth() judges only what a call could name, each once, in order", () => {
  const odd = ["My disk", "-a", "x".repeat(33)].map((id) => aDisk(aRecord(), { id, exported: true }));
  assert.deepEqual(judgeHealth(view(odd), testCluster, bases), []);
  const lost = ["pvc-3", "pvc-1", "pvc-2"].flatMap((id) => [
    file(subvolumeImage(id)),
    file(plainImage(id)),
    file(plainImage(id, "/pool/more")),
  ]);
  const health = judgeHealth(view([aDisk(aRecord(), { id: "pvc-4" })], { files: lost }), testCluster, bases);
  assert.deepEqual(health.map(({ id, problems }) => [id, problems.length]), [
    ["pvc-1", 3],
    ["pvc-2", 3],
    ["pvc-3", 3],
    ["pvc-4", 1],
  ]);
});

Deno.test("judgeHealth() names the nodes that have held a volume since before the router started", () => {
  const since = (nodeId: string, sinceSeconds: number) => aHolder(nodeId, { sinceSeconds });
  const disk = aDisk(aRecord({ epoch, holders: [since("a", 1000), since("b", 1090), since("c", 1100)] }));
  const at = (atMs?: number, isLayered = false) => {
    const boot = atMs === undefined ? undefined : { atMs, isLayered: () => isLayered };
    return judgeHealth(view([disk]), testCluster, bases, boot)[0]!.problems;
  };
  assert.deepEqual(at(), [], "a router that keeps identities");
  assert.deepEqual(at(1_004_000), [], "an uptime is told in whole seconds");
  assert.deepEqual(at(1_096_000, true), [], "nodes with a device layer");
  const [problem, ...more] = at(1_096_000);
  assert.deepEqual([problem?.status, problem?.reason, more], ["DEGRADED", "RouterRestarted", []]);
  assert.match(
    problem!.message,
    /delete the pods that have run since before 1970-01-01T00:18:16\.000Z, unless .* let them wait: node=a, b$/,
  );
});

Deno.test("judgeHealth() looks at each disk and each file a few times, however many there are", () => {
  const looksAmong = (count: number) => {
    const disks = Array.from({ length: count }, (_, index) => aDisk(aRecord(), { id: `pvc-${index}` }));
    const files = disks.map(({ imagePath }) => file(imagePath));
    const counter = new LookCounter();
    const seen = view(disks.map(counter.counted), { files: files.map(counter.counted) });
    counter.looks = 0;
    assert.deepEqual(judgeHealth(seen, testCluster, bases).flatMap(({ problems }) => problems), []);
    return counter.looks;
  };
  assert.equal(looksAmong(1000), 100 * looksAmong(10));
});
