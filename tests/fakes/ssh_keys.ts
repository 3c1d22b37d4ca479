import ssh2 from "ssh2";
import { type HostKey, readHostKey } from "../../src/simulator/ssh/host_key.ts";

/** The default RSA key of every simulated router: making a key takes longer than most tests. */
export const routerHostKey: HostKey = readHostKey(
  Deno.readTextFileSync(new URL("router_host_key.pem", import.meta.url)),
);

/** A pair of ed25519 keys in OpenSSH's form. */
export interface SshKeyPair {
  readonly private: string;
  readonly public: string;
}

/**
 * Makes a pair of ed25519 keys. The library writes about one in two hundred so that it cannot be read again: that one
 * is discarded.
 *
 * @param passphrase protects the private key
 */
export function makeSshKeys(passphrase?: string): SshKeyPair {
  for (;;) {
    const pair = passphrase === undefined
      ? ssh2.utils.generateKeyPairSync("ed25519")
      : ssh2.utils.generateKeyPairSync("ed25519", { passphrase, cipher: "aes256-ctr", rounds: 4 });
    const parsed = [ssh2.utils.parseKey(pair.private, passphrase), ssh2.utils.parseKey(pair.public)];
    if (!parsed.some((key) => key instanceof Error)) return pair;
  }
}
