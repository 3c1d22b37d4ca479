import assert from "node:assert/strict";
import { aRecord } from "../../../tests/fakes/records.ts";
import type { Reach } from "../../host/network.ts";
import type { Finding } from "../../volume/model/finding.ts";
import { formatComment, newComment } from "../../volume/model/record.ts";
import type { StoredFile, StoredVolume } from "../../volume/model/inventory.ts";
import {
  judgeBasePath,
  judgeDisks,
  judgeNvmePort,
  judgePools,
  parsePoolDisks,
  type PoolDisk,
} from "./storage.ts";

const tebibyte = 1n << 40n;
const pool: PoolDisk = {
  slot: "raid1",
  filesystem: "btrfs",
  label: "pool",
  mounted: true,
  mountPoint: "pool",
  state: "clean",
  sizeBytes: 7n * tebibyte,
  freeBytes: 3n * tebibyte,
};

function ofPool(own: Partial<PoolDisk>): Finding {
  const [finding, ...more] = judgePools([{ ...pool, ...own }]);
  assert.deepEqual(more, []);
  return finding!;
}

const folder = (path: string): StoredFile => ({ path, directory: true, sizeBytes: 0n });
const basePath = (path: string, ...files: readonly StoredFile[]) => judgeBasePath(path, files, [pool]);

const disk = (id: string, comment: string, own: Partial<StoredVolume> = {}): StoredVolume => ({
  id,
  imagePath: `/pool/csi/${id}.img`,
  sizeBytes: 1n << 30n,
  exported: false,
  exportNqn: "",
  exportPort: 0,
  comment,
  ...own,
});

const exported = disk("pvc-1", "", { exported: true, exportNqn: "nqn", exportPort: 4420 });
const open: Reach = { state: "open", ms: 1 };
const refused: Reach = { state: "refused", reason: "ECONNREFUSED" };
const silent: Reach = { state: "silent", reason: "no answer within 5 s" };
const port = (reach: Reach, volumes?: readonly StoredVolume[]) =>
  judgeNvmePort({ address: "10.0.0.1", port: 4420, reach, volumes });

