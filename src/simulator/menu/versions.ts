/** Whether a router's version from `/system/resource` is 7.`minor` or newer. */
export function isSince(version: string, minor: number): boolean {
  const [major = 0, own = 0] = version.split(/[. ]/).map(Number);
  return major > 7 || major === 7 && own >= minor;
}
