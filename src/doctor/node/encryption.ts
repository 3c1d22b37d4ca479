import type { KernelFiles } from "../../host/kernel_files.ts";
import { type Finding, fine, skipped } from "../../volume/model/finding.ts";
import { isLoadable, isPresent, type ModuleFiles } from "./modules.ts";

const encryptionName = "encryption";

/**
 * Checks whether the kernel has what encrypted volumes need. It loads nothing, so it reads which modules are loaded, and
 * the folder of modules. Only a StorageClass says whether any volume needs it.
 */
export async function checkEncryption(files: KernelFiles, modules: ModuleFiles): Promise<Finding> {
  if (isPresent(files, "dm_crypt")) return fine(encryptionName, "dm_crypt is loaded");
  const loadable = await isLoadable(modules, /(?:^|\/)dm[-_]crypt\.ko/m);
  if (loadable === true) {
    return fine(encryptionName, "dm_crypt can be loaded, by the first encrypted volume");
  }
  return skipped(
    encryptionName,
    loadable === false
      ? "the running kernel has no dm_crypt: encrypted volumes cannot be staged here"
      : "dm_crypt is not loaded, and this process cannot see whether it can be loaded",
  );
}
