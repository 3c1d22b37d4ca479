import type { Package } from "./packages.ts";

/** What is of use in deno.lock. */
export interface Lock {
  readonly npm: Readonly<Record<string, { readonly integrity: string }>>;
}

/**
 * The SHA-512 that the lock file pins a package's archive to, in hex.
 *
 * @throws {Error} when the lock does not know the package
 */
export function digestIn(lock: Lock, { name, version }: Package): string {
  const key = `${name}@${version}`;
  // What follows an underscore are the versions of its peers.
  const found = Object.entries(lock.npm).find(([known]) => known === key || known.startsWith(`${key}_`));
  const [, base64] = /^sha512-(.+)$/.exec(found?.[1].integrity ?? "") ?? [];
  if (base64 === undefined) throw new Error(`deno.lock has no digest of ${key}, which is in the bundle`);
  return Array.from(atob(base64), (byte) => byte.charCodeAt(0).toString(16).padStart(2, "0")).join("");
}
