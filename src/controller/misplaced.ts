import type { Inventory } from "../volume/model/inventory.ts";
import { VolumeError } from "../volume/errors.ts";
import { clusterOfComment } from "../volume/model/record.ts";
import type { RouterMachines } from "./router_machines.ts";

/**
 * Which of several routers has volumes with another one's mark: that is so when their names, their addresses, or which of them
 * is the default one, were exchanged in the file of `--config`. It goes by what looks have shown, and asks nobody: a router
 * that is away must not hold up the calls of another.
 *
 * Two names of one machine have the volumes of both. They are known by a host key in common and a volume that looks at both have
 * shown: of machines that only have the same host key, no volume is called gone while another has it.
 */
export class MisplacedVolumes {
  /** By mark, the name of the router that has it. */
  readonly #routers = new Map<string, string>();
  readonly #machines: RouterMachines;
  /** By router, what it was last seen to have with the mark of any of them. */
  readonly #seen = new Map<string, ReadonlySet<string>>();
  /** By router, those that have shown a volume of its, with the same host key. */
  readonly #sameAs = new Map<string, ReadonlySet<string>>();

  constructor(machines: RouterMachines) {
    this.#machines = machines;
  }

  /** Registers a router with the mark of its own volumes. */
  add(router: string, cluster: string): void {
    this.#routers.set(cluster, router);
  }

  /**
   * Takes in a look at all disks of a router.
   *
   * @returns the names of the routers whose volumes it has, without those that may be the same machine or were not
   *   connected to yet
   */
  seen(router: string, { volumes }: Pick<Inventory, "volumes">): readonly string[] {
    const owners = new Set<string>();
    const marked = new Set<string>();
    for (const { id, comment } of volumes) {
      const cluster = clusterOfComment(comment) ?? "";
      const owner = this.#routers.get(cluster);
      if (owner === undefined) continue;
      marked.add(`${cluster} ${id}`);
      owners.add(owner);
    }
    this.#seen.set(router, marked);
    for (const [other, theirs] of this.#seen) {
      const isSame = other !== router && this.#machines.mayBeOne(router, other);
      if (isSame && !marked.isDisjointFrom(theirs)) this.#same(router, other);
    }
    return [...owners].filter((owner) =>
      owner !== router && this.#machines.isKnown(owner) && !this.#machines.mayBeOne(owner, router)
    );
  }

  #same(one: string, other: string): void {
    for (const [router, same] of [[one, other], [other, one]] as const) {
      this.#sameAs.set(router, new Set([...this.#sameAs.get(router) ?? [], same]));
    }
  }

  #areOne(one: string, other: string): boolean {
    return this.#machines.mayBeOne(one, other) && this.#sameAs.get(one)?.has(other) === true;
  }

  /**
   * Refuses to call a volume of that mark gone which another router was last seen to have: its data is there, and perhaps
   * a node that writes.
   *
   * @throws {VolumeError} precondition when it was seen there
   */
  assertNotSeen(cluster: string, id: string, verb: string): void {
    const owner = this.#routers.get(cluster) ?? "";
    const router = [...this.#seen].find(([router, marked]) =>
      router !== owner && marked.has(`${cluster} ${id}`) && !this.#areOne(router, owner)
    )?.[0];
    if (router === undefined) return;
    throw new VolumeError(
      "precondition",
      `Cannot ${verb} the volume because another router of --config has it: volume=${id} on=${router}; names, addresses or the default ` +
        "router were exchanged in that file: restore them",
    );
  }
}
