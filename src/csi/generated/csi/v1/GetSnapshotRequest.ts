// Original file: proto/csi.proto


export interface GetSnapshotRequest {
  'snapshotId'?: (string);
  'secrets'?: ({[key: string]: string});
}

export interface GetSnapshotRequest__Output {
  'snapshotId': (string);
  'secrets': ({[key: string]: string});
}
