import type { KernelFiles } from "../host/kernel_files.ts";
import type { DeviceMap } from "../volume/ports/device_maps.ts";

const blockPath = "/sys/block";
const sectorBytes = 512n;

/** The names of all device-mapper devices, such as `dm-3`. */
export function mapDevices(files: KernelFiles): readonly string[] {
  return (files.list(blockPath) ?? []).filter((name) => /^dm-[0-9]+$/.test(name));
}

/** The name of the map on that device; undefined when there is none. */
export function mapNameOf(files: KernelFiles, device: string): string | undefined {
  return files.readText(`${blockPath}/${device}/dm/name`);
}

/**
 * The map on that device; undefined when there is none, or when another map took its place during the read.
 *
 * @param device such as `dm-3`
 */
export function readMap(files: KernelFiles, device: string): DeviceMap | undefined {
  const folder = `${blockPath}/${device}`;
  const read = (attribute: string) => files.readText(`${folder}/${attribute}`);
  const [name, uuid, deviceNumber] = [read("dm/name"), read("dm/uuid"), read("dev")];
  if (name === undefined || uuid === undefined || !/^[0-9]+:[0-9]+$/.test(deviceNumber ?? "")) {
    return undefined;
  }
  const size = read("size") ?? "";
  const below = (files.list(`${folder}/slaves`) ?? []).map((slave) =>
    // The entry of a missing device leads nowhere.
    files.readText(`${folder}/slaves/${slave}/dev`) ?? "gone"
  );
  const suspended = read("dm/suspended") !== "0";
  const map = {
    name,
    uuid,
    path: `/dev/${device}`,
    deviceNumber: deviceNumber!,
    sizeBytes: /^[0-9]+$/.test(size) ? BigInt(size) * sectorBytes : 0n,
    below,
    on: suspended || below.length !== 1 || below[0] === "gone" ? undefined : below[0],
    suspended,
    ...parseStat(read("stat") ?? ""),
  };
  return read("dm/uuid") === uuid && read("dev") === deviceNumber ? map : undefined;
}

/** Parses /sys/block/…/stat: Linux, block/stat.rst. Linux counts flushes separately from writes since 5.5. */
function parseStat(text: string): Pick<DeviceMap, "pending" | "completed"> {
  const counts = text.trim().split(/ +/).map((count) => Number(count) || 0);
  const at = (index: number) => counts[index] ?? 0;
  return { pending: at(8), completed: at(0) + at(4) + at(11) + at(15) };
}
