import assert from "node:assert/strict";
import { parseAllDocuments } from "yaml";
import { runCommand } from "../../../tests/support/command_run.ts";
import {
  block,
  changesNothing,
  create,
  mount,
  publishRequest,
} from "../../../tests/support/controller_calls.ts";
import type { FakeKubeApi } from "../../../tests/fakes/kube_api.ts";
import { aPersistentVolume } from "../../../tests/fakes/kube_client.ts";
import { clusterRules, namespaceRules } from "../../../tests/support/access_rules.ts";
import { startClusterStack, withKubeconfig } from "../../../tests/support/cluster_stack.ts";
import { clusterId, type Stack, startStack } from "../../../tests/support/stack.ts";
import { volumesPath } from "../../kubernetes/objects.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { FlagError } from "../flags.ts";
import { VolumeError } from "../../volume/errors.ts";
import { clusterHash } from "../../volume/model/ids/cluster_hash.ts";
import { adoptCommand } from "./adopt.ts";
import { exitCodes } from "../io.ts";

interface Printed {
  readonly metadata: { readonly name: string };
  readonly spec: Readonly<Record<string, unknown>> & { readonly csi: Readonly<Record<string, string>> };
}

Deno.test("adopt --from-cluster prints the free volumes of a lost cluster, and changes nothing", async () => {
  await using stack = await startStack();
  const shared = { block: {}, accessMode: { mode: "MULTI_NODE_MULTI_WRITER" } } as const;
  const ids = {
    file: await create(stack, "a", { volumeCapabilities: [mount] }),
    raw: await create(stack, "b", { volumeCapabilities: [block] }),
    shared: await create(stack, "c", { volumeCapabilities: [shared] }),
    held: await create(stack, "d"),
  };
  await stack.clients.controller.call("ControllerPublishVolume", publishRequest(ids.held, "node-2"));
  for (const id of [clusterId, `hash:${clusterHash(clusterId)}`]) {
    await changesNothing(stack, async () => {
      // The flag for this cluster's own id is ignored.
      const args = [
        "--cluster-id",
        "a new cluster",
        "--from-cluster",
        id,
        "--storage-class-name",
        "rds-ext4",
        "--vouch",
      ];
      const { code, out, err } = await runCommand(stack, adoptCommand, args);
      assert.equal(code, exitCodes.ok);
      assert.match(err, /^Nothing was changed\. Printed for 3 volumes of 4;/);
      assert.match(
        err,
        new RegExp(`Left out: ${ids.held}, which node-2 has\\..*rds-csi withdraw ${ids.held} --vouch`),
      );
      const printed = parseAllDocuments(out).map((document) => document.toJS() as Printed);
      const byName = new Map(printed.map((one) => [one.metadata.name, one.spec]));
      assert.deepEqual([...byName.keys()].toSorted(), [ids.file, ids.raw, ids.shared].toSorted());
      assert.deepEqual(byName.get(ids.file), {
        capacity: { storage: String(1 << 30) },
        volumeMode: "Filesystem",
        accessModes: ["ReadWriteOnce"],
        persistentVolumeReclaimPolicy: "Retain",
        storageClassName: "rds-ext4",
        claimRef: { namespace: "namespace-of-its-claim", name: "name-of-its-claim" },
        csi: { driver: "rds.csi.srvlab.io", volumeHandle: ids.file, fsType: "ext4" },
      });
      const modes = (id: string) => [byName.get(id)?.["volumeMode"], byName.get(id)?.["accessModes"]];
      assert.deepEqual(modes(ids.raw), ["Block", ["ReadWriteOnce"]]);
      assert.deepEqual(modes(ids.shared), ["Block", ["ReadWriteMany"]]);
    });
  }
});

