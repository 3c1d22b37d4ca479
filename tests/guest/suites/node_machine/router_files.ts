import { join } from "node:path";
import { paths, type Volume } from "../../../cluster/kit/objects.ts";
import type { MachineCluster } from "../../machine/cluster.ts";
import { hostOutput } from "../../kit/host_command.ts";

/** The file in which the router has the volume of a PersistentVolume, as a path of the host. */
export async function fileOnRouter({ api, router }: MachineCluster, volume: string): Promise<string> {
  const { spec } = await api.get<Volume>(`${paths.volumes}/${volume}`);
  const { disks } = await router.control<{ disks: readonly Record<string, string>[] }>("/state");
  const disk = disks.find(({ slot }) => slot === spec.csi?.volumeHandle);
  if (disk === undefined) throw new Error(`The router has no disk of ${volume}`);
  return join(router.backing, "files", disk["file-path"] ?? "");
}

/** The SHA-256 of so many MiB of a file. */
export async function digestOf(file: string, skipMebibytes: number, mebibytes: number): Promise<string> {
  const script = `dd if="$1" bs=1M skip="$2" count="$3" status=none | sha256sum | cut -d' ' -f1`;
  const words = [file, skipMebibytes, mebibytes].map(String);
  return (await hostOutput("sh", ["-c", script, "sh", ...words])).trim();
}

/** The SHA-256 of a file in an ext4 that no node has, which is checked first. @param scratch folder for a copy */
export async function digestInExt4(image: string, path: string, scratch: string): Promise<string> {
  await hostOutput("e2fsck", ["-fn", image]);
  const copy = join(scratch, "dumped");
  await hostOutput("debugfs", ["-R", `dump ${path} ${copy}`, image]);
  return (await hostOutput("sha256sum", [copy])).split(" ")[0] ?? "";
}

/** Asserts that an xfs which no node has is whole. */
export async function assertWholeXfs(image: string): Promise<void> {
  await hostOutput("xfs_repair", ["-n", image]);
}
