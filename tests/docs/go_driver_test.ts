import assert from "node:assert/strict";
import { annotationPrefix } from "../../src/kubernetes/objects.ts";
import { volumeIdFor } from "../../src/volume/model/ids/ids.ts";
import { filePrefixOf } from "../../src/volume/model/image_names.ts";
import { readPage } from "./pages.ts";

/** Every metric that 3whiskeywhiskey/rds-csi registers at its last commit, 9759724 (pkg/observability/prometheus.go). */
const metricsOfGoDriver = [
  ..."volume_operations_total volume_operation_duration_seconds nvme_connects_total".split(" "),
  ..."nvme_connect_duration_seconds nvme_connections_active mount_operations_total".split(" "),
  ..."stale_mounts_detected_total stale_recoveries_total orphans_cleaned_total events_posted_total".split(
    " ",
  ),
  ..."attach_total detach_total conflicts_total reconcile_total operation_duration_seconds".split(" ")
    .map((name) => `attachment_${name}`),
  ..."attachment_grace_period_used_total attachment_stale_cleared_total".split(" "),
  ..."migrations_total duration_seconds active_migrations".split(" ").map((name) => `migration_${name}`),
  ..."connection_state reconnect_total reconnect_duration_seconds".split(" ").map((name) => `rds_${name}`),
].map((name) => `rds_csi_${name}`).concat([
  "rds_disk_*",
  "rds_hardware_disk_pool_size_bytes",
  "rds_hardware_disk_pool_used_bytes",
  "rds_hardware_*",
]);

/** Every annotation and label that the Go driver or its chart writes to an object or reads from one. */
const marksOfGoDriver = [
  ..."attached-node attached-at reset-circuit-breaker".split(" ").map((name) => `rds.csi.srvlab.io/${name}`),
  ..."schedule pvc".split(" ").map((name) => `rds-csi.srvlab.io/${name}`),
  "topology.rds.csi.srvlab.io/zone",
];

/** Returns the rows of the table: the code in its left column, and in its right column. */
function rows(): readonly (readonly [string[], string[]])[] {
  const section = readPage("docs/guides/from-the-go-driver.md").text
    .split("## Metrics and annotations")[1]!.split("\n## ")[0]!;
  const codes = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code!);
  return section.split("\n").filter((line) => line.startsWith("| ")).slice(2).map((line) => {
    const [, left = "", right = ""] = line.split(/(?<!\\)\|/);
    assert.notEqual(right.trim(), "", line);
    return [codes(left), codes(right)];
  });
}

Deno.test("every metric, annotation and label of the Go driver is in the table exactly once", () => {
  const named = rows().flatMap(([left]) => left);
  assert.deepEqual(named.toSorted(), [...metricsOfGoDriver, ...marksOfGoDriver].toSorted());
});

Deno.test("every metric and annotation in the table's right column exists in this driver", () => {
  const metrics = readPage("docs/reference/metrics.md").text;
  const names = rows().flatMap(([, right]) => right);
  const found = names.filter((name) => /^(rds_csi|grpc)_/.test(name));
  assert(found.length > 15);
  const isThere = (name: string) =>
    metrics.includes(name.endsWith("*") ? `\`${name.slice(0, -1)}` : `\`${name}\``);
  assert.deepEqual(found.filter((name) => !isThere(name)), []);
  const annotations = names.filter((name) => name.includes("attach") && name.includes("/"));
  assert.deepEqual(annotations, ["attached-node", "attach-time"].map((name) => annotationPrefix + name));
});

/** The numbered steps of the way back. */
function stepsBack(): readonly string[] {
  const [, section = ""] = readPage("docs/guides/from-the-go-driver.md").text.split("\n## Back\n");
  return section.split(/^[0-9]+[.] /m).slice(1).map((step) => step.replaceAll(/\s+/g, " "));
}

Deno.test("the way back begins with the Go driver's orphan loop, and then detaches what that driver cannot", () => {
  const [loop = "", detach = "", stop = ""] = stepsBack();
  // cmd/rds-csi-plugin/main.go, and values.yaml of the chart, at 9759724.
  assert.match(loop, /orphan loop off.*`controller[.]orphanReconciler[.]enabled: false`/);
  for (const flag of ["-enable-orphan-reconciler", "-orphan-dry-run"]) assert(loop.includes(`\`${flag}\``));
  assert.match(detach, /Detach every volume.*neither detach nor delete/);
  assert.match(stop, /Scale this driver's controller to 0/);
});

Deno.test("this driver's volumes and images are what the guide says that the Go driver takes them for", () => {
  const id = volumeIdFor("pvc-0f8fad5b-d9cb-469f-a165-70867728950e");
  // pkg/utils/volumeid.go: "pvc-" is followed by a whole uuid.
  assert(id.startsWith("pvc-") && !/^pvc-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id));
  // pkg/reconciler/orphan_reconciler.go: what is no `<volumeHandle>.img` has no owner without a disk.
  assert.notEqual(filePrefixOf(id, "1a2b3c4d"), id);
});
