// Generated from proto/csi.proto by tools/proto/generate.ts: every message as it is received.

export interface IdentityRpcs {
  GetPluginInfo: { request: GetPluginInfoRequest; response: GetPluginInfoResponse };
  GetPluginCapabilities: { request: GetPluginCapabilitiesRequest; response: GetPluginCapabilitiesResponse };
  Probe: { request: ProbeRequest; response: ProbeResponse };
}

export interface ControllerRpcs {
  CreateVolume: { request: CreateVolumeRequest; response: CreateVolumeResponse };
  DeleteVolume: { request: DeleteVolumeRequest; response: DeleteVolumeResponse };
  ControllerPublishVolume: { request: ControllerPublishVolumeRequest; response: ControllerPublishVolumeResponse };
  ControllerUnpublishVolume: { request: ControllerUnpublishVolumeRequest; response: ControllerUnpublishVolumeResponse };
  ControllerExpandVolume: { request: ControllerExpandVolumeRequest; response: ControllerExpandVolumeResponse };
  ControllerModifyVolume: { request: ControllerModifyVolumeRequest; response: ControllerModifyVolumeResponse };
  ValidateVolumeCapabilities: { request: ValidateVolumeCapabilitiesRequest; response: ValidateVolumeCapabilitiesResponse };
  ListVolumes: { request: ListVolumesRequest; response: ListVolumesResponse };
  ControllerGetVolume: { request: ControllerGetVolumeRequest; response: ControllerGetVolumeResponse };
  ControllerListVolumeHealth: { request: ControllerListVolumeHealthRequest; response: ControllerListVolumeHealthResponse };
  ControllerGetVolumeHealth: { request: ControllerGetVolumeHealthRequest; response: ControllerGetVolumeHealthResponse };
  GetCapacity: { request: GetCapacityRequest; response: GetCapacityResponse };
  ControllerGetCapabilities: { request: ControllerGetCapabilitiesRequest; response: ControllerGetCapabilitiesResponse };
  CreateSnapshot: { request: CreateSnapshotRequest; response: CreateSnapshotResponse };
  DeleteSnapshot: { request: DeleteSnapshotRequest; response: DeleteSnapshotResponse };
  ListSnapshots: { request: ListSnapshotsRequest; response: ListSnapshotsResponse };
  GetSnapshot: { request: GetSnapshotRequest; response: GetSnapshotResponse };
}

export interface NodeRpcs {
  NodeStageVolume: { request: NodeStageVolumeRequest; response: NodeStageVolumeResponse };
  NodeUnstageVolume: { request: NodeUnstageVolumeRequest; response: NodeUnstageVolumeResponse };
  NodePublishVolume: { request: NodePublishVolumeRequest; response: NodePublishVolumeResponse };
  NodeUnpublishVolume: { request: NodeUnpublishVolumeRequest; response: NodeUnpublishVolumeResponse };
  NodeExpandVolume: { request: NodeExpandVolumeRequest; response: NodeExpandVolumeResponse };
  NodeGetVolumeStats: { request: NodeGetVolumeStatsRequest; response: NodeGetVolumeStatsResponse };
  NodeGetVolumeHealth: { request: NodeGetVolumeHealthRequest; response: NodeGetVolumeHealthResponse };
  NodeGetStorageHealth: { request: NodeGetStorageHealthRequest; response: NodeGetStorageHealthResponse };
  NodeGetInfo: { request: NodeGetInfoRequest; response: NodeGetInfoResponse };
  NodeGetCapabilities: { request: NodeGetCapabilitiesRequest; response: NodeGetCapabilitiesResponse };
}

export interface BoolValue {
  value: boolean;
}

export interface CapacityRange {
  requiredBytes: string;
  limitBytes: string;
}

export interface ControllerExpandVolumeRequest {
  volumeId: string;
  capacityRange: CapacityRange | null;
  secrets: Record<string, string>;
  volumeCapability: VolumeCapability | null;
}

export interface ControllerExpandVolumeResponse {
  capacityBytes: string;
  nodeExpansionRequired: boolean;
}

export interface ControllerGetCapabilitiesRequest {}

export interface ControllerGetCapabilitiesResponse {
  capabilities: ControllerServiceCapability[];
}

export interface ControllerGetVolumeHealthRequest {
  volumeId: string;
  secrets: Record<string, string>;
}

