import { directoryDriverName } from "../../../src/cli/config/directories.ts";
import { driverName } from "../kit/driver.ts";

/** The largest file of the suite volumeIO. */
const maxFileBytes = 100 * 2 ** 20;

/** How long upstream's tests wait, by its names for what they wait for, such as `{ PodStart: "10m" }`. */
export type Timeouts = Readonly<Record<string, string>>;

/**
 * The driver as upstream's external tests are told of it: what it can do, no more and no less.
 *
 * @param storageClass the class whose copies the tests take
 * @param timeouts that are not upstream's own
 */
export function driverDefinition(storageClass: string, timeouts: Timeouts = {}): object {
  return {
    DriverInfo: {
      Name: driverName,
      // What upstream's hand-made PersistentVolumes say of any volume: the kubelet has what they say made true.
      SupportedSizeRange: { Min: "2Gi" },
      SupportedFsType: { "": {}, ext4: {}, xfs: {} },
      SupportedMountOption: { noatime: {} },
      Capabilities: capabilities,
      MaxFileSize: maxFileBytes,
    },
    StorageClass: { FromExistingClassName: storageClass },
    SnapshotClass: { FromExistingClassName: "rds" },
    Timeouts: timeouts,
  };
}

/** By upstream's names. */
const capabilities: Readonly<Record<string, boolean>> = {
  persistence: true,
  block: true,
  exec: true,
  fsGroup: true,
  // Kubernetes sets the owner (fsGroupPolicy: File), not the driver.
  volumeMountGroup: false,
  multipods: true,
  multiplePVsSameID: true,
  // Of block volumes, for as long as a migration takes; of file systems never.
  RWX: true,
  capReadOnlyMany: true,
  readWriteOncePod: true,
  snapshotDataSource: true,
  pvcDataSource: true,
  snapshotMetadata: false,
  groupSnapshot: false,
  controllerExpansion: true,
  nodeExpansion: true,
  onlineExpansion: true,
  offlineExpansion: true,
  FSResizeFromSourceNotSupported: false,
  capacity: false,
  volumeLimits: true,
  topology: false,
  singleNodeVolume: false,
  seLinuxMount: false,
};

/**
 * The driver of shared directories as upstream's external tests are told of it.
 *
 * @param storageClass the class whose copies the tests take
 * @param timeouts that are not upstream's own
 */
export function directoryDefinition(storageClass: string, timeouts: Timeouts = {}): object {
  return {
    DriverInfo: {
      Name: directoryDriverName,
      SupportedSizeRange: { Min: "1Gi" },
      // It has no file system of its own to choose.
      SupportedFsType: { "": {} },
      SupportedMountOption: { noatime: {} },
      Capabilities: { ...noCapabilities, ...directoryCapabilities },
      MaxFileSize: maxFileBytes,
    },
    StorageClass: { FromExistingClassName: storageClass },
    Timeouts: timeouts,
  };
}

const noCapabilities: Readonly<Record<string, boolean>> = Object.fromEntries(
  Object.keys(capabilities).map((name) => [name, false]),
);

const directoryCapabilities: Readonly<Record<string, boolean>> = {
  persistence: true,
  exec: true,
  multipods: true,
  multiplePVsSameID: true,
  RWX: true,
  capReadOnlyMany: true,
};
