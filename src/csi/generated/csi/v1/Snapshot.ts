// Original file: proto/csi.proto

import type { Timestamp as _google_protobuf_Timestamp, Timestamp__Output as _google_protobuf_Timestamp__Output } from '../../google/protobuf/Timestamp.ts';
import type { Topology as _csi_v1_Topology, Topology__Output as _csi_v1_Topology__Output } from '../../csi/v1/Topology.ts';
import type { Long } from '@grpc/proto-loader';

export interface Snapshot {
  'sizeBytes'?: (number | string | Long);
  'snapshotId'?: (string);
  'sourceVolumeId'?: (string);
  'creationTime'?: (_google_protobuf_Timestamp | null);
  'readyToUse'?: (boolean);
  'groupSnapshotId'?: (string);
  'accessibleTopology'?: (_csi_v1_Topology)[];
}

export interface Snapshot__Output {
  'sizeBytes': (string);
  'snapshotId': (string);
  'sourceVolumeId': (string);
  'creationTime': (_google_protobuf_Timestamp__Output | null);
  'readyToUse': (boolean);
  'groupSnapshotId': (string);
  'accessibleTopology': (_csi_v1_Topology__Output)[];
}
