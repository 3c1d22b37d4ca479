import { directoryDefinition, driverDefinition, type Timeouts } from "../../../cluster/e2e/definition.ts";
import { directoryScopes, type Exclusion, exclusions, outOfScope } from "../../../cluster/e2e/exclusions.ts";
import type { UpstreamSuite } from "../../../cluster/e2e/suites_wanted.ts";
import { assertNoDirectoryLeft, assertNothingLeft } from "./nothing_left.ts";
import { makeSharedFolder } from "./shared_folder.ts";
import type { MachineSubject } from "./upstream.ts";

/** In emulation everything starts slowly. */
const timeouts: Timeouts = {
  PodStart: "15m",
  PodStartShort: "6m",
  PodStartSlow: "20m",
  PodDelete: "15m",
  ClaimProvision: "15m",
  ClaimProvisionShort: "5m",
  DataSourceProvision: "15m",
  ClaimBound: "10m",
  PVReclaim: "10m",
  PVBound: "10m",
  PVCreate: "10m",
  PVDelete: "15m",
  SnapshotCreate: "15m",
  SnapshotDelete: "15m",
};

const withTwoNodes: Exclusion = {
  specs: / on different node/,
  why: "take two nodes, which the cluster rig has; a second machine would halve the speed of the first",
};

const multiVolumeByFilesystem: Exclusion = {
  specs: /Dynamic PV \((ext4|xfs)\)\] .*multiVolume /,
  why:
    "take long, and differ from others by a file system that the suites volumes and volume-expand have here",
};

/** The longest first. Why others are not among them is in tests/guest/README.md. */
const blockSuites: readonly UpstreamSuite[] = [
  { name: "subPath", mustPass: /should support existing directory$/ },
  { name: "provisioning", mustPass: /should provision storage with pvc data source$/ },
  { name: "volume-expand", mustPass: /should resize volume when PVC is edited while pod is using it/ },
  { name: "fsgroupchangepolicy", mustPass: /\(Always\).* new pod fsgroup applied to volume contents$/ },
  { name: "multiVolume", part: "filesystem volmode|ext4|xfs|ntfs", mustPass: onTheSameNode() },
  { name: "multiVolume", part: "block volmode", mustPass: onTheSameNode() },
  { name: "volumes", mustPass: /should store data$/ },
  { name: "volumeMode", mustPass: /should not mount \/ map unused volumes in a pod/ },
  { name: "read-write-once-pod", mustPass: /should block a second pod/ },
  { name: "volumeIO", mustPass: /should write files of various sizes/ },
];

const directorySuites: readonly UpstreamSuite[] = [
  { name: "subPath", mustPass: /should support existing directory$/ },
  { name: "multiVolume", mustPass: onTheSameNode() },
  { name: "provisioning", mustPass: /should provision storage with mount options$/ },
  { name: "volumes", mustPass: /should store data$/ },
  { name: "volumeMode", mustPass: /should not mount \/ map unused volumes in a pod/ },
  { name: "volumeIO", mustPass: /should write files of various sizes/ },
];

function onTheSameNode(): RegExp {
  return /access to two volumes with the same volume mode .* on the same node/;
}

/** Volumes at the router's NVMe/TCP target. */
export const blockSubject: MachineSubject = {
  name: "e2e",
  suites: blockSuites,
  exclusions: [withTwoNodes, multiVolumeByFilesystem, ...exclusions],
  scopes: outOfScope,
  definition: driverDefinition("rds-ext4", timeouts),
  assertNothingLeft,
};

/** Directories of the router's NFS server. */
export const directorySubject: MachineSubject = {
  name: "e2e_directory",
  suites: directorySuites,
  exclusions: [withTwoNodes, ...exclusions],
  scopes: [...outOfScope, ...directoryScopes],
  definition: directoryDefinition("rds-directory", timeouts),
  prepare: ({ router }) => makeSharedFolder(router),
  assertNothingLeft: async (cluster, signal) =>
    `${await assertNothingLeft(cluster, signal)}; ${await assertNoDirectoryLeft(cluster, signal)}`,
};
