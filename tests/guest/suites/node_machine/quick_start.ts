import assert from "node:assert/strict";
import { driverName } from "../../../cluster/kit/driver.ts";
import { paths } from "../../../cluster/kit/objects.ts";
import { until } from "../../../cluster/kit/waiting.ts";
import { PagePerson, pageSteps } from "../../../cluster/suites/pages/person.ts";
import {
  adminsDoor,
  assertGone,
  freeDrives,
  readQuickStart,
} from "../../../cluster/suites/pages/quick_start.ts";
import type { Bench } from "../../kit/suite.ts";
import type { MachineCluster } from "../../machine/cluster.ts";
import { valuesWithoutDigests } from "../../machine/images.ts";
import { withAddress } from "../../machine/network.ts";
import type { MachineNode } from "../../machine/node.ts";
import type { NodeDrivers } from "../../machine/release.ts";
import { defaultNvmePort, routerAtDoor } from "../../machine/router.ts";
import { assertNothingLeft } from "./nothing_left.ts";
import { withBareMachines } from "./on_machines.ts";

/** The router's address, which is nobody's: RFC 5737 keeps it for documentation. */
const address = "192.0.2.1";

/** Types docs/quick-start.md, with the ports, the images and the values of the page, and nothing beside them. */
export async function typeQuickStart(bench: Bench): Promise<void> {
  const page = readQuickStart();
  await using person = await PagePerson.make(bench, address, valuesWithoutDigests(), `${address}/32`);
  const door = { ...await adminsDoor(person, address), nvmePort: defaultNvmePort };
  await withAddress(address, async () => {
    await withBareMachines(bench, {
      nodes: ["n1"],
      makeRouter: (_bench, folder) => routerAtDoor(bench, folder, door),
    }, async (cluster) =>
      void await bench.story([
        ["someone has a router with two empty drives, and a cluster", async () => {
          await freeDrives(cluster.router);
          await person.begin(cluster);
          return `the router is at ${address}`;
        }],
        ...pageSteps(person, [...page.installing, ...page.using]),
        ["nothing of the first volume is left", () => assertNothingLeft(cluster, bench.signal)],
        ...pageSteps(person, page.removing),
        ["the driver, its user and its folder are gone", () => assertGone(cluster)],
        ["the node has no driver any more", () => assertForgotten(cluster, bench.signal)],
      ]));
  });
}

/** Asserts that the kubelet has no driver any more, and that nothing but a lock and what it knew is left of it on the node. */
async function assertForgotten({ api, nodes }: MachineCluster, signal: AbortSignal): Promise<string> {
  const [{ guest }] = nodes as [MachineNode];
  const drivers = async () =>
    (await api.get<NodeDrivers>(`${paths.nodeDrivers}/${guest.name}`)).spec.drivers ?? [];
  await until("the kubelet to have no driver", async () => (await drivers()).length === 0, {
    limitSeconds: 120,
    everyMs: 500,
    signal,
    state: async () => JSON.stringify(await drivers()),
  });
  assert.equal(await guest.sh("ls /var/lib/kubelet/plugins_registry"), "");
  const left = await guest.sh("cd /var/lib/kubelet/plugins && find . ! -type d ! -path '*/known/*'");
  assert.equal(left, `./${driverName}/state/lock`);
  return `in the kubelet's folder is ${left}`;
}
