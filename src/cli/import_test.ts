import assert from "node:assert/strict";
import { refusal } from "../../tests/fakes/refusal.ts";
import { control } from "../../tests/support/control_port.ts";
import { status } from "@grpc/grpc-js";
import { parse as parseYaml } from "yaml";
import {
  changesNothing,
  create,
  gibibyte,
  mount,
  publishRequest,
  rejectsWith,
  state,
} from "../../tests/support/controller_calls.ts";
import { FakeKubeApi } from "../../tests/fakes/kube_api.ts";
import { aPersistentVolume } from "../../tests/fakes/kube_client.ts";
import { withKubeconfig } from "../../tests/support/cluster_stack.ts";
import { volumesPath } from "../kubernetes/objects.ts";
import {
  clusterId,
  probedProfile,
  type Stack,
  type StackOptions,
  startStack,
} from "../../tests/support/stack.ts";
import {
  addDisk,
  calls,
  contexts,
  disk,
  doImport,
  path,
  recordOf,
  release,
  startWithFile,
} from "../../tests/support/static_disk.ts";
import type { Disk } from "../simulator/model/disk.ts";
import { profiles } from "../simulator/profile.ts";
import { volumeIdFor } from "../volume/model/ids/ids.ts";
import { clusterHash } from "../volume/model/ids/cluster_hash.ts";
import { formatComment } from "../volume/model/record.ts";

Deno.test("import prints a PersistentVolume, says what it would do before, and does the same when repeated", async () => {
  await using scene = await startWithFile();
  const { stack } = scene;
  await addDisk(stack, { "mount-filesystem": true });
  await changesNothing(stack, async () => {
    const { out, err } = await doImport(stack, "data", "--kind", "ext4", "--dry-run", "--json");
    assert.match(err, /can be imported. Nothing was changed/);
    assert.equal(JSON.parse(out).spec.csi.volumeHandle, "data");
    await assert.rejects(doImport(stack, "data"), refusal("invalid", /--kind/));
  });
  const done = await doImport(stack, "data", "--kind", "ext4", "--claim", "media/films");
  assert.match(done.err, /is a volume of this cluster now/);
  await changesNothing(stack, async () => {
    const again = await doImport(stack, "data", "--kind", "ext4", "--claim", "media/films");
    assert.match(again.err, /was imported before/);
    assert.equal(again.out, done.out);
    // The record contains the kind.
    assert.equal((await doImport(stack, "data", "--claim", "media/films")).out, done.out);
  });
  assert.equal((await calls(stack).publish("node-1", {}))["mayFormat"], "false");
  await changesNothing(stack, async () => {
    assert.equal((await doImport(stack, "data", "--claim", "media/films")).out, done.out);
    await assert.rejects(doImport(stack, "data", "--kind", "xfs"), refusal("precondition", /another kind/));
    await assert.rejects(release(stack), refusal("precondition"));
  });
  await calls(stack).unpublish();
  await doImport(stack, "data", "--kind", "xfs");
  assert.equal((await recordOf(stack)).record.capabilities, "xfs/m");
  await scene.assertIntact();
});

Deno.test("import prints no PersistentVolume of a volume that has one, and fails when the cluster does not say", async () => {
  await using scene = await startWithFile();
  await using api = new FakeKubeApi();
  const { stack } = scene;
  await addDisk(stack);
  await withKubeconfig(api, async (kubeconfig) => {
    const first = await doImport(stack, "data", "--kind", "ext4", ...kubeconfig);
    assert.match(first.out, /volumeHandle: "data"/);
    assert.doesNotMatch(first.err, /No cluster was asked/);
    api.put(volumesPath, aPersistentVolume("data"));
    const again = await doImport(stack, "data", "--kind", "ext4", ...kubeconfig);
    assert.equal(again.out, "");
    assert.match(
      again.err,
      /Nothing is printed because the PersistentVolume pv-data names the volume already/,
    );
    api.faults.push({ match: /persistentvolumes/, status: 500 });
    await assert.rejects(doImport(stack, "data", "--kind", "ext4", ...kubeconfig), { kind: "unavailable" });
  });
  const { out, err } = await doImport(stack, "data", "--kind", "ext4");
  assert.notEqual(out, "");
  assert.match(err, /No cluster was asked: apply this only if no PersistentVolume names the volume yet/);
});

Deno.test("import prints an encrypted volume of this driver with a place for its Secret, and without its header", async () => {
  await using stack = await startStack();
  const id = await create(stack, "a", { parameters: { encrypted: "true" } });
  const { out, err } = await doImport(stack, id);
  const { capacity, csi } = parseYaml(out).spec;
  assert.equal(capacity.storage, String(gibibyte));
  const secret = { name: "name-of-its-secret", namespace: "namespace-of-its-secret" };
  assert.deepEqual([csi.nodeStageSecretRef, csi.nodePublishSecretRef], [secret, secret]);
  assert.deepEqual(csi.volumeAttributes, { encrypted: "true" });
  // An anchor would tie the two together in the file that a person edits.
  assert.doesNotMatch(out, /[&*]a1/);
  assert.match(err, /Secret of the passphrase/);
});

