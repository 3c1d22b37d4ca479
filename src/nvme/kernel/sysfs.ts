// Reads the state of the kernel's initiator from /sys. Everything is found from the subsystem's NQN. Numbers in names
// do not show what belongs together, except for a namespace's path and its head.

import type { KernelFiles } from "../../host/kernel_files.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { Connection, FoundDevice } from "../../volume/ports/node_ports.ts";

const controllersPath = "/sys/class/nvme";
const subsystemsPath = "/sys/class/nvme-subsystem";
const sectorBytes = 512n;

/** A controller of the kernel: one path to a subsystem. */
export interface KernelController extends Connection {
  /** Such as `tcp`. */
  readonly transport: string;
}

/** The NQNs of all controllers in any state, each once. */
export function readNqns(files: KernelFiles): readonly string[] {
  return [...new Set(namesAndNqns(files).map(({ nqn }) => nqn))];
}

/** The NQNs with a live controller. */
export function readLiveNqns(files: KernelFiles): ReadonlySet<string> {
  const isLive = (name: string) => files.readText(`${controllersPath}/${name}/state`) === "live";
  return new Set(namesAndNqns(files).filter(({ name }) => isLive(name)).map(({ nqn }) => nqn));
}

/** The controllers of a subsystem, in any state. */
export function readControllers(files: KernelFiles, nqn: string): readonly KernelController[] {
  return readControllersOf(files, (each) => each === nqn);
}

/** The controllers of all such subsystems, in any state. */
export function readControllersOf(
  files: KernelFiles,
  isWanted: (nqn: string) => boolean,
): readonly KernelController[] {
  return namesAndNqns(files)
    .filter(({ nqn }) => isWanted(nqn))
    .flatMap(({ name, nqn }) => readController(files, name, nqn) ?? []);
}

/**
 * The device of a subsystem; undefined while there is none, or it is empty.
 *
 * @throws {VolumeError} identity-mismatch when there are several, so that the right one is unknown
 */
export function readDevice(files: KernelFiles, nqn: string): FoundDevice | undefined {
  const devices = readDevices(files, nqn);
  if (devices.length <= 1) return devices[0];
  const found = devices.map(({ path, nsid }) => `${path} (nsid ${nsid})`).join(", ");
  throw new VolumeError(
    "identity-mismatch",
    `Cannot determine which device is the volume's because the subsystem has several: nqn=${nqn} found ${found}; ` +
      "a subsystem of this driver has one namespace and, without native multipath, one connection: " +
      `once nothing uses them, disconnect by hand: nvme disconnect -n ${nqn}`,
  );
}

/**
 * All devices of a subsystem. A device counts only if its place in /sys still belongs to the subsystem after it was
 * read: between two reads a subsystem may go, and the next one get its name.
 */
export function readDevices(files: KernelFiles, nqn: string): readonly FoundDevice[] {
  return foldersOf(files, nqn).flatMap((folder) => {
    const device = readNamespace(files, folder, nqn);
    const isStill = foldersOf(files, nqn).includes(folder) &&
      files.readText(`${folder}/dev`) === device?.deviceNumber;
    return device !== undefined && isStill ? [device] : [];
  });
}

/**
 * The devices of all such subsystems by NQN, read like {@linkcode readDevice}, and in two walks, however many there are. One
 * that changes meanwhile is left out, and so is a subsystem with several devices.
 */
export function readAllDevices(
  files: KernelFiles,
  isWanted: (nqn: string) => boolean,
): ReadonlyMap<string, FoundDevice> {
  const read = [...foldersByNqn(files, isWanted)].flatMap(([nqn, [folder, ...others]]) => {
    const device = folder === undefined || others.length > 0 ? undefined : readNamespace(files, folder, nqn);
    return device === undefined ? [] : [{ nqn, folder: folder!, device }];
  });
  const still = foldersByNqn(files, isWanted);
  return new Map(read.flatMap(({ nqn, folder, device }) => {
    const isStill = still.get(nqn)?.join() === folder &&
      files.readText(`${folder}/dev`) === device.deviceNumber;
    return isStill ? [[nqn, device] as const] : [];
  }));
}

/** The folders of a subsystem's namespaces. */
function foldersOf(files: KernelFiles, nqn: string): readonly string[] {
  return foldersByNqn(files, (each) => each === nqn).get(nqn) ?? [];
}

/** The folders of the namespaces of all such subsystems, by NQN, each once. */
function foldersByNqn(
  files: KernelFiles,
  isWanted: (nqn: string) => boolean,
): ReadonlyMap<string, readonly string[]> {
  const controllers = namesAndNqns(files).filter(({ nqn }) => isWanted(nqn));
  return new Map(
    [...Map.groupBy(controllers, ({ nqn }) => nqn)].map(([nqn, paths]) => {
      const folders = paths.flatMap(({ name }) => namespaceFolders(files, name, nqn));
      return [nqn, [...new Set(folders)]];
    }),
  );
}

/** Whether nothing of a subsystem is left: no controller, and no namespace that waits for one. */
export function isGone(files: KernelFiles, nqn: string): boolean {
  if (readNqns(files).includes(nqn)) return false;
  const subsystems = files.list(subsystemsPath) ?? [];
  return !subsystems.some((name) => {
    const folder = `${subsystemsPath}/${name}`;
    return files.readText(`${folder}/subsysnqn`) === nqn &&
      (files.list(folder) ?? []).some((entry) => namespaceForm.test(entry));
  });
}

