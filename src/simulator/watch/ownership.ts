import type { ChangeObserver } from "../console/run.ts";
import type { Router } from "../model/router.ts";
import { toText } from "../value.ts";
import type { Rule } from "./violations.ts";

/** Reports a broken rule. */
export type Reporter = (rule: Rule, sentence: string) => void;

const ownSlot = /^[a-z0-9-]{1,32}$/;

/**
 * Watches that a client changes nothing outside its own area: file disks with slots of its form whose files lie below
 * its base paths, and files there. A file goes only after its disk.
 */
export function watchOwnership(
  router: Router,
  basePaths: readonly string[],
  report: Reporter,
): ChangeObserver {
  const isOwnPath = (path: string) =>
    basePaths.some((base) => path === base || path.startsWith(`${base}/`)) && !path.includes("/../");

  const watchDisk = (verb: string, slot: string, type: string, path: string) => {
    if (ownSlot.test(slot) && type === "file" && isOwnPath(path)) return;
    report(
      "outside-owner-area",
      `/disk ${verb} touches the ${type} disk ${slot} with the file ${path || "-"}.`,
    );
  };

  const watchFile = (verb: string, path: string) => {
    if (!isOwnPath(path)) report("outside-owner-area", `/file ${verb} touches ${path}.`);
  };

  return (menu, verb, row, values) => {
    const read = (name: string) => toText(row?.value(name) ?? null);
    if (menu === "disk") {
      if (row !== undefined) watchDisk(verb, read("slot"), read("type"), read("file-path"));
      else {watchDisk(
          verb,
          values.get("slot") ?? "",
          values.get("type") ?? "",
          slashed(values.get("file-path")),
        );}
    } else if (menu === "file") {
      const path = slashed(read("name"));
      if (row !== undefined && verb !== "copy") watchFile(verb, path);
      if (values.has("name")) watchFile(verb, slashed(values.get("name")));
      if (verb !== "remove") return;
      for (const disk of router.disks.list()) {
        if (disk.filePath === path || disk.filePath.startsWith(`${path}/`)) {
          report("file-before-disk", `/file remove takes ${path} while the disk ${disk.slot} uses it.`);
        }
      }
    } else {
      watchSubvolume(verb, row === undefined ? values.get("name") ?? "" : read("name"), report);
    }
  };
}

/** Subvolumes have no base path; a client's own are told by the form of their names. */
function watchSubvolume(verb: string, name: string, report: Reporter): void {
  if (!ownSlot.test(name)) report("outside-owner-area", `/disk/btrfs/subvolume ${verb} touches ${name}.`);
}

function slashed(path: string | undefined): string {
  return path === undefined || path === "" ? "" : `/${path.replace(/^\/+/, "")}`;
}
