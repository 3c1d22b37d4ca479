import assert from "node:assert/strict";
import { control } from "../../../tests/support/control_port.ts";
import { runCommand } from "../../../tests/support/command_run.ts";
import {
  changesNothing,
  contents,
  create,
  gibibyte,
  publishRequest,
} from "../../../tests/support/controller_calls.ts";
import { startClusterStack } from "../../../tests/support/cluster_stack.ts";
import type { FakeKubeApi } from "../../../tests/fakes/kube_api.ts";
import { fakeCommandIo } from "../../../tests/fakes/command_io.ts";
import { aClusterVolume, FakeClusterView } from "../../../tests/fakes/cluster_view.ts";
import { inTime, testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aRecord } from "../../../tests/fakes/records.ts";
import { testDriver } from "../../../tests/fakes/kube_client.ts";
import { clusterId, type Stack, startStack } from "../../../tests/support/stack.ts";
import { FlagError } from "../flags.ts";
import { clusterHash } from "../../volume/model/ids/cluster_hash.ts";
import { VolumeError } from "../../volume/errors.ts";
import { auditCommand, runAudit } from "./audit.ts";
import { exitCodes } from "../io.ts";

const folder = "/storage-pool/metal-csi";
const hash = clusterHash(clusterId);

async function audit(stack: Stack, ...args: string[]) {
  return await runCommand(stack, auditCommand, args);
}

async function json(stack: Stack, ...args: string[]) {
  const { out, code } = await audit(stack, "--json", ...args);
  return { code, ...JSON.parse(out) as Record<string, never> } as {
    code: number;
    counts: Record<string, number>;
    findings: { kind: string; id: string; name: string | null; path: string; deletable: boolean }[];
    deleted: { id: string; path: string }[];
    failed: { id: string; failed: string }[];
  };
}

async function addImage(stack: Stack, name: string): Promise<string> {
  await control(stack.simulator, "POST /files", { name: `${folder}/${name}`, type: "file", size: 1 << 20 });
  return `${folder}/${name}`;
}

Deno.test("audit finds nothing on a healthy router in use, and changes nothing", async () => {
  await using stack = await startStack();
  const id = await create(stack, "pvc-a");
  await create(stack, "pvc-b");
  await stack.clients.controller.call("ControllerPublishVolume", publishRequest(id));
  await changesNothing(stack, async () => {
    const { code, out } = await audit(stack);
    assert.equal(code, exitCodes.ok);
    assert.equal(
      out,
      "audit: 0 problems, 0 warnings, 0 notes; not compared with PersistentVolumes because no cluster was asked",
    );
  });
});

