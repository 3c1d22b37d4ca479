import { basename } from "node:path";
import type { KernelFiles, NodeInfo } from "../host/kernel_files.ts";
import type { DeviceUser } from "../volume/model/host/device_user.ts";
import type { DeviceNode, MountEntry } from "../volume/ports/node_ports.ts";
import { readMountTable } from "./mountinfo.ts";

/** What this node's kernel has made on top of the devices, such as LVM, md or multipath, and which it swaps to. */
export function layersOn(files: KernelFiles, nodes: readonly DeviceNode[]): readonly DeviceUser[] {
  return [
    ...nodes.flatMap(({ path, deviceNumber }) => {
      const names = files.list(`/sys/dev/block/${deviceNumber}/holders`) ?? [];
      return names.toSorted().map((name) => ({
        device: path,
        by: "layer" as const,
        layer: `/dev/${name}`,
        words: layerWords(files, name),
      }));
    }),
    ...swapsOn(files, nodes),
  ];
}

/** What keeps a mount from being unmounted and is no process: mounts in it, and loop devices and swap of its files. */
export function keepersOfMount(
  files: KernelFiles,
  table: readonly MountEntry[],
  { mountId, mountPoint }: MountEntry,
): readonly DeviceUser[] {
  const isIn = (path: string) => path.startsWith(`${mountPoint}/`);
  const mounts = table.filter((other) => other.parentId === mountId && isIn(other.mountPoint));
  const loops = (files.list("/sys/block") ?? []).flatMap((name) => {
    const file = files.readText(`/sys/block/${name}/loop/backing_file`);
    return file !== undefined && isIn(file)
      ? [{ device: file, by: "loop" as const, loop: `/dev/${name}` }]
      : [];
  });
  return [
    ...mounts.map(({ source, mountPoint: at }) => ({ device: source, by: "mount" as const, at })),
    ...loops,
    ...swapPaths(files).filter(isIn).map((device) => ({ device, by: "swap" as const })),
  ];
}

/** The loop devices on top of the devices: the kubelet puts one on a published block device, and no process has it open. */
export function loopsOn(files: KernelFiles, nodes: readonly DeviceNode[]): readonly DeviceUser[] {
  const names = files.list("/sys/block");
  if (names === undefined) {
    return nodes.slice(0, 1).map(({ path }) => ({
      device: path,
      by: "unseen",
      what: "/sys/block cannot be read",
    }));
  }
  const table = readMountTable(files);
  return names.filter((name) => name.startsWith("loop")).flatMap((name) => {
    const backing = files.readText(`/sys/block/${name}/loop/backing_file`);
    const under = backing === undefined
      ? undefined
      : deviceNode(files, backing.replace(/ \(deleted\)$/, ""), table);
    return nodes
      .filter(({ deviceNumber }) => under?.kind === "block" && under.deviceNumber === deviceNumber)
      .map(({ path }) => ({ device: path, by: "loop" as const, loop: `/dev/${name}` }));
  });
}

/** Such as `["vg-root", "LVM"]`, `["raid1"]`. */
function layerWords(files: KernelFiles, name: string): readonly string[] {
  const read = (attribute: string) => files.readText(`/sys/block/${name}/${attribute}`);
  return [read("dm/name"), read("dm/uuid")?.split("-")[0], read("md/level")].flatMap((word) =>
    word === undefined || word === "" ? [] : [word]
  );
}

function swapsOn(files: KernelFiles, nodes: readonly DeviceNode[]): readonly DeviceUser[] {
  return swapPaths(files).filter((path) => path.startsWith("/dev/")).flatMap((path) => {
    const number = files.info(path)?.deviceNumber;
    const isIt = (node: DeviceNode) =>
      number === undefined ? basename(path) === basename(node.path) : number === node.deviceNumber;
    return nodes.filter(isIt).map((node) => ({ device: node.path, by: "swap" as const }));
  });
}

function swapPaths(files: KernelFiles): readonly string[] {
  const [, ...lines] = files.readText("/proc/swaps")?.split("\n") ?? [];
  return lines.map((line) => line.split(/\s/)[0]!);
}

/**
 * Reads what is at a path, if device nodes can be there. Other paths are not touched: the file of a loop device may be on
 * a server that is gone, and this process would wait for it.
 */
function deviceNode(files: KernelFiles, path: string, table: readonly MountEntry[]): NodeInfo | undefined {
  const around = table.filter(({ mountPoint }) =>
    path === mountPoint || path.startsWith(mountPoint === "/" ? "/" : `${mountPoint}/`)
  );
  // The longest mount point covers the others, and the last of several mounts is on top.
  const [deepest] = around.toReversed().toSorted((a, b) => b.mountPoint.length - a.mountPoint.length);
  const inMemory = deepest !== undefined && ["devtmpfs", "tmpfs"].includes(deepest.filesystem);
  return inMemory ? files.info(path) : undefined;
}
