import { isFile } from "../kit/host_command.ts";
import type { MachineCluster } from "./cluster.ts";
import { packSidecar } from "./images.ts";

/** What names the program: no registry that these tests are built from has it. */
export const registrarVariable = "NODE_DRIVER_REGISTRAR";

/** What the chart gets where node-driver-registrar registers the driver. */
export const registrarValues = { node: { sidecars: { registrar: { enabled: true } } } };

/** node-driver-registrar on this machine, as a path. */
export function registrarProgram(): string | undefined {
  const path = Deno.env.get(registrarVariable);
  return path !== undefined && isFile(path) ? path : undefined;
}

/** Gives all nodes the image of node-driver-registrar. */
export async function importRegistrar(cluster: MachineCluster): Promise<void> {
  const program = registrarProgram();
  if (program === undefined) throw new Error(`${registrarVariable} names no program`);
  const archive = await packSidecar("csi-node-driver-registrar", program, cluster.folder);
  for (const node of cluster.nodes) await node.importImage(archive);
}
