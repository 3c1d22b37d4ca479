// Original file: proto/csi.proto


export interface NodeGetVolumeHealthRequest {
  'volumeId'?: (string);
  'volumePublishPath'?: (string);
  'stagingTargetPath'?: (string);
}

export interface NodeGetVolumeHealthRequest__Output {
  'volumeId': (string);
  'volumePublishPath': (string);
  'stagingTargetPath': (string);
}
