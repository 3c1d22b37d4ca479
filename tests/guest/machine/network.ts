import type { Guest } from "../kit/guest.ts";
import { hostOutput } from "../../../tools/host_command.ts";
import { podNetwork } from "./runtime.ts";

/** The guest's address in its emulator's network, and the host's there. */
export const guestAddress = "10.0.2.15";
export const hostAddress = "10.0.2.2";

/** Where pods find the API server, by the control plane's `--service-cluster-ip-range`. */
export const apiServerAddress = "10.96.0.1";

/**
 * Lets the guest and its pods out to the host, and leads the API server's address to its port there, as kube-proxy would.
 *
 * @param apiServerPort port of 127.0.0.1 on the host
 */
export async function openNetwork(guest: Guest, apiServerPort: number): Promise<void> {
  await guest.sh(
    `set -e
     ip route replace default via ${hostAddress}
     echo 1 >/proc/sys/net/ipv4/ip_forward
     nft -f -`,
    { input: rules(apiServerPort) },
  );
}

function rules(apiServerPort: number): string {
  const lead = `ip daddr ${apiServerAddress} tcp dport 443 dnat to ${hostAddress}:${apiServerPort}`;
  return `table ip machine {
  chain prerouting { type nat hook prerouting priority dstnat; ${lead}; }
  chain output { type nat hook output priority -100; ${lead}; }
  chain postrouting {
    type nat hook postrouting priority srcnat
    ip saddr ${podNetwork} ip daddr != ${podNetwork} masquerade
  }
}
`;
}

/**
 * Gives this machine another address while `body` runs. Guests reach it there as they would any machine beyond their own
 * network, at any port; so does the machine itself. Takes root.
 */
export async function withAddress<T>(address: string, body: () => Promise<T>): Promise<T> {
  const change = (verb: string) => hostOutput("ip", ["address", verb, `${address}/32`, "dev", "lo"]);
  // A run that was killed has left it.
  await change("replace");
  try {
    return await body();
  } finally {
    await change("delete");
  }
}