Deno.test("adopt --from-cluster prints one List as JSON, and says when there are no volumes", async () => {
  await using stack = await startStack();
  const id = await create(stack, "a");
  const { out } = await runCommand(stack, adoptCommand, [`--from-cluster=${clusterId}`, "--json", "--vouch"]);
  const { kind, items } = JSON.parse(out) as { kind: string; items: Printed[] };
  assert.deepEqual([kind, items.map(({ spec }) => spec.csi["volumeHandle"])], ["List", [id]]);
  const none = await runCommand(stack, adoptCommand, ["--from-cluster", "another one", "--vouch"]);
  assert.deepEqual([none.code, none.out], [exitCodes.unknown, ""]);
  assert.match(none.err, /No volume on this router carries that cluster's mark/);
});

Deno.test("adopt --from-cluster prints an encrypted volume with a place for its Secret, and without its header", async () => {
  await using stack = await startStack();
  const id = await create(stack, "a", { parameters: { encrypted: "true" } });
  const { out, err } = await runCommand(stack, adoptCommand, [
    `--from-cluster=${clusterId}`,
    "--json",
    "--vouch",
  ]);
  const [{ spec }] = (JSON.parse(out) as { items: [Printed] }).items;
  assert.deepEqual(spec["capacity"], { storage: String(1 << 30) });
  assert.deepEqual(spec.csi, {
    driver: "rds.csi.srvlab.io",
    volumeHandle: id,
    fsType: "ext4",
    volumeAttributes: { encrypted: "true" },
    nodeStageSecretRef: { name: "name-of-its-secret", namespace: "namespace-of-its-secret" },
    nodePublishSecretRef: { name: "name-of-its-secret", namespace: "namespace-of-its-secret" },
  } as never);
  assert.match(err, /1 volume of them with encryption/);
});

Deno.test("adopt --from-cluster prints no volume that a PersistentVolume names, of whatever name and driver", async () => {
  const prepare = (api: FakeKubeApi) => void (api.rules = [...clusterRules, ...namespaceRules]);
  const flags = ["--cluster-id", clusterId, "--reconcile", "off"];
  await using cluster = await startClusterStack({ prepare, flags });
  const { api, stack } = cluster;
  const [own, others, missing] = [
    await create(stack, "a"),
    await create(stack, "b"),
    await create(stack, "c"),
  ];
  api.put(volumesPath, aPersistentVolume(own));
  const foreign = aPersistentVolume(others);
  const csi = { driver: "another.driver", volumeHandle: others };
  api.put(volumesPath, { ...foreign, spec: { ...foreign["spec"] as object, csi } });
  await withKubeconfig(api, async (kubeconfig) => {
    const args = [`--from-cluster=${clusterId}`, "--json", ...kubeconfig];
    await changesNothing(stack, async () => {
      const { out, err } = await runCommand(stack, adoptCommand, args);
      const { items } = JSON.parse(out) as { items: Printed[] };
      assert.deepEqual(items.map(({ spec }) => spec.csi["volumeHandle"]), [missing]);
      assert.match(err, /Printed for 1 volume of 3;/);
      assert.match(err, new RegExp(`Left out: ${own}, which the PersistentVolume pv-${own} names already`));
      assert.match(err, new RegExp(`Left out: ${others}, which a PersistentVolume of another driver`));
    });
    api.faults.push({ match: /persistentvolumes/, status: 500 });
    await assert.rejects(runCommand(stack, adoptCommand, args), { kind: "unavailable" });
  });
});

Deno.test("adopt --from-cluster --claims rebuilds nothing in doubt, and says why", async () => {
  await using stack = await startStack();
  const made = async (name: string) => await create(stack, name);
  const ids = {
    whole: await made("whole"),
    cut: await made("cut"),
    two: await made("two"),
    kept: await made("kept"),
    rival: await made("rival"),
    bare: await made("bare"),
    held: await made("held"),
  };
  await stack.clients.controller.call("ControllerPublishVolume", publishRequest(ids.held, "node-2"));
  const plates = `storage-pool/metal-csi/names-of-${clusterHash(clusterId)}`;
  const put = (name: string) => stack.simulator.model.files.makeDirectories(`${plates}/${name}`);
  put(`default_photos_rds-ext4_${ids.whole}`);
  put(`default_${"x".repeat(90)}_rds-ext4_${ids.cut}~`);
  for (const name of ["before", "after"]) put(`default_${name}_rds-ext4_${ids.two}`);
  for (const id of [ids.kept, ids.rival]) put(`default_db_rds-ext4_${id}`);
  put(`media_films_rds-ext4_${ids.held}`);
  // A volume that is gone is nobody's rival.
  put("default_photos_rds-ext4_pvc-gone");
  await changesNothing(stack, async () => {
    const args = [`--from-cluster=${clusterId}`, "--claims", "--json", "--vouch"];
    const { code, out, err } = await runCommand(stack, adoptCommand, args);
    assert.equal(code, exitCodes.ok);
    const { items } = JSON.parse(out) as { items: (Printed & { kind: string })[] };
    assert.deepEqual(items.map(({ kind, metadata }) => [kind, metadata]), [
      ["PersistentVolume", { name: ids.whole }],
      ["PersistentVolumeClaim", { namespace: "default", name: "photos" }],
    ]);
    assert.match(
      err,
      /^Nothing was changed\. Printed for 1 volume of 7; .* before you apply them: default\.$/m,
    );
    for (
      const text of [
        `${ids.cut} [default/${"x".repeat(90)}…], because its name plate is cut`,
        `${ids.two} [default/after or default/before], because it has 2 name plates`,
        `${ids.kept} [default/db], because the claim default/db is that of ${ids.rival} too`,
        `${ids.rival} [default/db], because the claim default/db is that of ${ids.kept} too`,
        `${ids.bare}, because it has no name plate`,
        `${ids.held} [media/films], which node-2 has. When that node is gone for good: rds-csi withdraw ${ids.held} --vouch`,
        "default/photos, whose volume pvc-gone is not on this router.",
      ]
    ) assert.ok(err.includes(`Left out: ${text}`), `${text}\n${err}`);
  });
  const elsewhere = ["--base-path", "/storage-pool/metal-csi", "--base-path", "/fast/metal-csi"];
  await assert.rejects(
    runCommand(stack, adoptCommand, [`--from-cluster=${clusterId}`, "--claims", "--vouch", ...elsewhere]),
    refusal("unavailable", /not mounted on the router: pool=fast/),
  );
  const without = await runCommand(stack, adoptCommand, [`--from-cluster=${clusterId}`, "--vouch"]);
  assert.match(without.err, new RegExp(`--claims prints them.*\n(.*\n)*  ${ids.whole} \\[default/photos\\]`));
  assert.equal(parseAllDocuments(without.out).length, 6);
});

/** What `--claims` prints and says of two volumes, once `prepare` was done to the router and its plates. */
async function withClaims(
  prepare: (stack: Stack, plates: string, ids: readonly [string, string]) => void,
  ...flags: readonly string[]
) {
  await using stack = await startStack();
  const ids = [await create(stack, "a"), await create(stack, "b")] as const;
  prepare(stack, `storage-pool/metal-csi/names-of-${clusterHash(clusterId)}`, ids);
  const args = [`--from-cluster=${clusterId}`, "--json", "--vouch", ...flags];
  const { code, out, err } = await runCommand(stack, adoptCommand, args);
  assert.equal(code, exitCodes.ok);
  const { items } = JSON.parse(out) as { items: (Printed & { kind: string })[] };
  const printed = items.map(({ kind, spec }) => ({ kind, claim: spec["claimRef"] }));
  return { ids, printed, err };
}

Deno.test("adopt --from-cluster --claims prints PersistentVolumes without claims where no name plate can be read, and says so", async () => {
  const unknown = { namespace: "namespace-of-its-claim", name: "name-of-its-claim" };
  const none =
    /^Their claims are unknown, because no name plate of theirs is in names-of-[0-9a-f]{8} on the router\.$/m;
  const make = ({ simulator }: Stack, path: string) => simulator.model.files.makeDirectories(path);
  const refused = (stack: Stack) =>
    stack.simulator.faults.arm({
      match: "names-of-",
      nth: 1,
      times: 9,
      action: "error",
      value: "failure: no",
    });
  const cases: readonly (readonly [string, Parameters<typeof withClaims>[0], RegExp])[] = [
    ["absent", () => {}, none],
    ["another cluster's", (stack, _, [id]) => {
      make(stack, `storage-pool/metal-csi/names-of-0a0b0c0d/default_photos__${id}`);
    }, none],
    ["damaged", (stack, plates, [id, other]) => {
      make(stack, `${plates}/photos of ${id}`);
      make(stack, `${plates}/default_photos_${other}`);
    }, none],
    ["of a volume that is gone", (stack, plates) => make(stack, `${plates}/default_photos__pvc-gone`), none],
    ["refused", refused, /^Their claims are unknown, because the name plates cannot be read: .*failure: no/m],
  ];
  for (const [what, prepare, why] of cases) {
    const { printed, err } = await withClaims(prepare, "--claims");
    const volume = { kind: "PersistentVolume", claim: unknown };
    assert.deepEqual(printed, [volume, volume], what);
    assert.match(
      err,
      /Printed for 2 volumes of 2; .* put the claim of each into claimRef before you apply them\.$/m,
    );
    assert.match(err, why, what);
    assert.doesNotMatch(err, /^Left out: pvc-[0-9a-f]/m);
  }
  const without = await withClaims(refused);
  assert.equal(without.printed.length, 2);
  assert.match(without.err, /^The name plates cannot be read: .*failure: no/m);
});

Deno.test("adopt --from-cluster --claims minds the name plates in base folders that are not set any more", async () => {
  const { printed, err } = await withClaims((stack, plates, [id, other]) => {
    const { files } = stack.simulator.model;
    files.makeDirectories(`${plates}/default_photos__${id}`);
    files.makeDirectories(`${plates.replace("metal-csi", "before")}/default_photos__${other}`);
  }, "--claims");
  assert.deepEqual(printed, []);
  assert.match(err, /because the claim default\/photos is that of/);
});

Deno.test("adopt --from-cluster --claims prints no claim that another volume has in the cluster", async () => {
  const prepare = (api: FakeKubeApi) => void (api.rules = [...clusterRules, ...namespaceRules]);
  const flags = ["--cluster-id", clusterId, "--reconcile", "off", "--names-on-router=false"];
  await using cluster = await startClusterStack({ prepare, flags });
  const { api, stack } = cluster;
  const [old, made, other] = [
    await create(stack, "a"),
    await create(stack, "b"),
    await create(stack, "c"),
  ];
  const plates = `storage-pool/metal-csi/names-of-${clusterHash(clusterId)}`;
  for (const [name, id] of [["photos", old], ["films", other]]) {
    stack.simulator.model.files.makeDirectories(`${plates}/default_${name}__${id}`);
  }
  // Whoever made the claim anew has got a new, empty volume.
  const volume = aPersistentVolume(made);
  const claimRef = { namespace: "default", name: "photos", uid: "its-uid" };
  api.put(volumesPath, { ...volume, spec: { ...volume["spec"] as object, claimRef } });
  await withKubeconfig(api, async (kubeconfig) => {
    const args = [`--from-cluster=${clusterId}`, "--claims", "--json", ...kubeconfig];
    const { out, err } = await runCommand(stack, adoptCommand, args);
    const { items } = JSON.parse(out) as { items: Printed[] };
    assert.deepEqual(items.map(({ metadata }) => metadata.name), [other, "films"]);
    assert.match(
      err,
      new RegExp(`Left out: ${old} .*, because the claim default/photos is that of ${made} too;`),
    );
  });
});

Deno.test("adopt --from-cluster refuses without a cluster to ask, unless somebody vouches", async () => {
  await using stack = await startStack();
  await create(stack, "a");
  const before = await stack.count();
  await assert.rejects(
    runCommand(stack, adoptCommand, [`--from-cluster=${clusterId}`]),
    (error) => error instanceof FlagError && /which PersistentVolumes exist.*--vouch/.test(error.message),
  );
  assert.deepEqual(await stack.count(), before);
});

Deno.test("adopt --from-cluster refuses a missing id, two ids, and an invalid hash", async () => {
  await using stack = await startStack();
  for (
    const args of [["--from-cluster="], ["--from-cluster", "a", "-from-cluster=b"], [
      "--from-cluster",
      "hash:x",
    ]]
  ) {
    const isRefused = (error: unknown) => error instanceof FlagError || VolumeError.is(error, "invalid");
    await assert.rejects(runCommand(stack, adoptCommand, args), isRefused, args.join(" "));
  }
});
