import assert from "node:assert/strict";
import { join } from "node:path";
import { only } from "../../deploy/objects.ts";
import { blocksOf, readPage } from "../../docs/pages.ts";
import type { Suite } from "../kit/bench.ts";
import { assertNothingLeft } from "../kit/nothing_left.ts";
import { Workload } from "../kit/workload.ts";
import { importImage, installed, PagePerson, rigValues, type } from "./pages/person.ts";

/** Where the rig has the simulator listen: no pod of the chart runs here, and no name service knows its Service. */
const address = "127.23.0.1";
const sshPort = 2222;

/** The nodes' kernel has no NVMe/TCP: they reach the simulator's volumes by loop devices. */
export const suite: Suite = {
  what: "every command for a shell in docs/guides/try-without-a-router.md, with the simulator as a process",
  limitMinutes: 8,
  run: async (bench) => {
    const blocks = blocksOf(readPage("docs/guides/try-without-a-router.md"))
      .filter(({ language }) => language === "sh");
    const [creating, installing, removing] = ["create namespace", "helm install", "helm uninstall"].map((
      words,
    ) => blocks.findIndex(({ text }) => text.includes(words))) as [number, number, number];
    assert(
      0 < creating && creating < installing && installing < removing,
      "it installs, and takes away again",
    );
    await using person = await PagePerson.make(bench, address, rigValues);
    // The router is there before the cluster, with the keys that the page makes.
    await type(bench, person, blocks.slice(0, creating));
    const keys = await person.workingFolder();
    const cluster = await bench.cluster({
      nodes: { n1: "kubelet" },
      router: {
        address,
        sshPort,
        pool: "storage-pool:20G:btrfs",
        user: [
          ...["--user", "rds-csi", "--authorized-key", join(keys, "rds-csi-key.pub")],
          ...["--host-key", join(keys, "host-key")],
        ],
      },
      install: async (location) => {
        await person.begin(location);
        await type(bench, person, blocks.slice(creating, installing + 1));
        return await installed(location, { routerAddress: address });
      },
    });
    await bench.test("the simulator's Deployment and Service are in the cluster", () => {
      only(cluster.chart.objects, "Service", "rds-csi-simulator");
      return Promise.resolve(only(cluster.chart.objects, "Deployment", "rds-csi-simulator").metadata.name);
    });
    await importImage(cluster, bench);
    await type(bench, person, blocks.slice(installing + 1, removing));
    const isLeft = await bench.test("nothing of the test's volume is left", () => {
      return assertNothingLeft(cluster, bench.signal);
    });
    if (!isLeft) return;
    // The kubelets would end the pods when their objects go.
    assert.deepEqual(await cluster.stopController(), []);
    await type(bench, person, blocks.slice(removing));
    await bench.test("the namespace is gone", async () => {
      const work = new Workload(cluster, AbortSignal.timeout(60_000));
      await work.gone("/api/v1/namespaces", ({ metadata }) => metadata.name === "rds-csi");
      return "with the simulator in it";
    });
  },
};