const cases: readonly (readonly [what: string, Finding, state: string, found: RegExp, fix?: RegExp])[] = [
  ["a clean pool", ofPool({}), "ok", /^\/pool: btrfs, label pool, clean, 3.0 TiB of 7.0 TiB free$/],
  ["a pool of bytes", ofPool({ sizeBytes: 1536n, freeBytes: 1023n }), "ok", /1023 B of 1.5 KiB free$/],
  ["a pool beyond units", ofPool({ sizeBytes: 1n << 62n, freeBytes: 1n << 62n }), "ok", /4096.0 PiB of/],
  ["a pool without a state", ofPool({ state: "" }), "ok", /label pool, 3.0 TiB/],
  ["a degraded pool", ofPool({ state: "degraded" }), "problem", /not clean/, /slot="raid1"/],
  ["Btrfs without a label", ofPool({ label: "" }), "warning", /no snapshots/],
  ["XFS without a label", ofPool({ label: "", filesystem: "xfs" }), "ok", /xfs/],
  ["a full pool", ofPool({ freeBytes: tebibyte / 4n }), "warning", /may not be there/],
  ["a folder that is there", basePath("/pool/csi", folder("/pool/csi")), "ok", /is there/],
  ["a folder that the first volume makes", basePath("/pool/csi"), "ok", /makes it/],
  ["a folder in a folder that is there", basePath("/pool/a/b", folder("/pool/a")), "ok", /makes it/],
  ["the pool itself", basePath("/pool"), "ok", /./],
  [
    "a folder in a missing one",
    basePath("/pool/a/b"),
    "problem",
    /only its last/,
    /\/file\/add type=directory name="pool\/a"/,
  ],
  [
    "a file",
    basePath("/pool/csi", { ...folder("/pool/csi"), directory: false }),
    "problem",
    /is a file/,
    /--base-path/,
  ],
  ["a folder on no pool", basePath("/other/csi"), "problem", /mounted is \/pool/, /--base-path \/pool\//],
  [
    "a folder on a lost pool",
    judgeBasePath("/pool/csi", [], [{ ...pool, mounted: false }]),
    "problem",
    /mounted is none/,
    /./,
  ],
  ["a port that answers", port(open, [exported]), "ok", /answers; exported there: 1/],
  ["a port that answers with nothing exported", port(open, []), "ok", /exported there: 0/],
  ["a port that answers who did not ask the router", port(open), "ok", /not known/],
  ["a port that refuses with nothing exported", port(refused, []), "ok", /as nothing is exported/],
  [
    "a port that refuses with an export on another",
    port(refused, [{ ...exported, exportPort: 4421 }]),
    "ok",
    /as nothing/,
  ],
  [
    "a port that refuses in spite of an export",
    port(refused, [exported]),
    "problem",
    /though it should not/,
    /export/,
  ],
  ["a port that refuses who did not ask the router", port(refused), "warning", /wrong place/],
  ["a port that is silent with nothing exported", port(silent, []), "warning", /no answer/, /firewall/],
  [
    "a port that is silent in spite of an export",
    port(silent, [exported]),
    "problem",
    /no answer/,
    /firewall/,
  ],
];

for (const [what, finding, state, found, fix = /^$/] of cases) {
  Deno.test(`doctor finds storage with ${what} to be: ${state}`, () => {
    assert.equal(finding.state, state);
    assert.match(finding.found, found);
    assert.match(finding.fix ?? "", fix);
  });
}

Deno.test("judgePools() misses the pools when none is mounted, and names a file system that could be", () => {
  const findings = judgePools([
    { ...pool, mounted: false, mountPoint: "" },
    { ...pool, slot: "nvme1", filesystem: "", mounted: false, mountPoint: "" },
  ]);
  assert.deepEqual(findings.map(({ state }) => state), ["warning", "problem"]);
  assert.match(findings[0]!.fix!, /slot="raid1"/);
});

Deno.test("parsePoolDisks() reads what a router says of hardware and of pools", () => {
  const said = {
    fs: "btrfs",
    "fs-label": "pool",
    mounted: "yes",
    "mount-point": "/pool",
    state: "clean",
    size: "10",
    free: 4,
  };
  const rows = [{ slot: "nvme1", fs: "-", size: 5 }, { slot: "raid1", ...said }];
  const bare = { slot: "nvme1", filesystem: "", label: "", mounted: false, mountPoint: "", state: "" };
  assert.deepEqual(parsePoolDisks(JSON.stringify(rows)), [
    { ...bare, sizeBytes: 5n, freeBytes: 0n },
    { ...pool, sizeBytes: 10n, freeBytes: 4n },
  ]);
});

const own = aRecord();
const comment = formatComment(newComment(own));
const volumes = [
  disk("pvc-1", comment),
  disk("pvc-2", comment),
  disk("pvc-3", formatComment(newComment({ ...own, cluster: "ffffffff" }))),
  disk("pvc-11111111-2222-3333-4444-555555555555", ""),
  disk("backup", "a person's"),
  disk("elsewhere", "", { imagePath: "/pool/other/x.img" }),
];
const settings = { basePaths: ["/pool/csi"], cluster: own.cluster };

Deno.test("judgeDisks() counts the disks by whose they are", () => {
  assert.deepEqual(judgeDisks(volumes, settings).map(({ state, found }) => [state, found]), [[
    "ok",
    "2 of this cluster, 1 of other clusters, 1 of the legacy Go driver, 1 of nobody in the base paths",
  ]]);
});

Deno.test("judgeDisks() names damaged records, the first few of many", () => {
  const damaged = Array.from({ length: 7 }, (_, i) => disk(`pvc-x${i}`, comment.replace("c=", "c=!")));
  const [, finding] = judgeDisks([...volumes, ...damaged], settings);
  assert.equal(finding!.state, "problem");
  assert.match(finding!.found, /^7 .*pvc-x0, pvc-x1, pvc-x2, pvc-x3, pvc-x4 and 2 more$/);
  assert.match(finding!.fix!, /slot="pvc-x0"/);
});

Deno.test("judgeDisks() does not take a cluster's disks for this one's when there is no --cluster-id", () => {
  const [finding] = judgeDisks(volumes, { ...settings, cluster: undefined });
  assert.equal(finding!.state, "warning");
  assert.match(finding!.found, /^3 of some cluster/);
});

Deno.test("judgeDisks() warns once of all snapshots of the legacy driver", () => {
  const ids = ["", "-at-1739800000"].map((end) => `snap-11111111-2222-3333-4444-555555555555${end}`);
  const [counted, finding, ...more] = judgeDisks([...volumes, ...ids.map((id) => disk(id, ""))], settings);
  assert.match(counted!.found, /1 of nobody in the base paths$/);
  assert.equal(finding!.state, "warning");
  assert.match(
    finding!.found,
    /^2 snapshots of the legacy Go driver \(0 exported\), .*no copy.*from-the-go-driver[.]md$/,
  );
  assert.match(finding!.fix!, /audit --foreign/);
  assert.deepEqual(more, []);
});