export interface ControllerGetVolumeHealthResponse {
  volumeHealth: VolumeHealth | null;
}

export interface ControllerGetVolumeRequest {
  volumeId: string;
}

export interface ControllerGetVolumeResponse {
  volume: Volume | null;
  status: ControllerGetVolumeResponse_VolumeStatus | null;
}

export interface ControllerGetVolumeResponse_VolumeStatus {
  publishedNodeIds: string[];
}

export interface ControllerListVolumeHealthRequest {
  maxEntries: number;
  startingToken: string;
  secrets: Record<string, string>;
}

export interface ControllerListVolumeHealthResponse {
  entries: VolumeHealth[];
  nextToken: string;
}

export interface ControllerModifyVolumeRequest {
  volumeId: string;
  secrets: Record<string, string>;
  mutableParameters: Record<string, string>;
}

export interface ControllerModifyVolumeResponse {}

export interface ControllerPublishVolumeRequest {
  volumeId: string;
  nodeId: string;
  volumeCapability: VolumeCapability | null;
  readonly: boolean;
  secrets: Record<string, string>;
  volumeContext: Record<string, string>;
}

export interface ControllerPublishVolumeResponse {
  publishContext: Record<string, string>;
}

export interface ControllerServiceCapability {
  rpc?: ControllerServiceCapability_RPC | null;
  type?: "rpc";
}

export interface ControllerServiceCapability_RPC {
  type: ControllerServiceCapability_RPC_Type;
}

export type ControllerServiceCapability_RPC_Type =
  | "UNKNOWN"
  | "CREATE_DELETE_VOLUME"
  | "PUBLISH_UNPUBLISH_VOLUME"
  | "LIST_VOLUMES"
  | "GET_CAPACITY"
  | "CREATE_DELETE_SNAPSHOT"
  | "LIST_SNAPSHOTS"
  | "CLONE_VOLUME"
  | "PUBLISH_READONLY"
  | "EXPAND_VOLUME"
  | "LIST_VOLUMES_PUBLISHED_NODES"
  | "GET_VOLUME"
  | "SINGLE_NODE_MULTI_WRITER"
  | "MODIFY_VOLUME"
  | "GET_SNAPSHOT"
  | "GET_VOLUME_HEALTH"
  | "LIST_VOLUME_HEALTH";

export interface ControllerUnpublishVolumeRequest {
  volumeId: string;
  nodeId: string;
  secrets: Record<string, string>;
}

export interface ControllerUnpublishVolumeResponse {}

export interface CreateSnapshotRequest {
  sourceVolumeId: string;
  name: string;
  secrets: Record<string, string>;
  parameters: Record<string, string>;
  accessibilityRequirements: TopologyRequirement | null;
}

export interface CreateSnapshotResponse {
  snapshot: Snapshot | null;
}

export interface CreateVolumeRequest {
  name: string;
  capacityRange: CapacityRange | null;
  volumeCapabilities: VolumeCapability[];
  parameters: Record<string, string>;
  secrets: Record<string, string>;
  volumeContentSource: VolumeContentSource | null;
  accessibilityRequirements: TopologyRequirement | null;
  mutableParameters: Record<string, string>;
}

export interface CreateVolumeResponse {
  volume: Volume | null;
}

export interface DeleteSnapshotRequest {
  snapshotId: string;
  secrets: Record<string, string>;
}

export interface DeleteSnapshotResponse {}

export interface DeleteVolumeRequest {
  volumeId: string;
  secrets: Record<string, string>;
}

export interface DeleteVolumeResponse {}

export interface GetCapacityRequest {
  volumeCapabilities: VolumeCapability[];
  parameters: Record<string, string>;
  accessibleTopology: Topology | null;
}

export interface GetCapacityResponse {
  availableCapacity: string;
  maximumVolumeSize: Int64Value | null;
  minimumVolumeSize: Int64Value | null;
}

export interface GetPluginCapabilitiesRequest {}

export interface GetPluginCapabilitiesResponse {
  capabilities: PluginCapability[];
}

export interface GetPluginInfoRequest {}

export interface GetPluginInfoResponse {
  name: string;
  vendorVersion: string;
  manifest: Record<string, string>;
}

export interface GetSnapshotRequest {
  snapshotId: string;
  secrets: Record<string, string>;
}

export interface GetSnapshotResponse {
  snapshot: Snapshot | null;
}

export interface Int64Value {
  value: string;
}

