import { directoryDriverName } from "../../../src/cli/config/directories.ts";
import { driverName } from "../kit/driver.ts";

/** The largest file of the suite volumeIO. */
const maxFileBytes = 100 * 2 ** 20;

/**
 * The driver as upstream's external tests are told of it: what it can do, no more and no less.
 *
 * @param storageClass the class whose copies the tests take
 */
export function driverDefinition(storageClass: string): object {
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

/** The driver of shared directories as upstream's external tests are told of it. */
export const directoryDefinition = {
  DriverInfo: {
    Name: directoryDriverName,
    SupportedSizeRange: { Min: "1Gi" },
    // It has no file system of its own to choose.
    SupportedFsType: { "": {} },
    SupportedMountOption: { noatime: {} },
    Capabilities: { ...noCapabilities, ...directoryCapabilities },
    MaxFileSize: maxFileBytes,
  },
  StorageClass: { FromExistingClassName: "rds-directory" },
  // In emulation everything starts slowly.
  Timeouts: {
    PodStart: "15m",
    PodStartShort: "6m",
    PodStartSlow: "20m",
    PodDelete: "15m",
    ClaimProvision: "15m",
    ClaimProvisionShort: "5m",
    ClaimBound: "10m",
    PVReclaim: "10m",
    PVBound: "10m",
    PVCreate: "10m",
    PVDelete: "15m",
  },
};
