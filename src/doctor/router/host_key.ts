import { Buffer } from "node:buffer";
import {
  describeMismatch,
  fingerprint,
  type HostKey,
  isPinned,
  keyTypeOf,
} from "../../routeros/ssh/host_key.ts";
import { type Finding, fine, problem, warning } from "../../volume/model/finding.ts";

const check = "host-key";

/** What is known about the router's host key. */
export interface HostKeyFacts {
  readonly address: string;
  readonly port: number;
  /** In wire form; undefined when the router never presented one. */
  readonly presented: Uint8Array | undefined;
  /** The keys that it should have; in words, why they cannot be read. */
  readonly pins: readonly HostKey[] | string;
  /** Whether the driver is told not to look. */
  readonly insecure: boolean;
}

/** Judges whether the router is the one that was meant. */
export function judgeHostKey(facts: HostKeyFacts): Finding {
  const { presented, pins, insecure } = facts;
  if (presented === undefined) {
    return problem(check, "the router presented none", scan(facts));
  }
  const shown = `${fingerprint(presented)} (${keyTypeOf(presented)})`;
  const line = `--rds-host-key '${
    publicLine(presented)
  }' after comparing it with /ip/ssh/print on the router`;
  if (typeof pins === "string") return problem(check, `${pins}; presented=${shown}`, line);
  if (insecure) {
    return warning(check, `not checked, as --rds-insecure-skip-verify is given; presented=${shown}`, line);
  }
  if (pins.length === 0) return problem(check, `--rds-host-key is not given; presented=${shown}`, line);
  if (isPinned(pins, presented)) return fine(check, `as pinned: ${shown}`);
  return problem(check, describeMismatch(pins, presented), line);
}

/** How a person looks for the key. */
function scan({ address, port }: HostKeyFacts): string {
  return `ssh-keyscan -p ${port} -t ed25519,rsa ${address}`;
}

/** As OpenSSH writes a public key. */
function publicLine(blob: Uint8Array): string {
  return `${keyTypeOf(blob)} ${Buffer.from(blob).toString("base64")}`;
}
