/**
 * Which of several routers in the file of `--config` are one machine, by the host keys that they have presented. Addresses do not
 * tell: a name, an address in any spelling and a forwarded port may all lead to one machine.
 *
 * Machines that were made from one image or backup have the same host key, too, so that it only ever says "perhaps".
 */
export class RouterMachines {
  /** By router, the host key that it presented last. */
  readonly #hostKeys = new Map<string, string>();

  /** Notes the host key, in any form, of a router that was connected to. */
  presented(router: string, hostKey: string): void {
    this.#hostKeys.set(router, hostKey);
  }

  /** Whether two routers may be one machine. One that was never connected to is taken for another one. */
  mayBeOne(one: string, other: string): boolean {
    const hostKey = this.#hostKeys.get(one);
    return hostKey !== undefined && hostKey === this.#hostKeys.get(other);
  }

  /** Whether any other router may be the same machine: then neither knows what was promised under the other's name. */
  isShared(router: string): boolean {
    return [...this.#hostKeys.keys()].some((other) => other !== router && this.mayBeOne(router, other));
  }
}
