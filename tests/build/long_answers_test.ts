import assert from "node:assert/strict";
import { join } from "node:path";
import { type CsiClients, dial } from "../../src/csi/server/client.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { systemClock } from "../../src/host/clock.ts";
import type { Simulator, SimulatorOptions } from "../../src/simulator/simulator.ts";
import { clusterHash } from "../../src/volume/model/ids/cluster_hash.ts";
import { formatSnapshotName } from "../../src/volume/model/snapshots/snapshots.ts";
import { print } from "../../tools/print.ts";
import { isReady } from "../bench/stack.ts";
import { createDirectory, mark, sharePools } from "../support/directory_stack.ts";
import { create } from "../support/controller_calls.ts";
import { isLong } from "../support/long.ts";
import { freePort, type Part, startPart } from "../support/parts.ts";
import { startQuickly } from "../support/simulated_router.ts";
import { clusterId, reach } from "../support/stack.ts";
import { isBuilt } from "./binary.ts";

/** How long answers are: all of what once ended the controller, or for every change a tenth. */
const scale = isLong ? 1 : 0.1;
/** The chart's limit of a controller's memory. */
const limitBytes = 384 * 2 ** 20;

interface Bench {
  readonly simulator: Simulator;
  readonly clients: CsiClients;
  readonly driver: Part;
}

function longAnswerTest(
  name: string,
  options: SimulatorOptions & { readonly flags?: readonly string[] },
  seed: (simulator: Simulator) => void,
  test: (bench: Bench) => Promise<void>,
): void {
  Deno.test({
    name: `the executable survives ${name}`,
    ignore: !isBuilt,
    sanitizeOps: false,
    sanitizeResources: false,
    async fn() {
      await using undo = new AsyncDisposableStack();
      const folder = await Deno.makeTempDir({ dir: "/tmp", prefix: "rds-csi-test-" });
      undo.defer(() => Deno.remove(folder, { recursive: true }));
      const { flags = [], ...rest } = options;
      const simulator = undo.use(await startQuickly(rest));
      seed(simulator);
      const passwordFile = join(folder, "password");
      await Deno.writeTextFile(passwordFile, "secret\n", { mode: 0o600 });
      const address = `tcp://127.0.0.1:${freePort()}`;
      const driver = startPart("binary", "serve", folder, [
        ...reach(simulator, passwordFile),
        ...["--rds-user", "csi", "--endpoint", address, "--log-level", "info", ...flags],
      ]);
      undo.defer(async () => assert.deepEqual(await driver.stop(), []));
      await driver.ready(() => isReady(address));
      const clients = dial(loadCsi(), address, systemClock);
      undo.defer(() => clients.close());
      await test({ simulator, clients, driver });
      const bytes = await driver.residentBytes();
      print(`${name}: resident ${Math.round(bytes / 2 ** 20)} MiB at the end`);
      assert.ok(bytes < limitBytes);
    },
  });
}

longAnswerTest("answers of 20 MB and 30 MB of line ends", {}, () => {}, async ({ simulator, clients }) => {
  await create({ clients }, "before");
  for (const bytes of [20e6, 30e6]) {
    const value = "\r\n".repeat(bytes * scale / 2);
    simulator.faults.arm({ match: "print", nth: 1, times: 16, action: "noise", value });
    await Promise.allSettled(
      Array.from({ length: 8 }, (_, i) => create({ clients }, `during-${bytes}-${i}`)),
    );
    const [armed] = simulator.faults.list();
    assert.ok(armed!.struck > 4, `${armed!.struck} answers were long`);
    simulator.faults.clear();
  }
  await create({ clients }, "after");
});

longAnswerTest("100,000 snapshots", {}, ({ model: { files } }) => {
  files.makeDirectories("storage-pool/metal-csi");
  for (let i = 0; i < 100_000 * scale; i++) {
    const name = formatSnapshotName({
      id: `snap-${(i * 7919).toString(16).padStart(28, "0")}`,
      source: `pvc-${(i % 1000).toString(16).padStart(28, "0")}`,
      createdAtSeconds: 1_700_000_000 + i,
      ...{ blank: false, encrypted: false, cluster: clusterHash(clusterId) },
    });
    files.create(`storage-pool/metal-csi/${name}.img`, 1n << 20n);
  }
}, async ({ clients }) => {
  await create({ clients }, "a");
  const { entries } = await clients.controller.call("ListSnapshots", { maxEntries: 10 }, 120_000);
  assert.equal(entries.length, 10);
  await Promise.all(Array.from({ length: 4 }, (_, i) => create({ clients }, `b-${i}`)));
});

longAnswerTest("150,000 directories that a pod has named like removals", {
  pools: sharePools,
  ...{ basePaths: ["/share"], clusterHashes: [mark] },
  flags: ["--kind", "directory", "--base-path", "/share/k8s"],
}, ({ model: { files } }) => {
  const volume = `share/k8s/pvc-a.${mark}`;
  files.makeDirectories(volume);
  for (let i = 0; i < 150_000 * scale; i++) files.makeDirectory(`${volume}/d${i}.${mark}.deleted-00112233`);
}, async ({ clients, simulator }) => {
  await createDirectory({ clients }, "pvc-b");
  assert.ok(simulator.model.files.find(`share/k8s/pvc-b.${mark}`) !== undefined);
});