export interface ListSnapshotsRequest {
  maxEntries: number;
  startingToken: string;
  sourceVolumeId: string;
  snapshotId: string;
  secrets: Record<string, string>;
}

export interface ListSnapshotsResponse {
  entries: ListSnapshotsResponse_Entry[];
  nextToken: string;
}

export interface ListSnapshotsResponse_Entry {
  snapshot: Snapshot | null;
}

export interface ListVolumesRequest {
  maxEntries: number;
  startingToken: string;
}

export interface ListVolumesResponse {
  entries: ListVolumesResponse_Entry[];
  nextToken: string;
}

export interface ListVolumesResponse_Entry {
  volume: Volume | null;
  status: ListVolumesResponse_VolumeStatus | null;
}

export interface ListVolumesResponse_VolumeStatus {
  publishedNodeIds: string[];
}

export interface NodeExpandVolumeRequest {
  volumeId: string;
  volumePath: string;
  capacityRange: CapacityRange | null;
  stagingTargetPath: string;
  volumeCapability: VolumeCapability | null;
  secrets: Record<string, string>;
}

export interface NodeExpandVolumeResponse {
  capacityBytes: string;
}

export interface NodeGetCapabilitiesRequest {}

export interface NodeGetCapabilitiesResponse {
  capabilities: NodeServiceCapability[];
}

export interface NodeGetInfoRequest {}

export interface NodeGetInfoResponse {
  nodeId: string;
  maxVolumesPerNode: string;
  accessibleTopology: Topology | null;
}

export interface NodeGetStorageHealthRequest {
  secrets: Record<string, string>;
}

export interface NodeGetStorageHealthResponse {
  backendHealth: NodeGetStorageHealthResponse_StorageBackendHealth[];
}

export interface NodeGetStorageHealthResponse_StorageBackendHealth {
  status: StorageHealthErrorType;
  reason: string;
  message: string;
  volumeCapability: VolumeCapability | null;
}

export interface NodeGetVolumeHealthRequest {
  volumeId: string;
  volumePublishPath: string;
  stagingTargetPath: string;
}

export interface NodeGetVolumeHealthResponse {
  volumeHealth: VolumeHealth | null;
}

export interface NodeGetVolumeStatsRequest {
  volumeId: string;
  volumePath: string;
  stagingTargetPath: string;
}

export interface NodeGetVolumeStatsResponse {
  usage: VolumeUsage[];
}

export interface NodePublishVolumeRequest {
  volumeId: string;
  publishContext: Record<string, string>;
  stagingTargetPath: string;
  targetPath: string;
  volumeCapability: VolumeCapability | null;
  readonly: boolean;
  secrets: Record<string, string>;
  volumeContext: Record<string, string>;
}

export interface NodePublishVolumeResponse {}

export interface NodeServiceCapability {
  rpc?: NodeServiceCapability_RPC | null;
  type?: "rpc";
}

export interface NodeServiceCapability_RPC {
  type: NodeServiceCapability_RPC_Type;
}

export type NodeServiceCapability_RPC_Type =
  | "UNKNOWN"
  | "STAGE_UNSTAGE_VOLUME"
  | "GET_VOLUME_STATS"
  | "EXPAND_VOLUME"
  | "SINGLE_NODE_MULTI_WRITER"
  | "VOLUME_MOUNT_GROUP"
  | "GET_VOLUME_HEALTH"
  | "GET_STORAGE_HEALTH";

export interface NodeStageVolumeRequest {
  volumeId: string;
  publishContext: Record<string, string>;
  stagingTargetPath: string;
  volumeCapability: VolumeCapability | null;
  secrets: Record<string, string>;
  volumeContext: Record<string, string>;
}

export interface NodeStageVolumeResponse {}

export interface NodeUnpublishVolumeRequest {
  volumeId: string;
  targetPath: string;
}

export interface NodeUnpublishVolumeResponse {}

export interface NodeUnstageVolumeRequest {
  volumeId: string;
  stagingTargetPath: string;
}

export interface NodeUnstageVolumeResponse {}

export interface PluginCapability {
  service?: PluginCapability_Service | null;
  volumeExpansion?: PluginCapability_VolumeExpansion | null;
  type?: "service" | "volumeExpansion";
}

export interface PluginCapability_Service {
  type: PluginCapability_Service_Type;
}

