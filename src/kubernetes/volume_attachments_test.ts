import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import {
  aPersistentVolume,
  aVolumeAttachment,
  startKube,
  testDriver,
} from "../../tests/fakes/kube_client.ts";
import { refusal } from "../../tests/fakes/refusal.ts";
import { PersistentVolumes, volumesPath } from "./persistent_volumes.ts";
import { clusterRules } from "./rules.ts";
import { VolumeAttachments } from "./volume_attachments.ts";

const path = "/apis/storage.k8s.io/v1/volumeattachments";
const { signal } = new AbortController();

async function withAttachments(
  work: (pair: Awaited<ReturnType<typeof startKube>>, objects: VolumeAttachments) => Promise<void>,
): Promise<void> {
  await using pair = await startKube();
  pair.api.rules = clusterRules;
  const options = { api: pair.client, clock: new FakeClock(), driverName: testDriver };
  const volumes = new PersistentVolumes(options);
  await work(pair, new VolumeAttachments({ ...options, volumes }));
}

Deno.test("attachments() tells which volume each is about, and what the node was answered", async () => {
  await withAttachments(async ({ api }, objects) => {
    api.put(volumesPath, aPersistentVolume("v", { attributes: { migrationTimeoutSeconds: "60" } }));
    const publishContext = { epoch: "3-0a0b0c0d" };
    api.put(path, aVolumeAttachment("v", "n", { publishContext, deleting: true }));
    assert.deepEqual(await objects.attachments(signal), [
      { volumeId: "v", nodeName: "n", attached: true, deleting: true, publishContext },
    ]);
    assert.deepEqual(objects.volumeContext("v"), { migrationTimeoutSeconds: "60" });
    assert.equal(objects.volumeContext("w"), undefined);
  });
});

Deno.test("attachments() leaves out other drivers', and keeps one whose volume is gone as one that cannot be told", async () => {
  await withAttachments(async ({ api }, objects) => {
    const other = aVolumeAttachment("other", "n");
    (other["spec"] as { attacher: string }).attacher = "another.driver";
    api.put(path, other);
    api.put(path, aVolumeAttachment("gone", "n"));
    const inline = aVolumeAttachment("inline", "n");
    (inline["spec"] as { source: unknown }).source = {
      inlineVolumeSpec: { csi: { volumeHandle: "inline" } },
    };
    api.put(path, inline);
    const ids = (await objects.attachments(signal)).map(({ volumeId }) => volumeId);
    assert.deepEqual(ids, [undefined, "inline"]);
  });
});

Deno.test("attachments() is refused where the cluster makes none for this driver, as that nobody has a volume is not known then", async () => {
  await withAttachments(async ({ api }, objects) => {
    const drivers = "/apis/storage.k8s.io/v1/csidrivers";
    const driver = (attachRequired: boolean) => ({
      metadata: { name: testDriver },
      spec: { attachRequired },
    });
    api.put(drivers, driver(true));
    assert.deepEqual(await objects.attachments(signal), []);
    api.put(drivers, driver(false));
    const refused = refusal("precondition", /attachRequired: false: csidriver=/);
    await assert.rejects(objects.attachments(signal), refused);
    api.faults.push({ match: /csidrivers/, status: 500 });
    await assert.rejects(objects.attachments(signal), { kind: "unavailable" });
  });
});

Deno.test("attachments() throws unavailable when a single page cannot be had", async () => {
  await withAttachments(async ({ api }, objects) => {
    api.faults.push({ match: /persistentvolumes/, status: 500 });
    await assert.rejects(objects.attachments(signal), { kind: "unavailable" });
  });
});

Deno.test("attachments() tells the volume also where two objects name it", async () => {
  await withAttachments(async ({ api }, objects) => {
    for (const name of ["v", "static-v"]) {
      const volume = aPersistentVolume(name);
      (volume["spec"] as { csi: { volumeHandle: string } }).csi.volumeHandle = "v";
      api.put(volumesPath, volume);
      api.put(path, aVolumeAttachment(name, "n"));
    }
    const ids = (await objects.attachments(signal)).map(({ volumeId }) => volumeId);
    assert.deepEqual(ids, ["v", "v"]);
  });
});
