/**
 * Why csi-sanity may leave a test out: what this driver does not advertise. Any other reason is a failure, so that a
 * capability that gets lost is noticed.
 */
export const NOT_ADVERTISED: readonly string[] = [
  "SNAPSHOT_ACCESSIBILITY_CONSTRAINTS not supported",
  "Modify volume not supported",
  "Modify Volume not supported",
  "ControllerModifyVolume not supported",
  "GroupControllerService not supported",
  "VolumeGroupSnapshots not supported",
  // NodeGetInfo gives no max_volumes_per_node, so there is no limit to test.
  "testnodevolumeattachlimit not enabled",
  // csi-sanity's own word for a test that it does not run against anyone yet.
  "pending",
];
