/** The version that GetPluginInfo, `rds-csi version` and the image labels tell. */
export const version = "0.1.0";
