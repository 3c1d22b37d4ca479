import assert from "node:assert/strict";
import { join } from "node:path";
import { hostOutput } from "../../tools/host_command.ts";
import { findHelm, renderings, renderingText } from "../../tools/deploy/helm.ts";
import { blocksOf, readPage } from "../docs/pages.ts";
import { type Container, driverOf, only, parseObjects, type Workload } from "./objects.ts";
import { makeScratch } from "../support/scratch.ts";

/** The folder in which the chart's pods find the entries of their Secret. */
export const secretFolder = "/etc/rds-csi";

/** The page that installs the simulated router. */
const guide = "docs/guides/try-without-a-router.md";

/** The pod of the simulated router and its users, for a test without a kubelet. */
export interface SimulatorPod {
  readonly container: Container;
  /** The arguments of `rds-csi simulator`. */
  readonly args: readonly string[];
  /** The host name that the driver is given. */
  readonly host: string;
  /** The flags of the driver's controller for its router. */
  readonly routerFlags: readonly string[];
}

/**
 * Returns the pod of deploy/examples/try-without-a-router.yaml as a kubelet would start it.
 *
 * @param podIp the address of the pod
 * @throws {Error} without Helm
 */
export function simulatorPod(podIp: string): SimulatorPod {
  const objects = parseObjects(renderingText(findHelm() ?? assert.fail("no Helm"), renderings.simulator));
  const pod = only<Workload>(objects, "Deployment", "rds-csi-simulator").spec.template.spec;
  const [container] = pod.containers;
  assert(container !== undefined);
  assert.deepEqual(container.env, [
    { name: "POD_IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } },
  ]);
  const [command, ...args] = container.args.map((word) => word.replaceAll("$(POD_IP)", podIp));
  assert.equal(command, "simulator");
  const driver = driverOf(only<Workload>(objects, "Deployment", "rds-csi-controller"));
  const routerFlags = driver.args.filter((word) => /^--(rds-|base-path=|nvme-)/.test(word));
  return {
    container,
    args,
    host: routerFlags.find((word) => word.startsWith("--rds-address="))!.replace(/.*=/, ""),
    routerFlags,
  };
}

/**
 * Makes keys by the guide's own commands, and puts the entries of the guide's Secret into a folder.
 *
 * @param folder is made
 */
export async function makeGuideSecret(folder: string): Promise<void> {
  const blocks = blocksOf(readPage(guide)).map(({ text }) => text);
  const making = blocks.find((text) => text.startsWith("ssh-keygen ")) ?? assert.fail("no keys are made");
  const keeping = blocks.find((text) => text.includes("create secret")) ?? assert.fail("no Secret is made");
  const entries = [...keeping.matchAll(/--from-file=([^=\s]+)=(\S+)/g)];
  await Deno.mkdir(folder);
  await using scratch = await makeScratch();
  const keys = scratch.path;
  await hostOutput("sh", ["-ec", making], { cwd: keys });
  for (const [, name, file] of entries) await Deno.copyFile(join(keys, file!), join(folder, name!));
}
