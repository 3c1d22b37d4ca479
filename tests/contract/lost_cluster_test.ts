// Forty volumes of a cluster that is gone get their claims back from the router alone, by the commands of the page of
// disasters.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { parseAllDocuments } from "yaml";
import { adoptCommand } from "../../src/cli/adopt/adopt.ts";
import { readOneBackend, systemFiles } from "../../src/cli/config/backends.ts";
import { readClusterAddress } from "../../src/cli/config/cluster.ts";
import { routerFlags } from "../../src/cli/config/flag_tables.ts";
import { withController } from "../../src/cli/controller_command.ts";
import { readFlags } from "../../src/cli/flags.ts";
import { importFlags } from "../../src/cli/import.ts";
import type { CommandIo } from "../../src/cli/io.ts";
import { readInventory } from "../../src/controller/inventory.ts";
import { NamePlateWriter } from "../../src/controller/names/name_plates.ts";
import { snapshotContentsPath, volumesPath } from "../../src/kubernetes/objects.ts";
import { clusterHash } from "../../src/volume/model/ids/cluster_hash.ts";
import { blocksOf, readPage } from "../docs/pages.ts";
import { FakeKubeApi } from "../fakes/kube_api.ts";
import { testDriver } from "../fakes/kube_client.ts";
import { clusterRules, namespaceRules } from "../support/access_rules.ts";
import { type ClusterStack, startClusterStack, withKubeconfig } from "../support/cluster_stack.ts";
import { runCommand } from "../support/command_run.ts";
import { block, changesNothing, create, mount } from "../support/controller_calls.ts";
import { clusterId, type Stack } from "../support/stack.ts";

interface Claim {
  readonly namespace: string;
  readonly name: string;
  readonly className: string;
  readonly mode: "Filesystem" | "Block";
}

const count = 40;

/** Claims with the names that people choose, some with dots, and some that read like ids. */
function claimOf(at: number): Claim {
  const namespaces = ["default", "media", "snap-1", "pvc-test"];
  const name = at % 5 === 0 ? `data.db-${at}` : at % 7 === 0 ? `pvc-0f8fad5b-${at}` : `photos-${at}`;
  const className = at % 4 === 0 ? "rds-ext4" : at % 4 === 1 ? "rds.example-2" : "";
  return {
    namespace: namespaces[at % namespaces.length]!,
    name,
    className,
    mode: at % 3 === 0 ? "Block" : "Filesystem",
  };
}

/** What the leader does in some tenth rounds. */
async function writePlates(args: readonly string[], io: CommandIo): Promise<number> {
  const flags = readFlags({ ...importFlags, ...routerFlags }, args, io.env);
  const address = readClusterAddress(flags, io.env)!;
  const config = readOneBackend(flags, await systemFiles(args, io.env));
  const cluster = { address, driverName: testDriver };
  await withController({ name: "test", config, timeoutMs: 60_000, cluster }, io, async (deps, context) => {
    const writer = new NamePlateWriter(deps, deps.clusterView!, true);
    for (let round = 0; round < 3; round++) {
      await deps.clusterView!.allAttachments(context);
      const { inventory } = await readInventory(deps, context);
      await writer.write(inventory, context.signal);
    }
  });
  return 0;
}

/** The command in a block of the page that follows "--" of kubectl, as the words of a shell. */
function commandOfPage(mark: string): readonly string[] {
  const blocks = blocksOf(readPage("docs/guides/disaster.md"));
  const shown = blocks.find(({ text }) => text.includes("--claims"))!;
  const [, words] = /-- \\\n\s*rds-csi adopt (.*) > lost\.yaml/.exec(shown.text)!;
  return words!.replace("1a2b3c4d", mark).split(" ");
}

async function typed(stack: Stack, command: string): Promise<string> {
  const answer = await control(stack.simulator, "POST /console", { command });
  const { output, refusal } = answer as { output: string; refusal: string | null };
  assert.equal(refusal, null);
  return output;
}

interface Printed {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec: Readonly<Record<string, unknown>> & { readonly csi: { readonly volumeHandle: string } };
}

