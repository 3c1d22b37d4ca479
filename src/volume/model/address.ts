import { isIPv4, isIPv6 } from "node:net";
import { VolumeError } from "../errors.ts";

const nameForm = /^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,253}[A-Za-z0-9])?$/;
/** The system's resolver takes such a text for an IPv4 address, even one that is none. */
const endsInNumber = /(?:^|\.)[0-9]+$/;

/** Whether the text is an IPv4 address, an IPv6 address without brackets, or may be a host name. No port follows it. */
export function isHostAddress(text: string): boolean {
  return isIPv4(text) || isIPv6(text) && !text.includes("%") ||
    nameForm.test(text) && !endsInNumber.test(text);
}

/** The form in which two texts of one address are the same: IPv6 has many, and no name depends on its letters' case. */
export function canonicalAddress(address: string): string {
  return isIPv6(address) && !address.includes("%")
    ? new URL(`http://[${address}]/`).hostname
    : address.toLowerCase();
}

/** The maximum number of addresses of one router: a node connects a path to each. */
export const maxNvmeAddresses = 8;

/**
 * Parses the addresses at which nodes reach volumes: IP addresses or host names, separated by commas.
 *
 * @param key the parameter that names them, for messages
 * @throws {VolumeError} invalid when one can be neither, when one appears twice, or when there are none or too many
 */
export function parseNvmeAddresses(key: string, text: string): readonly string[] {
  const addresses = text.split(",");
  const sound = addresses.length <= maxNvmeAddresses && addresses.every(isHostAddress) &&
    new Set(addresses.map(canonicalAddress)).size === addresses.length;
  if (sound) return addresses;
  const several = `or up to ${maxNvmeAddresses} different ones separated by commas`;
  throw new VolumeError(
    "invalid",
    `Cannot use the parameter: ${key}=${JSON.stringify(text.slice(0, 128))}; ` +
      `use an IP address or a host name without a port, ${several}`,
  );
}
