import type { TakeOver } from "./deps.ts";
import { importFirst } from "./import/import_disk.ts";
import { migrateFirst } from "./legacy/migrate.ts";

/** Imports a disk without a record, and takes one over that the legacy driver has made. */
export const takeOver: TakeOver = async (call, read, disk, claim) => {
  const view = { ...read, isAssumed: false };
  const imported = claim && await importFirst(call, view, disk, claim);
  return imported ?? await migrateFirst(call, view, disk);
};
