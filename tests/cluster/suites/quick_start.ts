import assert from "node:assert/strict";
import type { Suite } from "../kit/bench.ts";
import { assertNothingLeft } from "../kit/nothing_left.ts";
import { importImage, installed, PagePerson, rigValues, type } from "./pages/person.ts";
import { adminsDoor, assertGone, freeDrives, readQuickStart } from "./pages/quick_start.ts";

/** The router's address here: with the ports that a router has. */
const address = "127.22.0.1";

/** Every block of docs/quick-start.md, in order: nothing of it is left out. */
export const suite: Suite = {
  what: "every command of docs/quick-start.md, typed as it stands there",
  limitMinutes: 11,
  run: async (bench) => {
    const page = readQuickStart();
    await using person = await PagePerson.make(bench, address, rigValues);
    const cluster = await bench.cluster({
      nodes: { n1: "kubelet" },
      router: await adminsDoor(person, address),
      install: async (location) => {
        await freeDrives(location.router);
        await person.begin(location);
        await type(bench, person, page.installing);
        return await installed(location);
      },
    });
    await importImage(cluster, bench);
    await type(bench, person, page.using);
    const isLeft = await bench.test("nothing of the first volume is left", () => {
      return assertNothingLeft(cluster, bench.signal);
    });
    if (!isLeft) return;
    // The kubelets would end the pods when their objects go.
    assert.deepEqual(await cluster.stopController(), []);
    await type(bench, person, page.removing);
    await bench.test("the driver, its user and its folder are gone", () => assertGone(cluster));
  },
};
