import { plainDisk } from "./model/disk.ts";
import type { Router } from "./model/router.ts";

const sizeBytes = 1n << 30n;

/**
 * Makes disks of 1 GiB with their files, without exports: `seed-00001` and so on.
 *
 * @param basePath the folder of their files, with leading slash
 */
export function seedDisks(router: Router, basePath: string, count: number): void {
  if (count > 0) router.files.makeDirectories(basePath.slice(1));
  for (let number = 1; number <= count; number++) {
    const slot = `seed-${String(number).padStart(5, "0")}`;
    const filePath = `${basePath}/${slot}.img`;
    if (router.files.find(filePath.slice(1)) === undefined) router.files.create(filePath.slice(1), sizeBytes);
    router.disks.add({
      ...plainDisk,
      slot,
      type: "file",
      model: filePath,
      filePath,
      fileSizeBytes: sizeBytes,
      sizeBytes,
      attachedBytes: sizeBytes,
      mountFilesystem: false,
    });
  }
}
