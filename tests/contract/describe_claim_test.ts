// `rds-csi describe` follows a claim through the cluster to a simulated router.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { commands, runCommand } from "../../src/cli/commands.ts";
import { attachmentsPath, volumesPath } from "../../src/kubernetes/objects.ts";
import { aPersistentVolume, aVolumeAttachment } from "../fakes/kube_client.ts";
import { refusal } from "../fakes/refusal.ts";
import { fakeCommandIo } from "../fakes/command_io.ts";
import { type ClusterStack, startClusterStack } from "../support/cluster_stack.ts";
import { create, publishRequest } from "../support/controller_calls.ts";
import { clusterId } from "../support/stack.ts";
import { clusterHash } from "../../src/volume/model/ids/cluster_hash.ts";
import { parseObjects, readDeployFile, type Rule } from "../deploy/objects.ts";

async function describe({ stack, api }: ClusterStack, ...flags: string[]) {
  const { io, out } = fakeCommandIo();
  const kubeconfig = await Deno.makeTempFile({ prefix: "rds-csi-kube-" });
  try {
    await Deno.writeTextFile(kubeconfig, api.kubeconfig());
    const { simulator, passwordFile } = stack;
    // The variables that the chart sets in the controller's container, so that commands there need no flags.
    const variables: Readonly<Record<string, string>> = {
      RDS_ADDRESS: "127.0.0.1",
      RDS_PORT: String(simulator.sshPort),
      RDS_CLUSTER_ID: clusterId,
      RDS_PASSWORD_FILE: passwordFile,
      RDS_HOST_KEY: simulator.hostKeyPublic,
    };
    // The kubeconfig takes the place of a pod's service account.
    const subject = flags[0]?.startsWith("pv/") ? [] : ["pvc/apps/data"];
    const args = [...subject, ...flags, "--kubeconfig", kubeconfig];
    const env = (name: string) => variables[name];
    return { code: await runCommand(commands["describe"]!, args, { ...io, env }), lines: out };
  } finally {
    await Deno.remove(kubeconfig);
  }
}

Deno.test("describe follows a claim to its volume on the router, and says in a sentence where it hangs", async () => {
  await using cluster = await startClusterStack();
  const { stack, api } = cluster;
  const volumeId = await create(stack, "pvc-one");
  await stack.clients.controller.call("ControllerPublishVolume", publishRequest(volumeId, "worker-1"));
  const bare = aPersistentVolume(volumeId);
  const volume = { ...bare, spec: { ...bare.spec as object, claimRef: { namespace: "apps", name: "data" } } };
  api.put(volumesPath, volume);
  api.put("/api/v1/namespaces/apps/persistentvolumeclaims", {
    metadata: { name: "data", namespace: "apps" },
    spec: { volumeName: volume.metadata.name, storageClassName: "rds-ext4" },
  });
  api.put(attachmentsPath, aVolumeAttachment(volumeId, "worker-1"));
  // The permissions of the service account of the controller's pod.
  api.rules = parseObjects(readDeployFile("manifests/rds-csi.yaml")).flatMap((object) =>
    object.kind === "ClusterRole" ? (object as { readonly rules?: readonly Rule[] }).rules ?? [] : []
  );
  const well = await describe(cluster);
  assert.equal(well.code, 0, well.lines.join("\n"));
  assert.match(well.lines.join("\n"), /ok +router +the volume exists and is healthy/);
  assert.match(
    well.lines.at(-1)!,
    /^describe: nothing hangs; if a pod has errors .*: kubectl -n apps delete pod POD, for each POD that uses it$/,
  );
  assert.deepEqual(
    await describe(cluster, `pv/${volume.metadata.name}`),
    well,
    "by its PersistentVolume",
  );
  await assert.rejects(describe(cluster, "pv/other"), refusal("not-found", /Cannot follow pv\/other/));
  await control(stack.simulator, `PATCH /disks/${volumeId}`, { "nvme-tcp-export": false });
  const hangs = await describe(cluster);
  assert.equal(hangs.code, 1);
  const found = hangs.lines.find((line) => /^problem +router/.test(line))!;
  const last = hangs.lines.at(-1)!;
  assert.match(
    last,
    /^describe: it hangs at the router; once that is mended, it goes on by itself; only a pod that ran before and has errors now has to be deleted: kubectl -n apps delete pod POD/,
  );
  assert.ok(!last.includes(found.split("router")[1]!.trim()), "it says nothing twice");
  await control(stack.simulator, `PATCH /disks/${volumeId}`, { comment: "{rds1 c=1}" });
  const damaged = (await describe(cluster)).lines.join("\n");
  assert.match(
    damaged,
    /RecordDamaged[^]*fix +\/disk\/set \[find where slot="[^"]+"\] comment="…" with its comment from a backup/,
  );
  const json = JSON.parse((await describe(cluster, "--json")).lines.join("\n")) as { check: string }[];
  assert.deepEqual(json.map(({ check }) => check), ["claim", "volume", "attachment", "node", "router"]);
  api.put("/api/v1/namespaces/apps/events", {
    metadata: { name: "escape", namespace: "apps" },
    ...{ type: "Warning", reason: "Failed", involvedObject: { kind: "Pod", name: "db" } },
    message: `\x1b[2J \u202e ${volume.metadata.name}`,
    lastTimestamp: new Date().toISOString(),
  });
  const shown = (await describe(cluster)).lines.join("\n");
  assert.match(shown, /pod db: \\u001b\[2J \\u202e/);
});

Deno.test("describe says what the router's name plate calls the volume", async () => {
  await using cluster = await startClusterStack();
  const { stack, api } = cluster;
  const volumeId = await create(stack, "pvc-one");
  const bare = aPersistentVolume(volumeId);
  api.put(volumesPath, bare);
  api.put("/api/v1/namespaces/apps/persistentvolumeclaims", {
    metadata: { name: "data", namespace: "apps" },
    spec: { volumeName: bare.metadata.name },
  });
  const plates = `storage-pool/metal-csi/names-of-${clusterHash(clusterId)}/apps_data_rds-ext4_${volumeId}`;
  stack.simulator.model.files.makeDirectories(plates);
  const { lines } = await describe(cluster);
  assert.match(lines.join("\n"), /the volume exists and is healthy; its name plate there says apps\/data\n/);
});
