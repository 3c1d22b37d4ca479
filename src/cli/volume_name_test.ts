import assert from "node:assert/strict";
import { refusal } from "../../tests/fakes/refusal.ts";
import { aPersistentVolume } from "../../tests/fakes/kube_client.ts";
import { FakeKubeApi } from "../../tests/fakes/kube_api.ts";
import { volumeFlags } from "./config/flag_tables.ts";
import { FlagError } from "./flags.ts";
import { inCluster } from "./volume_name.ts";

const uid = "0a0b0c0d-0000-4000-8000-000000000001";

/** Runs it with a cluster that has one claim with a volume, one without, and a PersistentVolume of no CSI driver. */
async function ask(words: readonly string[], rules?: FakeKubeApi["rules"]): Promise<string[]> {
  await using api = new FakeKubeApi();
  api.rules = rules;
  api.put("/api/v1/namespaces", { metadata: { name: "kube-system", uid } });
  api.put("/api/v1/persistentvolumes", aPersistentVolume("pvc-1"));
  api.put("/api/v1/persistentvolumes", { metadata: { name: "local" }, spec: { local: { path: "/x" } } });
  const claims = "/api/v1/namespaces/apps/persistentvolumeclaims";
  api.put(claims, { metadata: { name: "data", namespace: "apps" }, spec: { volumeName: "pv-pvc-1" } });
  api.put(claims, { metadata: { name: "new", namespace: "apps" }, spec: {} });
  const file = await Deno.makeTempFile({ prefix: "rds-csi-test-" });
  try {
    await Deno.writeTextFile(file, api.kubeconfig());
    const io = { env: () => undefined, signal: new AbortController().signal };
    const text = await inCluster([...words, `--kubeconfig=${file}`], volumeFlags, io);
    return text.filter((word) => !word.startsWith("--kubeconfig"));
  } finally {
    await Deno.remove(file);
  }
}

Deno.test("inCluster() finds a volume by its claim or its PersistentVolume, and the cluster's id", async () => {
  for (const name of ["pvc/apps/data", "pv/pv-pvc-1", "pvc-1"]) {
    assert.deepEqual(await ask([name, "--rds-port=2222"]), [
      "pvc-1",
      "--rds-port=2222",
      `--cluster-id=${uid}`,
    ]);
  }
  assert.deepEqual(await ask(["pvc/apps/data", "--cluster-id", "c"]), ["pvc-1", "--cluster-id", "c"]);
});

Deno.test("inCluster() says what is missing: the claim, its volume, a CSI volume, the permission to read", async () => {
  await assert.rejects(ask(["pvc/apps/other"]), refusal("not-found", /other/));
  await assert.rejects(ask(["pvc/apps/new"]), refusal("not-found", /the claim has none yet: pvc\/apps\/new/));
  await assert.rejects(ask(["pv/local"]), refusal("not-found", /pv\/local belongs to no CSI driver/));
  await assert.rejects(ask(["pvc/apps/data"], []), refusal("unavailable"));
});

Deno.test("inCluster() leaves a command line alone without a cluster, and refuses a name then", async () => {
  const io = { env: () => undefined, signal: new AbortController().signal };
  const same = async (...words: string[]) => assert.deepEqual(await inCluster(words, volumeFlags, io), words);
  await same("pvc-1", "--rds-port=2222");
  await same("nas2/pvc-1");
  await same("--help");
  await same();
  await assert.rejects(inCluster(["pvc/apps/data"], volumeFlags, io), (error: unknown) => {
    assert.ok(error instanceof FlagError);
    assert.match(error.message, /^pvc\/apps\/data can only be found in a cluster; use --kubeconfig/);
    return true;
  });
});
