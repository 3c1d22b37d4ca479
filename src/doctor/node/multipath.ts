import type { KernelFiles } from "../../host/kernel_files.ts";
import { type Finding, fine, skipped } from "../../volume/model/finding.ts";

const check = "nvme-multipath";

/** Whether the kernel makes one device of several paths. The driver works either way. */
export function checkMultipath(files: KernelFiles): Finding {
  const value = files.readText("/sys/module/nvme_core/parameters/multipath");
  if (value === "Y") return fine(check, "native multipath is on: several addresses make one device");
  if (value === "N") {
    return fine(
      check,
      "native multipath is off: of several addresses one is used, and a lost one is not replaced",
    );
  }
  return skipped(check, "nvme_core is not loaded, or has no multipath");
}
