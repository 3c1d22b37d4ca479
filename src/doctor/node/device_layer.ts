import type { KernelFiles } from "../../host/kernel_files.ts";
import type { DeviceLayer } from "../../volume/model/device_layer.ts";
import { type Finding, fine, problem, skipped, warning } from "../../volume/model/finding.ts";
import { nodeFixes } from "./fixes.ts";
import { isLoadable, isPresent, type ModuleFiles } from "./modules.ts";

const layerName = "device-layer";

/**
 * Checks whether the kernel has what a device layer needs. It loads nothing, so it reads which modules are loaded, and
 * the folder of modules.
 *
 * @param wanted the node's `--device-layer`; StorageClasses may choose otherwise
 */
export async function checkDeviceLayer(
  files: KernelFiles,
  modules: ModuleFiles,
  wanted: DeviceLayer,
): Promise<Finding> {
  if (isPresent(files, "dm_multipath")) {
    return fine(layerName, `dm_multipath is loaded; --device-layer is ${wanted}`);
  }
  const loadable = await isLoadable(modules, /(?:^|\/)dm[-_]multipath\.ko/m);
  if (loadable === true) {
    return fine(
      layerName,
      `dm_multipath can be loaded, by the first volume that needs it; --device-layer is ${wanted}`,
    );
  }
  const found = loadable === false
    ? "the running kernel has no dm_multipath"
    : "dm_multipath is not loaded, and this process cannot see whether it can be loaded";
  if (wanted === "none") return skipped(layerName, `${found}; --device-layer is none`);
  const words = `${found}; --device-layer is ${wanted}`;
  return wanted === "multipath" && loadable === false
    ? problem(layerName, words, nodeFixes.layerMissing())
    : warning(layerName, words, nodeFixes.layerMissing());
}
