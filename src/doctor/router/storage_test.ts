import assert from "node:assert/strict";
import { aRecord } from "../../../tests/fakes/records.ts";
import type { Reach } from "../../host/network.ts";
import type { Finding } from "../../volume/model/finding.ts";
import { formatComment, newComment } from "../../volume/model/record.ts";
import type { StoredFile, StoredVolume } from "../../volume/model/inventory.ts";
import type { PoolDisk } from "./pools.ts";
import { judgeBasePath, judgeDisks, judgeNvmePort } from "./storage.ts";

const pool: PoolDisk = {
  slot: "raid1",
  filesystem: "btrfs",
  label: "pool",
  mounted: true,
  mountPoint: "pool",
  state: "clean",
  sizeBytes: 7n << 40n,
  freeBytes: 3n << 40n,
  filesystemUuid: "",
  master: "",
  failed: false,
  exported: false,
  below: [],
};

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
  judgeNvmePort({ address: "10.0.0.1", port: 4420, reach, volumes, isNode: true });

const cases: readonly (readonly [what: string, Finding, state: string, found: RegExp, fix?: RegExp])[] = [
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
    "a folder on a pool that is not mounted, beside one that is",
    judgeBasePath("/lost/csi", [], [pool, { ...pool, slot: "lost", mountPoint: "", mounted: false }]),
    "problem",
    /mounted is \/pool/,
    /^if volumes are on \/lost, mount it again and leave --base-path as it is, .*; else set --base-path \/pool\//,
  ],
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
  ["a port that refuses with nothing exported", port(refused, []), "ok", /because nothing is exported/],
  [
    "a port that refuses with an export on another",
    port(refused, [{ ...exported, exportPort: 4421 }]),
    "ok",
    /because nothing/,
  ],
  [
    "a port that refuses in spite of an export",
    port(refused, [exported]),
    "problem",
    /although volumes are exported/,
    /export/,
  ],
  ["a port that refuses who did not ask the router", port(refused), "warning", /address is wrong/],
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

Deno.test("judgeDisks() counts the disks by owner", () => {
  assert.deepEqual(judgeDisks(volumes, settings).map(({ state, found }) => [state, found]), [[
    "ok",
    "2 of this cluster, 1 of other clusters, 1 of the legacy Go driver, 1 without a known owner in the base paths",
  ]]);
});

Deno.test("judgeDisks() names damaged records, the first few of many", () => {
  const damaged = Array.from({ length: 7 }, (_, i) => disk(`pvc-x${i}`, comment.replace("c=", "c=!")));
  const [, finding] = judgeDisks([...volumes, ...damaged], settings);
  assert.equal(finding!.state, "problem");
  assert.match(finding!.found, /^7 .*pvc-x0, pvc-x1, pvc-x2, pvc-x3, pvc-x4 and 2 more$/);
  assert.match(finding!.fix!, /slot="pvc-x0"/);
});

Deno.test("judgeDisks() names a disk whose row cannot be read, and counts it for nobody", () => {
  const odd = ["pvc-y1", "pvc-11111111-2222-3333-4444-666666666666"].map((id) =>
    disk(id, comment, { unreadable: `the key size is missing (of "${id}")` })
  );
  const [counts, finding] = judgeDisks([...volumes, ...odd], settings);
  assert.equal(counts!.found, judgeDisks(volumes, settings)[0]!.found);
  assert.equal(finding!.state, "problem");
  assert.match(
    finding!.found,
    /^pvc-y1: the router's row of it .*the key size is missing.*; so it is with 1 more$/,
  );
});

Deno.test("judgeBasePath() names the row of a pool that cannot be read, and minds no other", () => {
  const odd = { ...pool, unreadable: 'the key size has an unexpected value (of "raid1")' };
  const finding = judgeBasePath("/pool/csi", [], [odd]);
  assert.equal(finding.state, "problem");
  assert.match(finding.found, /^\/pool\/csi is on a pool of which the router's row cannot be read.*"raid1"/);
  const stick = { ...odd, slot: "usb1", mountPoint: "" };
  assert.equal(judgeBasePath("/pool/csi", [folder("/pool/csi")], [stick, pool]).state, "ok");
});

Deno.test("judgeDisks() does not count a cluster's disks as this one's when there is no --cluster-id", () => {
  const [finding] = judgeDisks(volumes, { ...settings, cluster: undefined });
  assert.equal(finding!.state, "warning");
  assert.match(finding!.found, /^3 of some cluster/);
});

Deno.test("judgeDisks() reports what a killed probe has left, and what removes it", () => {
  const left = disk("rds-csi-probe-0123abcd-0", "", { imagePath: "/pool/csi/rds-csi-probe-0123abcd-x.img" });
  const [, finding, ...more] = judgeDisks([...volumes, left], settings);
  assert.deepEqual([finding!.state, more], ["warning", []]);
  assert.match(
    finding!.found,
    /^1 left by a killed probe, or waiting for --after-reboot: rds-csi-probe-0123abcd-0$/,
  );
  assert.match(finding!.fix!, /doctor --probe --base-path \/pool\/csi /);
});

Deno.test("judgeDisks() warns once of all snapshots of the legacy driver", () => {
  const ids = ["", "-at-1739800000"].map((end) => `snap-11111111-2222-3333-4444-555555555555${end}`);
  const [counted, finding, ...more] = judgeDisks([...volumes, ...ids.map((id) => disk(id, ""))], settings);
  assert.match(counted!.found, /1 without a known owner in the base paths$/);
  assert.equal(finding!.state, "warning");
  assert.match(
    finding!.found,
    /^2 snapshots of the legacy Go driver \(0 exported\), .*no copy.*from-the-go-driver[.]md$/,
  );
  assert.match(finding!.fix!, /audit --foreign/);
  assert.deepEqual(more, []);
});
