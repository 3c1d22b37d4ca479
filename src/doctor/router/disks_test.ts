import assert from "node:assert/strict";
import type { StoredVolume } from "../../volume/ports/ports.ts";
import { aRecord } from "../../../tests/fakes/records.ts";
import { formatComment, newComment } from "../../volume/model/record.ts";
import { judgeDisks } from "./disks.ts";

const own = aRecord();
const disk = (id: string, comment: string, imagePath = `/pool/csi/${id}.img`): StoredVolume => ({
  id,
  imagePath,
  sizeBytes: 1n << 30n,
  exported: false,
  exportNqn: "",
  exportPort: 0,
  comment,
});
const comment = formatComment(newComment(own));
const other = formatComment(newComment({ ...own, cluster: "ffffffff" }));
const volumes = [
  disk("pvc-1", comment),
  disk("pvc-2", comment),
  disk("pvc-3", other),
  disk("pvc-11111111-2222-3333-4444-555555555555", ""),
  disk("backup", "a person's"),
  disk("elsewhere", "", "/pool/other/x.img"),
];
const settings = { basePaths: ["/pool/csi"], cluster: own.cluster };

Deno.test("judgeDisks() counts the disks by whose they are", () => {
  assert.deepEqual(judgeDisks(volumes, settings).map(({ state, found }) => [state, found]), [[
    "ok",
    "2 of this cluster, 1 of other clusters, 1 of the earlier Go driver, 1 of nobody in the base paths",
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

Deno.test("judgeDisks() warns once of all snapshots of the earlier driver", () => {
  const ids = ["", "-at-1739800000"].map((end) => `snap-11111111-2222-3333-4444-555555555555${end}`);
  const [counted, finding, ...more] = judgeDisks([...volumes, ...ids.map((id) => disk(id, ""))], settings);
  assert.match(counted!.found, /1 of nobody in the base paths$/);
  assert.equal(finding!.state, "warning");
  assert.match(
    finding!.found,
    /^2 snapshots of the earlier Go driver \(0 exported\), .*no copy.*from-the-go-driver[.]md$/,
  );
  assert.match(finding!.fix!, /audit --foreign/);
  assert.deepEqual(more, []);
});
