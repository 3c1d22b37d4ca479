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
import { clusterId, startStack } from "../../../tests/support/stack.ts";
import { FlagError } from "../flags.ts";
import { VolumeError } from "../../volume/errors.ts";
import { clusterHash } from "../../volume/model/ids.ts";
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
  const { out } = await runCommand(stack, adoptCommand, [`--from-cluster=${clusterId}`, "--json"]);
  const { kind, items } = JSON.parse(out) as { kind: string; items: Printed[] };
  assert.deepEqual([kind, items.map(({ spec }) => spec.csi["volumeHandle"])], ["List", [id]]);
  const none = await runCommand(stack, adoptCommand, ["--from-cluster", "another one"]);
  assert.deepEqual([none.code, none.out], [exitCodes.unknown, ""]);
  assert.match(none.err, /No volume on this router carries that cluster's mark/);
});

Deno.test("adopt --from-cluster prints an encrypted volume with a place for its Secret, and without its header", async () => {
  await using stack = await startStack();
  const id = await create(stack, "a", { parameters: { encrypted: "true" } });
  const { out, err } = await runCommand(stack, adoptCommand, [`--from-cluster=${clusterId}`, "--json"]);
  const [{ spec }] = (JSON.parse(out) as { items: [Printed] }).items;
  assert.deepEqual(spec["capacity"], { storage: String(1 << 30) });
  assert.deepEqual(spec.csi, {
    driver: "rds.csi.srvlab.io",
    volumeHandle: id,
    fsType: "ext4",
    volumeAttributes: { encrypted: "true" },
    nodeStageSecretRef: { name: "name-of-its-secret", namespace: "namespace-of-its-secret" },
  } as never);
  assert.match(err, /1 volume of them with encryption/);
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
