// `make docs/pictures`: the pictures of the pages, each of a run. A controller on a simulated router meets a degraded
// array, a lost device of a Btrfs pool and a worn drive; a browser looks at its status page, and at what a Prometheus with
// the chart's rules and the doctor say.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { fileURLToPath } from "node:url";
import { doctorCommand } from "../../src/cli/doctor/doctor.ts";
import { volumesPath } from "../../src/kubernetes/objects.ts";
import { fakeCommandIo } from "../fakes/command_io.ts";
import { aPersistentVolume, aVolumeAttachment } from "../fakes/kube_client.ts";
import { type ActiveAlert, startPrometheus } from "../deploy/prometheus.ts";
import { photograph } from "../support/browser.ts";
import { type ClusterStack, startClusterStack } from "../support/cluster_stack.ts";
import { block, create, gibibyte, mount, publishRequest } from "../support/controller_calls.ts";
import { eventually } from "../support/eventually.ts";
import type { Stack } from "../support/stack.ts";
import { turningClock } from "../support/turning_clock.ts";
import { shrink } from "./png.ts";

const fileOf = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** The volumes, with their claims and nodes. */
const volumes = [
  {
    name: "pvc-0f8fad5b-d9cb-469f-a165-708677289501",
    claim: "shop/orders-db-0",
    sizeGib: 20n,
    on: ["worker-1"],
  },
  { name: "pvc-16fd2706-8baf-433b-82eb-8c7fada847da", claim: "media/photos", sizeGib: 250n, on: [] },
  {
    name: "pvc-7c9e6679-7425-40de-944b-e07fc1f90ae7",
    claim: "vms/desktop-disk",
    sizeGib: 64n,
    on: ["worker-1", "worker-2"],
  },
] as const;

async function makeVolumes({ stack, api }: ClusterStack): Promise<void> {
  const { controller } = stack.clients;
  for (const { name, claim, sizeGib, on } of volumes) {
    const isShared = on.length > 1;
    const capability = isShared
      ? { ...block, accessMode: { mode: "MULTI_NODE_MULTI_WRITER" as const } }
      : mount;
    const id = await create(stack, name, {
      capacityRange: { requiredBytes: String(sizeGib * gibibyte) },
      volumeCapabilities: [capability],
    });
    const volume = aPersistentVolume(id);
    const [namespace, claimName] = claim.split("/");
    const claimRef = { namespace, name: claimName, uid: `uid-of-${claimName}` };
    api.put(volumesPath, { ...volume, spec: { ...volume["spec"] as object, claimRef } });
    for (const node of on) {
      await controller.call("ControllerPublishVolume", publishRequest(id, node, capability));
      api.put("/apis/storage.k8s.io/v1/volumeattachments", aVolumeAttachment(id, node));
    }
  }
  await controller.call("ListVolumes", {});
}

async function degrade({ simulator }: Stack): Promise<void> {
  const faults = {
    "/disks/storage-pool": { state: "degraded" },
    "/disks/nvme1": { "raid-member-failed": true, "raid-member-state": "0:faulty" },
    "/disks/nvme2": { "percentage-used": 104, "available-spare": 12, "temperature": 61 },
    "/filesystems/storage-pool-fs": { devs: ["storage-pool", "missing"] },
  };
  for (const [path, body] of Object.entries(faults)) {
    await control(simulator, `PATCH ${path}`, body);
  }
}

/** The findings of the doctor about pools and drives, as it prints them. */
async function doctorSays({ simulator, passwordFile }: Stack): Promise<string> {
  const { io, out } = fakeCommandIo();
  await doctorCommand([
    ...["--rds-address", "127.0.0.1", "--rds-port", String(simulator.sshPort), "--nvme-port", "4420"],
    ...["--rds-password-file", passwordFile, "--rds-host-key", simulator.hostKeyPublic],
  ], io);
  const findings = out.join("\n").split(/\n(?=\S)/);
  return findings.filter((text) => /^\S+ +(pool|drives) /.test(text)).join("\n");
}

/** The texts of the alerts, as a receiver shows them. */
function alertText({ labels, annotations }: ActiveAlert): string {
  return `[FIRING] ${labels["alertname"]} (${labels["severity"]})\n${annotations["summary"]}\n${
    annotations["description"]
  }`;
}

/** A page with the output of programs. */
function pageOf(parts: Readonly<Record<string, string>>): string {
  const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const blocks = Object.entries(parts).map(([title, text]) => `<h1>${title}</h1><pre>${escaped(text)}</pre>`);
  return `<!doctype html><meta charset="utf-8"><style>
    body { margin: 24px; background: #fff; color: #222; font: 15px sans-serif }
    h1 { font-size: 16px; margin: 0 0 8px }
    pre { margin: 0 0 20px; padding: 12px; background: #f3f4f6; font: 13px/1.5 monospace; white-space: pre-wrap }
  </style>${blocks.join("")}`;
}

const { clock, turn } = turningClock();
await using cluster = await startClusterStack({
  clock,
  flags: ["--leader-election", "--audit-interval=0s"],
  simulator: { timingScale: 1 },
});
const { stack } = cluster;
const url = stack.driver.metricsUrl!;
await stack.driver.seekRouter(new AbortController().signal);
await makeVolumes(cluster);
await degrade(stack);
const page = async () => await (await fetch(url)).text();
await eventually(async () => {
  await turn();
  const text = await page();
  return ["ArrayUnsound", "BtrfsDeviceMissing", "DriveWorn", "PoolDegraded"].every((one) =>
    text.includes(one)
  );
}, 60_000);

const folder = await Deno.makeTempDir({ prefix: "rds-csi-pictures-" });
try {
  const rules = fileOf("deploy/chart/alerts/rds-csi.yaml");
  await using prometheus = await startPrometheus(folder, [new URL(url).host], [rules]);
  const drives = ["RdsCsiStorageDegraded", "RdsCsiDriveWearing"];
  const firing = async () =>
    (await prometheus.alerts()).filter(({ labels, state }) =>
      state === "firing" && drives.includes(labels["alertname"]!)
    ).map(alertText).toSorted().toReversed();
  await eventually(async () => (await firing()).length === 4, 30_000);
  const said = { "rds-csi doctor": await doctorSays(stack), "Alerts": (await firing()).join("\n\n") };
  await Deno.writeTextFile(`${folder}/page.html`, pageOf(said));
  const pictures = [
    { url, width: 1200, height: 1700, keepAt: fileOf("docs/status-page.png") },
    {
      url: `file://${folder}/page.html`,
      width: 1000,
      height: 760,
      keepAt: fileOf("docs/reference/drives.png"),
    },
  ];
  for (const { url, ...look } of pictures) {
    await photograph(url, look);
    await shrink(look.keepAt);
    const { size } = await Deno.stat(look.keepAt);
    assert.ok(size < 150_000, look.keepAt);
  }
} finally {
  await Deno.remove(folder, { recursive: true });
}
