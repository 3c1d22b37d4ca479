import { storagePackage } from "../../routeros/console/router_info.ts";
import { parseRows, type Row } from "../../routeros/console/json.ts";
import { packagesQuery } from "../../routeros/store/queries.ts";
import type { RouterCheck } from "./check.ts";
import { type Finding, fine, problem } from "../../volume/model/finding.ts";

const check = "package";

/** Whether the storage package is there. */
export const packageCheck: RouterCheck = {
  name: check,
  essential: true,
  run: async (
    router,
  ) => [judgePackages(parseRows(await router.read(check, packagesQuery), "list of packages"))],
};

/** What a list of packages says about the one that matters. */
export function judgePackages(rows: readonly Row[]): Finding {
  const storage = rows.find((row) => row.text("name") === storagePackage);
  if (storage === undefined) {
    return problem(
      check,
      `${storagePackage} is not installed: upload the package of the router's own version, then reboot`,
      "/system/reboot",
    );
  }
  const found = `${storagePackage} ${storage.text("version", "")}`.trim();
  if (!storage.flag("disabled", false)) return fine(check, found);
  return problem(
    check,
    `${found} is disabled`,
    `/system/package/enable ${storagePackage}, then /system/reboot`,
  );
}
