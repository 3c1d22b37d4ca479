import { plainDisk } from "./model/disk.ts";
import type { Router } from "./model/router.ts";

/** Disks to be made in one go. */
export interface Seed {
  readonly count: number;
  /** What their slots begin with; a number of five digits follows. */
  readonly prefix: string;
  /** Where their files lie, with leading slash. */
  readonly basePath: string;
  readonly sizeBytes: bigint;
  /** Comment of each; `{slot}` in it stands for its slot. */
  readonly comment: string;
  readonly exported: boolean;
}

/** Disks as they are unless something else is asked for. */
export const plainSeed: Omit<Seed, "count" | "basePath"> = {
  prefix: "seed-",
  sizeBytes: 1n << 30n,
  comment: "",
  exported: false,
};

/** Makes many disks with their files; one whose slot is taken is left out. Gives how many were made. */
export function seedDisks(router: Router, seed: Seed): number {
  const { basePath, sizeBytes } = seed;
  if (seed.count > 0) router.files.makeDirectories(basePath.slice(1));
  let made = 0;
  for (let number = 1; number <= seed.count; number++) {
    const slot = `${seed.prefix}${String(number).padStart(5, "0")}`;
    if (router.disks.isTaken(slot)) continue;
    const filePath = `${basePath}/${slot}.img`;
    if (router.files.find(filePath.slice(1)) === undefined) router.files.create(filePath.slice(1), sizeBytes);
    router.disks.add({
      ...plainDisk,
      slot,
      type: "file",
      comment: seed.comment.replaceAll("{slot}", slot),
      model: filePath,
      filePath,
      fileSizeBytes: sizeBytes,
      sizeBytes,
      attachedBytes: sizeBytes,
      mountFilesystem: false,
      exported: seed.exported,
      ...(seed.exported ? { port: 4420, nqn: `nqn.2000-02.com.mikrotik:${slot}` } : {}),
    });
    made++;
  }
  return made;
}
