// Original file: proto/csi.proto


export interface ControllerGetVolumeHealthRequest {
  'volumeId'?: (string);
  'secrets'?: ({[key: string]: string});
}

export interface ControllerGetVolumeHealthRequest__Output {
  'volumeId': (string);
  'secrets': ({[key: string]: string});
}
