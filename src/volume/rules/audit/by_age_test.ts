import assert from "node:assert/strict";
import { aClusterVolume } from "../../../../tests/fakes/cluster_view.ts";
import { aDisk, aHolder, aRecord, testBase, testCluster } from "../../../../tests/fakes/records.ts";
import type { StoredVolume } from "../../model/inventory.ts";
import { judgeAudit } from "./audit.ts";
import { reasonAgainstAge } from "./by_age.ts";
import type { ClusterUse } from "./finding.ts";

const idle = (id: string) => aDisk(aRecord({ withdrawnAtSeconds: 1_700_000_000 }), { id });
const epoch = { counter: 1, nonce: "0a0b0c0d" };
const held = (id: string) => aDisk(aRecord({ epoch, holders: [aHolder("theirs")] }), { id });
const named = (...ids: string[]): ClusterUse => ({
  volumes: ids.map((id) => aClusterVolume(id)),
  ...{ attachments: [], orphans: [] },
});

/** @param before the disks of the first of two reads, where they differ */
function judge(volumes: readonly StoredVolume[], used: ClusterUse | undefined, before = volumes) {
  const scope = {
    ...{ cluster: testCluster, basePaths: [testBase], used, vouched: false, nowMs: 1_800_000_000_000 },
    isCopying: () => false,
  };
  const view = { volumes: before, files: [], pools: [], upMs: 1e9 };
  return reasonAgainstAge(judgeAudit(view, scope), { volumes }, scope);
}

Deno.test("reasonAgainstAge() has none where the cluster knows at least half of the volumes, and all in use", () => {
  assert.equal(judge([idle("a"), idle("b")], named("a")), undefined);
  assert.equal(judge([idle("a"), idle("b"), held("c")], named("a", "c")), undefined);
  assert.equal(judge([idle("a"), idle("b")], undefined), undefined, "no cluster was asked");
});

Deno.test("reasonAgainstAge() names a few volumes that another cluster may use, and how to end that", () => {
  const many = Array.from({ length: 8 }, (_, i) => held(`u${i}`));
  assert.match(
    judge([idle("a"), ...many], named("a")) ?? "",
    /^another cluster .*: volumes=u0, u1, u2, u3, u4 and 3 more; .* run "rds-csi withdraw u0 --vouch"$/,
  );
  const lost = { ...held("a"), comment: "", exported: true };
  assert.match(judge([lost, idle("b"), idle("c")], named("b")) ?? "", /volumes=a; .* turn its export off/);
});

Deno.test("reasonAgainstAge() ignores a volume that was made after the cluster answered", () => {
  const before = [idle("a"), idle("b")];
  assert.equal(judge([...before, held("new")], named("a"), before), undefined);
});

Deno.test("reasonAgainstAge() counts a volume of a driver of another name as known", () => {
  const others = new Set(["b", "c"]);
  assert.equal(judge([idle("a"), idle("b"), held("c"), idle("d")], { ...named("a"), others }), undefined);
});
