import { join } from "node:path";
import { paths, type Volume } from "../../../cluster/kit/objects.ts";
import type { MachineCluster } from "../../machine/cluster.ts";
import type { MachineRouter } from "../../machine/router.ts";

/** The file in which the router has the volume of a PersistentVolume, as a path where the router is. */
export async function fileOnRouter({ api, router }: MachineCluster, volume: string): Promise<string> {
  const { spec } = await api.get<Volume>(`${paths.volumes}/${volume}`);
  const { disks } = await router.control<{ disks: readonly Record<string, string>[] }>("/state");
  const disk = disks.find(({ slot }) => slot === spec.csi?.volumeHandle);
  if (disk === undefined) throw new Error(`The router has no disk of ${volume}`);
  return join(router.backing, "files", disk["file-path"] ?? "");
}

/** The SHA-256 of so many MiB of a file. */
export async function digestOf(
  router: MachineRouter,
  file: string,
  skipMebibytes: number,
  mebibytes: number,
): Promise<string> {
  const script = `dd if="$1" bs=1M skip="$2" count="$3" status=none | sha256sum | cut -d' ' -f1`;
  return (await router.sh(script, file, `${skipMebibytes}`, `${mebibytes}`)).trim();
}

/** The SHA-256 of a file in an ext4 that no node has, which is checked first. */
export async function digestInExt4(router: MachineRouter, image: string, path: string): Promise<string> {
  const script = `e2fsck -fn "$1" >/dev/null
    copy=$(mktemp)
    debugfs -R "dump $2 $copy" "$1"
    sha256sum "$copy" | cut -d' ' -f1
    rm "$copy"`;
  return (await router.sh(script, image, path)).trim();
}

/** Asserts that an xfs which no node has is whole. */
export async function assertWholeXfs(router: MachineRouter, image: string): Promise<void> {
  await router.sh('xfs_repair -n "$1"', image);
}
