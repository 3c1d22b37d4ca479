// What the node half of the driver is asked to change, and whether a request about a volume gives it leave to.
import type { NodeDeps } from "../../src/node/deps.ts";
import { StagingStore } from "../../src/node/state/staging_store.ts";
import type { DirectoryNodeDeps } from "../../src/node/directory/deps.ts";
import type { Paths } from "../../src/volume/ports/node_ports.ts";

/** One thing that was changed. */
export interface Change {
  readonly operation: string;
  /** A path of the node, the NQN of a connection or a device, or the path or number of a device. */
  readonly of: string;
}

/** What a request may change. */
export interface Scope {
  readonly volumeId: string;
  /** The paths that the request names, and those that the node's record of its volume has. */
  readonly paths: readonly string[];
  /** The driver's own folder. */
  readonly statePath: string;
  /** Names of the volume's devices. */
  readonly devices: readonly string[];
  /** The paths of other volumes, which are out of scope even where the request names them. */
  readonly others: readonly string[];
}

/** The changes that are none of the request's: elsewhere, or of another volume's device. */
export function outOfScope(changes: readonly Change[], scope: Scope): readonly Change[] {
  const { volumeId, paths, statePath, devices, others } = scope;
  return changes.filter(({ of }) => {
    if (of.startsWith("nqn.")) return of.split(":")[1] !== volumeId;
    if (devices.includes(of)) return false;
    if (others.some((path) => isWithin(of, path))) return true;
    return ![...paths, statePath].some((path) => isWithin(of, path));
  });
}

function isWithin(path: string, folder: string): boolean {
  const isPlain = !path.split("/").includes("..");
  return isPlain && (path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`));
}

/** Which arguments of each method name what it changes. */
type Changing<Port> = {
  readonly [Name in keyof Port]?: Port[Name] extends (...args: infer Args) => unknown
    ? (...args: Args) => readonly string[]
    : never;
};

/** The port, which also reports the changes that it is asked for. */
function watched<Port extends object>(port: Port, changing: Changing<Port>, changes: Change[]): Port {
  return new Proxy(port, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      const named = changing[name as keyof Port] as ((...args: unknown[]) => readonly string[]) | undefined;
      return (...args: unknown[]) => {
        for (const of of named?.(...args) ?? []) changes.push({ operation: String(name), of });
        return value.apply(target, args);
      };
    },
  });
}

const first = (path: string) => [path];
const ofPaths: Changing<Paths> = {
  makeFolder: first,
  makeFile: first,
  setMode: first,
  writeFile: first,
  removeEmptyFolder: first,
  removeEmptyFile: first,
  removeFile: first,
};
/** The NQN alone shows whose a map is, which may be gone at the end of the call. */
const ofDevice = ({ nqn, path }: { readonly nqn: string; readonly path: string }) =>
  path.startsWith("/dev/dm-") ? [nqn] : [nqn, path];

/** What a node works with, with every change of it added to `changes`; reads are not. */
export function watchedNode(deps: NodeDeps, changes: Change[]): NodeDeps {
  const paths = watched(deps.paths, ofPaths, changes);
  return {
    ...deps,
    paths,
    stagingStore: new StagingStore({ ...deps, ...deps.settings, paths }),
    connector: watched(deps.connector, {
      connect: ({ nqn }) => [nqn],
      rescan: first,
      disconnect: first,
      forceDisconnect: first,
    }, changes),
    mounts: watched(deps.mounts, {
      mountDevice: (device, target) => [...ofDevice(device), target],
      bindFolder: (device, source, target) => [...ofDevice(device), source, target],
      bindDevice: (device, target) => [...ofDevice(device), target],
      unmount: first,
    }, changes),
    filesystems: watched(deps.filesystems, {
      eraseEnds: ofDevice,
      format: ofDevice,
      check: ofDevice,
      grow: (device, _filesystem, mountPoint) => [...ofDevice(device), mountPoint],
      trim: (device, mountPoint) => [...ofDevice(device), mountPoint],
    }, changes),
    devices: watched(deps.devices, { setReadOnly: ofDevice, forgetReads: ofDevice }, changes),
  };
}

/** The same for a node of shared directories. */
export function watchedDirectoryNode(deps: DirectoryNodeDeps, changes: Change[]): DirectoryNodeDeps {
  return {
    ...deps,
    nfs: watched(deps.nfs, {
      mount: (_share, target) => [target],
      bind: (source, target) => [source, target],
      makeReadOnly: first,
      unmount: first,
      setModified: first,
      setOwner: first,
      setMode: first,
    }, changes),
    paths: watched(deps.paths, ofPaths, changes),
  };
}
