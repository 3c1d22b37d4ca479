import { headerBytes } from "../volume/model/encryption.ts";
import { cipher, keyBytes } from "./luks_metadata.ts";

const sectorBytes = 512n;

/** The key as digits, which `dmsetup` shows as zeros, or by its name in the kernel's key ring. */
const key = `(?:[0-9a-f]{${2 * keyBytes}}|:${keyBytes}:[a-z]+:[^ ]+)`;

/** `crypt_status()` of dm-crypt.c: cipher, key, IV offset, device, offset, number of options, options. */
const tableForm = new RegExp(
  `^0 [1-9][0-9]* crypt ${cipher} ${key} 0 (?<device>[0-9]+:[0-9]+) ${headerBytes / sectorBytes}` +
    "(?: (?<count>[0-9]+) (?<options>[^\\n]+))?$",
);

/** Options that change neither what is encrypted nor how. The sizes of sectors count in the header, too. */
const harmless = new Set([
  "allow_discards",
  "same_cpu_crypt",
  "submit_from_crypt_cpus",
  "no_read_workqueue",
  "no_write_workqueue",
  "high_priority",
  "sector_size:4096",
]);

/**
 * Whether `dmsetup table` shows the mapping of one of this driver's headers: one target that encrypts the whole of the
 * device behind the header.
 *
 * @param deviceNumber of the device below, `major:minor`
 */
export function isCryptTable(shown: string, deviceNumber: string): boolean {
  const { device, count = "0", options } = tableForm.exec(shown.trim())?.groups ?? {};
  const words = options === undefined ? [] : options.split(" ");
  return device === deviceNumber && Number(count) === words.length &&
    words.every((word) => harmless.has(word));
}
