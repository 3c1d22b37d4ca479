import assert from "node:assert/strict";
import { aDisk, aRecord, testCluster } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { VolumeError } from "../../volume/errors.ts";
import { checkHostLists, judgeHostLists, type ListedDisk } from "./host_lists.ts";

const host = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-4333-8444-555555555555";
const { comment } = aDisk(aRecord());
const own = { cluster: testCluster };

function disk(slot: string, change: Partial<ListedDisk> = {}): ListedDisk {
  return { slot, comment, hosts: [host], ...change };
}

Deno.test("judgeHostLists() names the volume, the listed hosts, and how to clear the list", () => {
  const [finding, ...more] = judgeHostLists([disk("pvc-1")], own);
  assert.deepEqual(more, []);
  assert.equal(finding?.state, "warning");
  assert.match(finding.found, new RegExp(`^pvc-1 has a list of hosts.* cannot connect: ${host}$`));
  assert.match(finding.fix!, /set \[find where slot="pvc-1"\] nvme-tcp-server-allow-host-name=""$/);
});

Deno.test("judgeHostLists() judges this cluster's volumes and the legacy driver's, and every record where the cluster is not known", () => {
  const legacy = "pvc-00000000-1111-2222-3333-444444444444";
  const others = [
    disk("pvc-2", { comment: comment.replace(testCluster, "0000ffff") }),
    disk("backup", { comment: "" }),
    disk("pvc-3", { hosts: [] }),
  ];
  const disks = [...others, disk("pvc-1"), disk(legacy, { comment: "" })];
  const slots = (cluster: string | undefined) =>
    judgeHostLists(disks, { cluster }).map(({ found }) => found.split(" ")[0]);
  assert.deepEqual(slots(testCluster), ["pvc-1", legacy]);
  assert.deepEqual(slots(undefined), ["pvc-2", "pvc-1", legacy]);
});

Deno.test("judgeHostLists() names a few of many", () => {
  const hosts = Array.from({ length: 9 }, (_, at) => `nqn.${at}`);
  const disks = Array.from({ length: 8 }, (_, at) => disk(`pvc-${at}`, { hosts }));
  const findings = judgeHostLists(disks, own);
  assert.equal(findings.length, 6);
  assert.match(findings[0]!.found, /: nqn\.0, nqn\.1, nqn\.2 and 6 more$/);
  assert.match(findings[5]!.found, /^3 more volumes/);
});

Deno.test("checkHostLists() says that a router cannot be asked, and passes a cancelled call on", async () => {
  const failing = (kind: "unavailable" | "cancelled") => ({
    read: () => Promise.reject(new VolumeError(kind, "Cannot read from the router")),
  });
  const [finding] = await checkHostLists(failing("unavailable"), own);
  assert.deepEqual([finding?.state, finding?.check], ["skipped", "disks"]);
  await assert.rejects(checkHostLists(failing("cancelled"), own), refusal("cancelled"));
});

Deno.test("checkHostLists() judges the other disks where the row of one cannot be read", async () => {
  const row = { slot: "pvc-1", "nvme-tcp-server-allow-host-name": "nqn.a" };
  const rows = [{ ...row, slot: "odd", "nvme-tcp-server-allow-host-name": 7 }, {
    ...row,
    comment,
  }];
  const read = () => Promise.resolve(JSON.stringify(rows));
  const [listed, odd, ...more] = await checkHostLists({ read }, own);
  assert.deepEqual([listed?.state, odd?.state, more], ["warning", "skipped", []]);
  assert.match(odd!.found, /\(of "odd"\)/);
});
