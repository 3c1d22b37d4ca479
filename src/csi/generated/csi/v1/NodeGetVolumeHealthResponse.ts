// Original file: proto/csi.proto

import type { VolumeHealth as _csi_v1_VolumeHealth, VolumeHealth__Output as _csi_v1_VolumeHealth__Output } from '../../csi/v1/VolumeHealth.ts';

export interface NodeGetVolumeHealthResponse {
  'volumeHealth'?: (_csi_v1_VolumeHealth | null);
}

export interface NodeGetVolumeHealthResponse__Output {
  'volumeHealth': (_csi_v1_VolumeHealth__Output | null);
}
