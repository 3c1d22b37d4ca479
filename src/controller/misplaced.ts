import type { Inventory } from "../volume/model/inventory.ts";
import { VolumeError } from "../volume/errors.ts";
import { clusterOfComment } from "../volume/model/record.ts";

/**
 * Which of several routers has volumes with another one's mark: that is so when their names, their addresses, or which of them
 * is the default one, were exchanged in the file of `--config`. It goes by what looks have shown, and asks nobody: a router
 * that is away must not hold up the calls of another.
 */
export class MisplacedVolumes {
  /** By mark, the name of the router that has it. */
  readonly #routers = new Map<string, string>();
  /** By router, its address: two names of one machine have the volumes of both. */
  readonly #addresses = new Map<string, string>();
  /** By router, what it was last seen to have with others' marks. */
  readonly #seen = new Map<string, ReadonlySet<string>>();

  /** Registers a router with the mark of its own volumes, and its address. */
  add(router: string, cluster: string, address: string): void {
    this.#routers.set(cluster, router);
    this.#addresses.set(router, address);
  }

  /** Takes in a look at all disks of a router. @returns the names of the routers whose volumes it has */
  seen(router: string, { volumes }: Pick<Inventory, "volumes">): readonly string[] {
    const owners = new Set<string>();
    const misplaced = new Set<string>();
    for (const { id, comment } of volumes) {
      const cluster = clusterOfComment(comment) ?? "";
      const owner = this.#routers.get(cluster);
      if (owner === undefined || this.#addresses.get(owner) === this.#addresses.get(router)) continue;
      misplaced.add(`${cluster} ${id}`);
      owners.add(owner);
    }
    this.#seen.set(router, misplaced);
    return [...owners];
  }

  /**
   * Refuses to call a volume of that mark gone which another router was last seen to have: its data is there, and perhaps
   * a node that writes.
   *
   * @throws {VolumeError} precondition when it was seen there
   */
  assertNotSeen(cluster: string, id: string, verb: string): void {
    const router = [...this.#seen].find(([, misplaced]) => misplaced.has(`${cluster} ${id}`))?.[0];
    if (router === undefined) return;
    throw new VolumeError(
      "precondition",
      `Cannot ${verb} the volume because another router of --config has it: volume=${id} on=${router}; names, addresses or the default ` +
        "router were exchanged in that file: restore them",
    );
  }
}