Deno.test("audit names what has no owner, counts other owners' disks, and deletes only what it is told to", async () => {
  await using stack = await startStack();
  const id = await create(stack, "pvc-a");
  const lone = await addImage(stack, `pvc-lone.${hash}.img`);
  const part = await addImage(stack, `pvc-part.${hash}.img.0011aabb.part`);
  const precious = { slot: "precious", "file-path": `${folder}/precious.img`, size: String(gibibyte) };
  await control(stack.simulator, "POST /disks", precious);
  await changesNothing(stack, async () => {
    const { code, counts, findings, deleted } = await json(stack);
    assert.equal(code, exitCodes.ok);
    assert.deepEqual(counts, { "image-without-disk": 1, "unfinished-copy": 1, "no-record": 1 });
    assert.deepEqual(
      findings.map(({ path, deletable }) => [path, deletable]),
      [[lone, false], [part, true]],
    );
    assert.deepEqual(deleted, []);
    const { out } = await audit(stack);
    assert.match(
      out,
      /warning +image-without-disk +pvc-lone +- +no\n {2}\S+\n {2}.*\(kept: no cluster was asked/,
    );
    assert.ok(
      out.split("\n").slice(0, -2).every((line) => line.length <= 120),
      "a line fits into a terminal",
    );
    assert.match(out, /of other or unknown owners, left alone \(--foreign lists them\): 1 no-record/);
    assert.match((await audit(stack, "--foreign")).out, /note +no-record +precious/);
  });
  await changesNothing(stack, async () => {
    for (const protectedThing of ["precious", id, lone, "pvc-lone", "pvc-none"]) {
      const { code, failed, deleted } = await json(stack, "--delete", protectedThing, "--foreign");
      assert.deepEqual([code, deleted, failed.length], [exitCodes.failed, [], 1], protectedThing);
    }
    assert.deepEqual((await json(stack, "--delete-older-than", "1h")).deleted, []);
    assert.deepEqual((await json(stack, "--older-than", "1h")).deleted, []);
  });
  const { code, deleted } = await json(stack, "--delete", part, "--delete", "pvc-lone", "--vouch");
  assert.equal(code, exitCodes.ok);
  assert.deepEqual(deleted.map(({ path }) => path), [lone, part]);
  const after = await contents(stack);
  assert.ok(
    after.disks.some(({ slot }) => slot === id) && after.disks.some(({ slot }) => slot === "precious"),
  );
  assert.deepEqual((await json(stack)).findings, []);
});

Deno.test("audit calls what it finds as people do, takes the name plates for nothing else, and deletes none", async () => {
  await using stack = await startStack();
  await create(stack, "pvc-a");
  const part = await addImage(stack, `pvc-lone.${hash}.img.0011aabb.part`);
  const plates = `${folder.slice(1)}/names-of-${hash}`;
  const names = [plates, `${plates}/snap+-1_photos_rds-ext4_pvc-lone`, `${plates}/default_gone__pvc-gone`];
  for (const name of names) stack.simulator.model.files.makeDirectory(name);
  const { counts, findings } = await json(stack);
  assert.deepEqual(counts, { "unfinished-copy": 1 });
  assert.deepEqual(findings.map(({ id, name }) => [id, name]), [["pvc-lone", "snap-1/photos"]]);
  assert.match((await audit(stack)).out, /unfinished-copy +pvc-lone.*\n {2}name: snap-1\/photos\n {2}\//);
  const all = ["--delete", part, "--delete", `/${names[1]}`, "--delete", `/${plates}`];
  const { deleted, failed } = await json(stack, ...all);
  assert.deepEqual([deleted.length, failed.length], [1, 2]);
  for (const name of names) assert.ok(stack.simulator.model.files.isDirectory(name), name);
});

Deno.test("audit fails on a volume whose image is gone or whose record is damaged", async () => {
  await using stack = await startStack();
  const gone = await create(stack, "pvc-gone");
  const damaged = await create(stack, "pvc-damaged");
  const disk = stack.simulator.model.disks.findBySlot(damaged)!;
  stack.simulator.model.disks.replace({ ...disk, comment: disk.comment.replace("b=1", "b=2") });
  const image = stack.simulator.model.disks.findBySlot(gone)!.filePath;
  await control(stack.simulator, `DELETE /files${image}`);
  const { code, findings } = await json(stack);
  assert.equal(code, exitCodes.failed);
  assert.deepEqual(
    findings.filter(({ kind }) => kind !== "leftover-subvolume").map(({ kind, id }) => [kind, id]),
    [["disk-without-image", gone], ["record-damaged", damaged]],
  );
});

Deno.test("audit does not report a snapshot, and names a snapshot's subvolume without an image", async () => {
  await using stack = await startStack();
  const id = await create(stack, "pvc-a");
  await stack.clients.controller.call("CreateSnapshot", { name: "snapshot-1", sourceVolumeId: id });
  assert.deepEqual((await json(stack)).findings, []);
  const empty = `snap-${"1".repeat(28)}.${id}.t0.n.${hash}`;
  await control(stack.simulator, "POST /console", {
    command: `/disk/btrfs/subvolume/add fs="storage-pool-fs" name="metal-csi/${empty}"`,
  });
  const { findings, failed } = await json(stack, "--delete", `${folder}/${empty}`);
  assert.deepEqual(findings.map(({ kind, path }) => [kind, path]), [[
    "leftover-subvolume",
    `${folder}/${empty}`,
  ]]);
  assert.equal(failed.length, 1);
});

Deno.test("audit removes a subvolume with its image, even when it is killed before or after its command", async () => {
  await using stack = await startStack();
  const id = await create(stack, "pvc-a");
  const { disks } = stack.simulator.model;
  for (const action of ["drop-before", "drop-after"] as const) {
    const folderName = `metal-csi/pvc-lost.${hash}`;
    await control(stack.simulator, "POST /console", {
      command: `/disk/btrfs/subvolume/add fs="storage-pool-fs" name="${folderName}"`,
    });
    const path = await addImage(stack, `pvc-lost.${hash}/disk.img`);
    stack.simulator.faults.arm({ match: "subvolume/remove", nth: 1, times: 1, action, value: undefined });
    const first = await json(stack, "--delete", path, "--vouch");
    stack.simulator.faults.clear();
    const second = await json(stack, "--delete", path, "--vouch");
    assert.ok(first.deleted.length + second.deleted.length >= 1, action);
    assert.deepEqual((await json(stack)).findings, []);
  }
  assert.ok(disks.findBySlot(id) !== undefined);
});

Deno.test("audit reports wrong arguments, and sends nothing", async () => {
  await using stack = await startStack();
  const before = await stack.count();
  await assert.rejects(audit(stack, "--delete-older-than", "1m"), FlagError);
  await assert.rejects(audit(stack, "--older-than", "1m"), FlagError);
  await assert.rejects(audit(stack, "--what"), FlagError);
  assert.deepEqual(await stack.count(), before);
});

Deno.test("audit compares with the given cluster", async () => {
  const prepare = (api: FakeKubeApi) =>
    api.put("/api/v1/persistentvolumes", {
      metadata: { name: "lost" },
      spec: { csi: { driver: testDriver, volumeHandle: "pvc-lost" } },
    });
  await using cluster = await startClusterStack({ prepare });
  const { stack, api } = cluster;
  const id = await create(stack, "pvc-a");
  const kubeconfig = await Deno.makeTempFile({ prefix: "rds-csi-kube-" });
  try {
    await Deno.writeTextFile(kubeconfig, api.kubeconfig());
    const { code, findings } = await json(stack, "--kubeconfig", kubeconfig);
    assert.equal(code, exitCodes.failed);
    assert.deepEqual(findings.map(({ kind, id, deletable }) => [kind, id, deletable]), [
      ["pv-without-disk", "pvc-lost", false],
      ["disk-without-pv", id, true],
    ]);
    api.faults.push({ match: /persistentvolumes/, status: 500 });
    const { code: without, out, err } = await audit(stack, "--json", "--kubeconfig", kubeconfig);
    assert.deepEqual([JSON.parse(out).findings, without], [[], exitCodes.failed]);
    assert.match(
      err,
      /^rds-csi audit: cannot ask the cluster for its volumes reason=Cannot ask .* 500 /m,
    );
    const told = await audit(stack, "--kubeconfig", kubeconfig);
    assert.match(told.out, /^audit: 0 problems.*; incomplete, because the cluster could not be asked: /m);
  } finally {
    await Deno.remove(kubeconfig);
  }
});

Deno.test("audit reports an array below a pool that is not sound, and accepts one that checks itself", async () => {
  await using stack = await startStack();
  const mirror = { slot: "m0", type: "raid", size: 5, "raid-master": "storage-pool" };
  await control(stack.simulator, "POST /disks", { ...mirror, state: "clean, sync:repair, resync = 3%" });
  assert.doesNotMatch((await audit(stack)).out, /not sound/);
  await control(stack.simulator, "PATCH /disks/m0", { state: "degraded" });
  const { out, code } = await audit(stack);
  assert.match(out, /^a pool's array has a fault: pool=storage-pool array=m0 state=degraded$/m);
  assert.equal(code, exitCodes.ok);
});

/** Eight old volumes, of which the cluster names the first ones, and an audit with these options. */
async function oldVolumes(named: number, options: Partial<Parameters<typeof runAudit>[1]>) {
  const cluster = new FakeClusterView();
  const test = testController({}, 1, cluster);
  const ids = Array.from({ length: 8 }, (_, i) => `pvc-${i}`);
  for (const id of ids) test.store.put(aDisk(aRecord({ withdrawnAtSeconds: 1_700_000_000 }), { id }));
  cluster.used = ids.slice(0, named).map((id) => aClusterVolume(id));
  const { io, out, err } = fakeCommandIo();
  const chosen = { json: false, foreign: false, vouched: false, chosen: [], deleteOlderThanMs: 86_400_000 };
  const code = await inTime(test.clock, runAudit(test.deps, { ...chosen, ...options }, io, testContext()));
  return { code, left: [...test.store.disks.keys()], out: out.join("\n"), err: err.join("\n") };
}

Deno.test("audit deletes nothing by age where most volumes have no PersistentVolume, and fails", async () => {
  for (const named of [0, 1, 3]) {
    const { code, left, out, err } = await oldVolumes(named, {});
    assert.deepEqual([code, left.length], [exitCodes.failed, 8], `${named} of 8`);
    assert.match(
      err,
      /^rds-csi audit: Cannot delete by age because .*PersistentVolume.*; look at each, and name .* --delete/,
    );
    assert.match(out, /^nothing is deleted by age: /m);
  }
  const { code, left } = await oldVolumes(4, {});
  assert.deepEqual([code, left], [exitCodes.ok, ["pvc-0", "pvc-1", "pvc-2", "pvc-3"]]);
});

Deno.test("audit deletes what is named also where it deletes nothing by age", async () => {
  const { code, left } = await oldVolumes(1, { chosen: ["pvc-7"], deleteOlderThanMs: undefined });
  assert.deepEqual([code, left.length, left.includes("pvc-7")], [exitCodes.ok, 7, false]);
  const both = await oldVolumes(1, { chosen: ["pvc-7"], json: true });
  assert.deepEqual([both.code, both.left.length], [exitCodes.failed, 7]);
  const { deleted, failed, reasonAgainstAge } = JSON.parse(both.out);
  assert.deepEqual([deleted.length, failed.length], [1, 6]);
  assert.match(failed[0].failed, /^Cannot delete by age because more than half/);
  assert.match(reasonAgainstAge, /^more than half/);
});

Deno.test("audit by age fails for nothing where there is nothing to delete", async () => {
  const { code, left } = await oldVolumes(8, {});
  assert.deepEqual([code, left.length], [exitCodes.ok, 8]);
});

Deno.test("audit prints the findings of the first read when it is stopped before the second", async () => {
  for (const json of [false, true]) {
    const { deps, store, clock } = testController();
    const path = `/pool/csi/pvc-9.${deps.settings.cluster}.img`;
    store.putImage(path, gibibyte);
    const { io, out, err } = fakeCommandIo();
    const stop = new AbortController();
    const options = {
      ...{ json, foreign: false, vouched: false, chosen: [], deleteOlderThanMs: undefined },
    };
    const running = runAudit(deps, options, io, testContext({ signal: stop.signal }));
    await clock.advance(1_000);
    stop.abort(new VolumeError("cancelled", "Stopped by SIGINT"));
    await assert.rejects(running, (error) => error === stop.signal.reason);
    assert.match(out.join("\n"), /image-without-disk/);
    assert.match(err.join(), /after the first of two readings/);
    if (json) assert.equal(JSON.parse(out.join("\n")).complete, false);
  }
});
