// Original file: proto/csi.proto

import type { Volume as _csi_v1_Volume, Volume__Output as _csi_v1_Volume__Output } from '../../csi/v1/Volume.ts';

export interface _csi_v1_ListVolumesResponse_Entry {
  'volume'?: (_csi_v1_Volume | null);
  'status'?: (_csi_v1_ListVolumesResponse_VolumeStatus | null);
}

export interface _csi_v1_ListVolumesResponse_Entry__Output {
  'volume': (_csi_v1_Volume__Output | null);
  'status': (_csi_v1_ListVolumesResponse_VolumeStatus__Output | null);
}

export interface _csi_v1_ListVolumesResponse_VolumeStatus {
  'publishedNodeIds'?: (string)[];
}

export interface _csi_v1_ListVolumesResponse_VolumeStatus__Output {
  'publishedNodeIds': (string)[];
}

export interface ListVolumesResponse {
  'entries'?: (_csi_v1_ListVolumesResponse_Entry)[];
  'nextToken'?: (string);
}

export interface ListVolumesResponse__Output {
  'entries': (_csi_v1_ListVolumesResponse_Entry__Output)[];
  'nextToken': (string);
}
