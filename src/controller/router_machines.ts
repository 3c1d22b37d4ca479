/**
 * Which of several routers in the file of `--config` are one machine, by the host keys that they have presented. Addresses do not
 * tell: a name, an address in any spelling and a forwarded port may all lead to one machine.
 *
 * Machines that were made from one image or backup have the same host key, too, so that it only ever says "perhaps". A machine has
 * a host key of each of several types, and presents one: of which type, the pinned ones decide.
 */
export class RouterMachines {
  /** By router, the host key that it presented last, and those of other types that are pinned for it. */
  readonly #hostKeys = new Map<string, { readonly presented: string; readonly others: readonly string[] }>();

  /** Notes the host key, in any form, of a router that was connected to. @param others pinned ones of other types */
  presented(router: string, presented: string, others: readonly string[] = []): void {
    this.#hostKeys.set(router, { presented, others });
  }

  /** Whether a router was connected to. */
  isKnown(router: string): boolean {
    return this.#hostKeys.has(router);
  }

  /** Whether two routers may be one machine. One that was never connected to is taken for another one. */
  mayBeOne(one: string, other: string): boolean {
    const [own, theirs] = [this.#hostKeys.get(one), this.#hostKeys.get(other)];
    if (own === undefined || theirs === undefined) return false;
    return own.presented === theirs.presented || own.others.includes(theirs.presented) ||
      theirs.others.includes(own.presented);
  }

  /** Whether any other router may be the same machine: then neither knows what was promised under the other's name. */
  isShared(router: string): boolean {
    return [...this.#hostKeys.keys()].some((other) => other !== router && this.mayBeOne(router, other));
  }
}