/** Whether the kernel joins the paths to a namespace into one device. */
export function joinsPaths(files: KernelFiles): boolean {
  return files.readText("/sys/module/nvme_core/parameters/multipath") === "Y";
}

const controllerForm = /^nvme[0-9]+$/;
/** Matches neither the hidden device of one path, `nvme0c1n2`, nor the character device `ng0n1`. */
const namespaceForm = /^nvme[0-9]+n[0-9]+$/;
/** A path: its subsystem, its controller, and the head to which it belongs. */
const pathForm = /^nvme([0-9]+)c[0-9]+n([0-9]+)$/;

/** A controller whose first connect is under way has no NQN yet, and shows `(efault)` in its place. */
function namesAndNqns(files: KernelFiles): readonly { readonly name: string; readonly nqn: string }[] {
  const names = files.list(controllersPath) ?? [];
  return names.filter((name) => controllerForm.test(name)).flatMap((name) => {
    const nqn = files.readText(`${controllersPath}/${name}/subsysnqn`);
    return nqn?.startsWith("nqn.") ? [{ name, nqn }] : [];
  });
}

/** Where the kernel is connecting for the first time right now, for any program: those controllers have no NQN yet. */
export function readPending(
  files: KernelFiles,
): readonly { readonly address: string; readonly port: number }[] {
  const names = (files.list(controllersPath) ?? []).filter((name) => controllerForm.test(name));
  return names.flatMap((name) => {
    const read = (attribute: string) => files.readText(`${controllersPath}/${name}/${attribute}`);
    const address = read("address");
    return address === undefined || read("subsysnqn")?.startsWith("nqn.")
      ? []
      : [parseAddressAttribute(address)];
  });
}

function readController(files: KernelFiles, name: string, nqn: string): KernelController | undefined {
  const read = (attribute: string) => files.readText(`${controllersPath}/${name}/${attribute}`);
  const stateName = read("state");
  if (stateName === undefined) return undefined; // The controller has just gone.
  return {
    nqn,
    name,
    state: stateOf(stateName),
    stateName,
    transport: read("transport") ?? "",
    ...parseAddressAttribute(read("address") ?? ""),
    hostNqn: read("hostnqn") ?? "",
    hostId: read("hostid") ?? "",
  };
}

/** Parses `traddr=10.0.0.1,trsvcid=4420,src_addr=10.0.0.2`. */
export function parseAddressAttribute(text: string): { readonly address: string; readonly port: number } {
  const fields = new Map(
    text.split(",").map((field) => {
      const at = field.indexOf("=");
      return [field.slice(0, at).trim(), field.slice(at + 1).trim()];
    }),
  );
  const port = fields.get("trsvcid") ?? "";
  return { address: fields.get("traddr") ?? "", port: /^[0-9]{1,5}$/.test(port) ? Number(port) : 0 };
}

function stateOf(name: string): Connection["state"] {
  if (name === "live" || name === "connecting") return name;
  return name.startsWith("deleting") ? "deleting" : "other";
}

/**
 * The folders of a controller's namespaces: in its own folder, or in the subsystem's where paths are joined. The latter
 * are found through the controller's path to each. So a namespace that lost its last path, and stays only because it is
 * open, is not found.
 */
function namespaceFolders(files: KernelFiles, controller: string, nqn: string): readonly string[] {
  const folder = `${controllersPath}/${controller}`;
  return (files.list(folder) ?? []).flatMap((entry) => {
    if (namespaceForm.test(entry)) return [`${folder}/${entry}`];
    const [, subsystem, head] = pathForm.exec(entry) ?? [];
    if (subsystem === undefined) return [];
    const above = `${subsystemsPath}/nvme-subsys${subsystem}`;
    return files.readText(`${above}/subsysnqn`) === nqn ? [`${above}/nvme${subsystem}n${head}`] : [];
  });
}

/** Undefined while the namespace appears or disappears, and when it has no size: then it is empty. */
function readNamespace(files: KernelFiles, folder: string, nqn: string): FoundDevice | undefined {
  const read = (attribute: string) => files.readText(`${folder}/${attribute}`);
  const [deviceNumber, sectors, nsid] = [read("dev"), read("size"), read("nsid")];
  if (!/^[0-9]+:[0-9]+$/.test(deviceNumber ?? "") || !isCount(sectors) || !isCount(nsid)) return undefined;
  return {
    path: `/dev/${folder.slice(folder.lastIndexOf("/") + 1)}`,
    deviceNumber: deviceNumber!,
    sizeBytes: BigInt(sectors) * sectorBytes,
    nqn,
    nsid: Number(nsid),
    uniqueId: idOf(read("nguid")) || idOf(read("uuid")),
  };
}

function isCount(text: string | undefined): text is string {
  return /^[1-9][0-9]*$/.test(text ?? "");
}

/**
 * The NGUID is preferred where a target gives both: it is the older id, and a target keeps it when it begins to support
 * UUIDs.
 */
function idOf(text: string | undefined): string {
  const hex = (text ?? "").replaceAll(/[^0-9A-Fa-f]/g, "").toLowerCase();
  return /^0*$/.test(hex) ? "" : hex;
}