Deno.test("import withdraws an export that a person vouches for, and its epochs do not continue it", async () => {
  await using scene = await startWithFile();
  const { stack } = scene;
  const nqn = "nqn.2000-02.com.mikrotik:data";
  await addDisk(stack, { "nvme-tcp-export": true, "nvme-tcp-server-nqn": nqn });
  await changesNothing(stack, async () => {
    const { err } = await doImport(stack, "data", "--kind", "ext4", "--exported-is-unused", "--dry-run");
    assert.match(err, /would be withdrawn/);
  });
  const { err } = await doImport(stack, "data", "--kind", "ext4", "--exported-is-unused");
  assert.match(err, new RegExp(`export under ${nqn} was withdrawn`));
  assert.deepEqual((await state(stack)).exports, []);
  assert.match((await calls(stack).publish())["nqn"]!, new RegExp(`^${nqn}:1-[0-9a-f]{8}$`));
});

Deno.test("a file without a disk becomes a volume unchanged, also where other files have its name", async () => {
  for (const { name } of profiles.filter(({ vocabulary }) => vocabulary.rose)) {
    await using scene = await startWithFile({ simulator: { profile: name } });
    const { stack } = scene;
    await create(stack, "pvc-a");
    const other = "/storage-pool/elsewhere/data.img";
    await control(stack.simulator, "POST /files", { name: other, type: "file", size: Number(gibibyte) });
    await addDisk(stack, { slot: "other", "file-path": other });
    const ask = ["--path", path, "--kind", "ext4"];
    await changesNothing(stack, () => doImport(stack, ...ask, "--dry-run"));
    const { out } = await doImport(stack, ...ask);
    assert.match(out, /volumeHandle: "data"/);
    assert.equal((await disk(stack))!["file-path"], path);
    await changesNothing(stack, async () => {
      assert.match((await doImport(stack, ...ask)).err, /imported before/);
      await assert.rejects(
        doImport(stack, ...ask, "--slot", "second"),
        refusal("precondition", /another disk uses its file: disk=data/),
      );
    });
    await scene.assertIntact();
  }
});

const fileRefusals: readonly (readonly [string, StackOptions, readonly string[], RegExp])[] = [
  ["a folder", {}, ["--path", "/storage-pool/images", "--slot", "data"], /is a folder/],
  ["a file that is not there", {}, ["--path", "/storage-pool/images/gone.img"], /does not exist/],
  ["a path that climbs", {}, ["--path", "/storage-pool/x/../images/data.img"], /no plain path/],
  [
    "a path that is too long",
    {},
    ["--path", `/storage-pool/${"x".repeat(120)}.img`, "--slot", "data"],
    /too long/,
  ],
  ["a slot that is taken", {}, ["--path", path, "--slot", "storage-pool"], /something else in that slot/],
];

for (const [what, options, args, text] of fileRefusals) {
  Deno.test(`${what}: no disk is made of a file`, async () => {
    await using scene = await startWithFile(options);
    const profile = await Deno.makeTempFile({ prefix: "rds-csi-test-" });
    await Deno.writeTextFile(profile, probedProfile(scene.stack.simulator));
    await changesNothing(scene.stack, () =>
      assert.rejects(
        doImport(scene.stack, ...args, "--kind", "block", "--router-profile", profile),
        refusal("precondition", text),
      ));
    await scene.assertIntact();
    await Deno.remove(profile);
  });
}

Deno.test("a router that adopts no files: its refusal is told, and nothing is changed", async () => {
  await using scene = await startWithFile({ simulator: { behaviours: { adopt: "refused" } } });
  await changesNothing(scene.stack, () =>
    assert.rejects(
      doImport(scene.stack, "--path", path, "--kind", "block"),
      refusal("unavailable", /Cannot import the file.*already exists/),
    ));
  await scene.assertIntact();
});

