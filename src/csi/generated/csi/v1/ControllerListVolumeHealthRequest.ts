// Original file: proto/csi.proto


export interface ControllerListVolumeHealthRequest {
  'maxEntries'?: (number);
  'startingToken'?: (string);
  'secrets'?: ({[key: string]: string});
}

export interface ControllerListVolumeHealthRequest__Output {
  'maxEntries': (number);
  'startingToken': (string);
  'secrets': ({[key: string]: string});
}
