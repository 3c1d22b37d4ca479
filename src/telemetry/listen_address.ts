/** Where to listen for HTTP. */
export interface ListenAddress {
  readonly hostname: string;
  /** 0 takes a free one. */
  readonly port: number;
}

/**
 * Reads `host:port`, `[IPv6]:port`, or `:port`, which is every IPv4 address of the machine; undefined for anything else.
 */
export function parseListenAddress(text: string): ListenAddress | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]*)):([0-9]{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) return undefined;
  return { hostname: match[1] ?? (match[2] || "0.0.0.0"), port };
}
