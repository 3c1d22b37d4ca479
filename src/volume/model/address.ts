import { isIPv4, isIPv6 } from "node:net";

const nameForm = /^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,253}[A-Za-z0-9])?$/;
/** The system's resolver takes such a text for an IPv4 address, even one that is none. */
const endsInNumber = /(?:^|\.)[0-9]+$/;

/** Whether the text is an IPv4 address, an IPv6 address without brackets, or may be a host name. No port follows it. */
export function isHostAddress(text: string): boolean {
  return isIPv4(text) || isIPv6(text) && !text.includes("%") ||
    nameForm.test(text) && !endsInNumber.test(text);
}