/** Forty volumes with claims of every kind, and a snapshot. Returns the claims by volume. */
async function fill({ stack, api }: ClusterStack): Promise<ReadonlyMap<string, Claim>> {
  const claims = new Map<string, Claim>();
  for (let at = 0; at < count; at++) {
    const claim = claimOf(at);
    const kind = claim.mode === "Block" ? block : mount;
    const id = await create(stack, `volume ${at}`, { volumeCapabilities: [kind] });
    claims.set(id, claim);
    api.put(volumesPath, {
      metadata: { name: `pv-${id}` },
      spec: {
        csi: { driver: testDriver, volumeHandle: id },
        claimRef: { namespace: claim.namespace, name: claim.name, uid: `uid-of-${id}` },
        ...claim.className === "" ? {} : { storageClassName: claim.className },
      },
    });
  }
  api.put(snapshotContentsPath, {
    metadata: { name: "content" },
    spec: {
      driver: testDriver,
      source: { snapshotHandle: `snap-${"0a".repeat(14)}` },
      volumeSnapshotClassName: "rds-snapshots",
      volumeSnapshotRef: { namespace: "default", name: "before-upgrade" },
    },
  });
  return claims;
}

/** The claims by volume, of objects in which each claim and its PersistentVolume name each other and agree. */
function claimsOf(printed: readonly Printed[]): ReadonlyMap<string, Claim> {
  const of = (wanted: string) => printed.filter(({ kind }) => kind === wanted);
  const volumes = new Map(of("PersistentVolume").map((one) => [one.metadata.name, one.spec]));
  const found = of("PersistentVolumeClaim").map(({ metadata, spec }) => {
    const volume = volumes.get(String(spec["volumeName"]))!;
    const { namespace = "", name } = metadata;
    assert.deepEqual(volume["claimRef"], { namespace, name });
    for (const key of ["accessModes", "volumeMode", "storageClassName"]) {
      assert.deepEqual(volume[key], spec[key], key);
    }
    assert.deepEqual(spec["resources"], { requests: volume["capacity"] });
    const className = String(spec["storageClassName"]);
    const claim = { namespace, name, className, mode: spec["volumeMode"] as Claim["mode"] };
    return [volume.csi.volumeHandle, claim] as const;
  });
  assert.deepEqual([volumes.size, found.length], [printed.length / 2, printed.length / 2]);
  return new Map(found);
}

for (
  const [router, behaviours] of [["the router", {}], ["one of limited output", { maxPut: 4096 }]] as const
) {
  Deno.test(`forty volumes of a lost cluster get their PersistentVolumes and claims back from ${router}, as the page says`, async () => {
    const prepare = (api: FakeKubeApi) => void (api.rules = [...clusterRules, ...namespaceRules]);
    const flags = ["--cluster-id", clusterId, "--reconcile-interval", "1h", "--names-on-router=false"];
    await using cluster = await startClusterStack({ prepare, flags, simulator: { behaviours } });
    const { stack, api } = cluster;
    const claims = await fill(cluster);
    await withKubeconfig(api, async (kubeconfig) => void await runCommand(stack, writePlates, kubeconfig));

    // From here on there is only the router.
    await using newApi = new FakeKubeApi();
    prepare(newApi);
    const [look] = blocksOf(readPage("docs/guides/disaster.md"));
    const seen = await typed(stack, look!.text);
    const marks = new Set([...seen.matchAll(/names-of-([0-9a-f]{8})/g)].map(([, mark]) => mark!));
    assert.deepEqual([...marks], [clusterHash(clusterId)]);
    assert.match(seen, /default_before-upgrade_rds-snapshots_snap-0a0a/);
    await withKubeconfig(newApi, async (kubeconfig) => {
      await changesNothing(stack, async () => {
        const args = [...commandOfPage([...marks][0]!), ...kubeconfig];
        const { code, out, err } = await runCommand(stack, adoptCommand, args);
        assert.equal(code, 0, err);
        assert.match(
          err,
          /Printed for 40 volumes of 40; .*namespaces .*: default, media, pvc-test, snap-1\.$/m,
        );
        const printed = parseAllDocuments(out).map((document) => document.toJS() as Printed);
        assert.deepEqual(claimsOf(printed), claims);
        assert.equal(claims.size, count);
      });
    });
    assert.deepEqual(stack.simulator.violations.list(), []);
  });
}