export type PluginCapability_Service_Type =
  | "UNKNOWN"
  | "CONTROLLER_SERVICE"
  | "VOLUME_ACCESSIBILITY_CONSTRAINTS"
  | "GROUP_CONTROLLER_SERVICE"
  | "SNAPSHOT_METADATA_SERVICE"
  | "SNAPSHOT_ACCESSIBILITY_CONSTRAINTS";

export interface PluginCapability_VolumeExpansion {
  type: PluginCapability_VolumeExpansion_Type;
}

export type PluginCapability_VolumeExpansion_Type =
  | "UNKNOWN"
  | "ONLINE"
  | "OFFLINE";

export interface ProbeRequest {}

export interface ProbeResponse {
  ready: BoolValue | null;
}

export interface Snapshot {
  sizeBytes: string;
  snapshotId: string;
  sourceVolumeId: string;
  creationTime: Timestamp | null;
  readyToUse: boolean;
  groupSnapshotId: string;
  accessibleTopology: Topology[];
}

export type StorageHealthErrorType =
  | "UNKNOWN_STORAGE_HEALTH_ERROR_TYPE"
  | "STORAGE_DEGRADED"
  | "STORAGE_UNREACHABLE";

export interface Timestamp {
  seconds: string;
  nanos: number;
}

export interface Topology {
  segments: Record<string, string>;
}

export interface TopologyRequirement {
  requisite: Topology[];
  preferred: Topology[];
}

export interface ValidateVolumeCapabilitiesRequest {
  volumeId: string;
  volumeContext: Record<string, string>;
  volumeCapabilities: VolumeCapability[];
  parameters: Record<string, string>;
  secrets: Record<string, string>;
  mutableParameters: Record<string, string>;
}

export interface ValidateVolumeCapabilitiesResponse {
  confirmed: ValidateVolumeCapabilitiesResponse_Confirmed | null;
  message: string;
}

export interface ValidateVolumeCapabilitiesResponse_Confirmed {
  volumeContext: Record<string, string>;
  volumeCapabilities: VolumeCapability[];
  parameters: Record<string, string>;
  mutableParameters: Record<string, string>;
}

export interface Volume {
  capacityBytes: string;
  volumeId: string;
  volumeContext: Record<string, string>;
  contentSource: VolumeContentSource | null;
  accessibleTopology: Topology[];
}

export interface VolumeCapability {
  block?: VolumeCapability_BlockVolume | null;
  mount?: VolumeCapability_MountVolume | null;
  accessMode: VolumeCapability_AccessMode | null;
  accessType?: "block" | "mount";
}

export interface VolumeCapability_AccessMode {
  mode: VolumeCapability_AccessMode_Mode;
}

export type VolumeCapability_AccessMode_Mode =
  | "UNKNOWN"
  | "SINGLE_NODE_WRITER"
  | "SINGLE_NODE_READER_ONLY"
  | "MULTI_NODE_READER_ONLY"
  | "MULTI_NODE_SINGLE_WRITER"
  | "MULTI_NODE_MULTI_WRITER"
  | "SINGLE_NODE_SINGLE_WRITER"
  | "SINGLE_NODE_MULTI_WRITER";

export interface VolumeCapability_BlockVolume {}

export interface VolumeCapability_MountVolume {
  fsType: string;
  mountFlags: string[];
  volumeMountGroup: string;
}

export interface VolumeContentSource {
  snapshot?: VolumeContentSource_SnapshotSource | null;
  volume?: VolumeContentSource_VolumeSource | null;
  type?: "snapshot" | "volume";
}

export interface VolumeContentSource_SnapshotSource {
  snapshotId: string;
}

export interface VolumeContentSource_VolumeSource {
  volumeId: string;
}

export interface VolumeHealth {
  volumeId: string;
  healthStatuses: VolumeHealth_VolumeHealthEntry[];
}

export type VolumeHealthErrorType =
  | "UNKNOWN_VOLUME_HEALTH_TYPE"
  | "DEGRADED"
  | "INACCESSIBLE"
  | "DATA_LOSS";

export interface VolumeHealth_VolumeHealthEntry {
  status: VolumeHealthErrorType;
  reason: string;
  message: string;
}

export interface VolumeUsage {
  available: string;
  total: string;
  used: string;
  unit: VolumeUsage_Unit;
}

export type VolumeUsage_Unit =
  | "UNKNOWN"
  | "BYTES"
  | "INODES";
