import { VolumeError } from "../../volume/errors.ts";
import { parseRows } from "./json.ts";
import type { RouterInfo } from "./version.ts";

/** The package that brings file-backed disks and NVMe exports. */
export const storagePackage = "rose-storage";

/**
 * Checks that a router can do what this driver needs.
 *
 * @param packagesFrame what `/system package print` gave
 * @throws {VolumeError} precondition when RouterOS is too old, or the storage package is missing or disabled
 */
export function assertFit(router: RouterInfo, packagesFrame: string): void {
  if (!router.supported) {
    throw new VolumeError(
      "precondition",
      `Cannot work with this router as its RouterOS is too old: version=${router.version} needed=7.17; ` +
        "upgrade it (/system/package/update)",
    );
  }
  const rows = parseRows(packagesFrame, "list of packages");
  const storage = rows.find((row) => row.text("name") === storagePackage);
  if (storage !== undefined && !storage.flag("disabled", false)) return;
  const state = storage === undefined ? "missing" : "disabled";
  const action = storage === undefined
    ? "install it (upload the package of the same version and reboot)"
    : `enable it (/system/package/enable ${storagePackage}, then reboot)`;
  throw new VolumeError(
    "precondition",
    `Cannot work with this router as a package is ${state}: package=${storagePackage} version=${router.version}; ${action}`,
  );
}
