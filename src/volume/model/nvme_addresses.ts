import { VolumeError } from "../errors.ts";

/** Most addresses of one router: each is a path that a node connects. */
export const maxNvmeAddresses = 8;

const addressForm = /^[A-Za-z0-9:](?:[A-Za-z0-9.:-]{0,253}[A-Za-z0-9:])?$/;

/**
 * Reads the addresses that nodes reach volumes at: IP addresses or host names, separated by commas.
 *
 * @throws {VolumeError} invalid when one can be neither, when one is there twice, or when there are none or too many
 */
export function parseNvmeAddresses(key: string, text: string): readonly string[] {
  const addresses = text.split(",");
  const sound = addresses.length <= maxNvmeAddresses && addresses.every((one) => addressForm.test(one)) &&
    new Set(addresses).size === addresses.length;
  if (sound) return addresses;
  throw new VolumeError(
    "invalid",
    `Cannot use the parameter: ${key}=${
      JSON.stringify(text.slice(0, 128))
    }; allowed is an IP address or a host name, ` +
      `or up to ${maxNvmeAddresses} different ones separated by commas`,
  );
}