const conflicts:
  readonly (readonly [string, (stack: Stack) => void | Promise<void>, readonly string[], RegExp])[] = [
    [
      "another file than its disk's",
      () => {},
      ["--slot", "data", "--path", "/storage-pool/two.img"],
      /uses another file/,
    ],
    ["a slot without a disk", () => {}, ["gone"], /there is none/],
    [
      "a volume of a kind that is not known",
      async (stack) => {
        const comment = await recordOf(stack);
        const record = { ...comment.record, capabilities: "zfs/m" };
        change(stack, { comment: formatComment({ ...comment, record }) });
      },
      ["data"],
      /names a kind that is not known: kind=zfs/,
    ],
    [
      "a volume that is exported no more",
      (stack) => change(stack, { exported: true, nqn: "nqn.x", port: 4420 }),
      ["data"],
      /no node holds it: nqn=nqn\.x; --exported-is-unused/,
    ],
    [
      "a file, in the slot of a volume whose image is left",
      async (stack) => {
        const { model } = stack.simulator;
        const id = await create(stack, "pvc-a");
        model.disks.remove(model.disks.findBySlot(id)!.id);
        await control(stack.simulator, "POST /files", {
          name: "/storage-pool/two.img",
          type: "file",
          size: Number(gibibyte),
        });
      },
      ["--slot", volumeIdFor("pvc-a"), "--path", "/storage-pool/two.img"],
      /image of a volume of that name exists.*--slot/,
    ],
    [
      "a file of which the router makes no disk",
      async (stack) => {
        await control(stack.simulator, "POST /files", {
          name: "/storage-pool/two.img",
          type: "file",
          size: Number(gibibyte),
        });
        const refuse = {
          match: "/disk add",
          nth: 1,
          times: 1,
          action: "error",
          value: "failure: no",
        } as const;
        stack.simulator.faults.arm(refuse);
      },
      ["--path", "/storage-pool/two.img"],
      /Cannot import the file because.*failure: no/,
    ],
  ];

for (const [what, arrange, args, text] of conflicts) {
  Deno.test(`import refuses ${what}, and changes nothing`, async () => {
    await using scene = await startWithFile();
    const { stack } = scene;
    await addDisk(stack);
    await doImport(stack, "data", "--kind", "ext4");
    await arrange(stack);
    const disks = stack.simulator.model.disks.list();
    const kind = args.includes("--path") ? ["--kind", "ext4"] : [];
    await assert.rejects(doImport(stack, ...args, ...kind), text);
    assert.deepEqual(stack.simulator.model.disks.list(), disks);
    await scene.assertIntact();
  });
}

/** Changes the imported disk as a person's hand does. */
function change({ simulator }: Stack, over: Partial<Disk>): void {
  const { disks } = simulator.model;
  disks.replace({ ...disks.findBySlot("data")!, ...over });
}

Deno.test("a disk of a file that the router added with another size loses its record again", async () => {
  await using scene = await startWithFile();
  const { stack } = scene;
  const add = stack.simulator.model.disks.add.bind(stack.simulator.model.disks);
  stack.simulator.model.disks.add = (draft) => add({ ...draft, sizeBytes: draft.sizeBytes / 2n });
  await assert.rejects(
    doImport(stack, "--path", path, "--kind", "ext4"),
    refusal("precondition", /did not take the file as it was/),
  );
  assert.equal((await disk(stack))!["comment"] ?? "", "");
  await scene.assertIntact();
});

Deno.test("a PersistentVolume written by hand for an own volume is published by its record, and by no other's", async () => {
  await using stack = await startStack();
  const id = await create(stack, "pvc-lost");
  const { controller } = stack.clients;
  await changesNothing(stack, async () => {
    const { out, err } = await doImport(stack, id, "--json");
    assert.match(err, /this driver made: nothing was changed/);
    const { spec } = JSON.parse(out);
    assert.deepEqual([spec.csi.volumeHandle, spec.csi.fsType, spec.capacity.storage], [
      id,
      "ext4",
      String(gibibyte),
    ]);
    await assert.rejects(doImport(stack, id, "--kind", "xfs"), refusal("precondition", /another kind/));
  });
  for (const volumeContext of contexts) {
    const { publishContext } = await controller.call("ControllerPublishVolume", {
      ...publishRequest(id),
      volumeContext,
    });
    assert.match(publishContext["nqn"]!, new RegExp(`:${id}:1-`));
  }
  const other = await stack.another(["--cluster-id", "a cluster that was made anew"]);
  await changesNothing(stack, async () => {
    for (const volumeContext of contexts) {
      await rejectsWith(
        status.FAILED_PRECONDITION,
        other.clients.controller.call("ControllerPublishVolume", { ...publishRequest(id), volumeContext }),
        new RegExp(`belongs to another cluster.*cluster=${clusterHash(clusterId)}.*--cluster-id`),
      );
    }
  });
});

Deno.test("a static volume of a block device is reported as one, and a file system is refused", async () => {
  await using scene = await startWithFile();
  const { stack } = scene;
  await addDisk(stack);
  const { out } = await doImport(stack, "data", "--kind", "block", "--access-mode", "ReadWriteMany");
  assert.match(out, /volumeMode: "Block"/);
  assert.doesNotMatch(out, /fsType/);
  await rejectsWith(
    status.INVALID_ARGUMENT,
    calls(stack).publish("node-1", { volumeCapability: mount }),
    /another kind/,
  );
});
