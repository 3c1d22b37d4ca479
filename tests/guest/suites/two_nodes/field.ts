import {
  controlPort,
  csiPort,
  type Driver,
  type Router,
  sshPort,
  startDriver,
  startRouter,
} from "../../kit/driver.ts";
import type { Guest } from "../../kit/guest.ts";
import { HostController } from "../../kit/host_controller.ts";
import type { Bench } from "../../kit/suite.ts";
import type { GuestVolume } from "../../kit/volume.ts";
import { Stamping } from "../writers/writer.ts";

/** A machine that runs the executable as a node. */
export interface FieldNode {
  readonly id: string;
  readonly guest: Guest;
  readonly driver: Driver;
}

/** Where a router and nodes stand, with the controller beside them. */
export interface Field {
  readonly routerGuest: Guest;
  readonly router: Router;
  readonly controller: HostController;
  readonly nodes: readonly FieldNode[];
  readonly stamping: Stamping;
}

/** A router whose namespaces are the same after a toggle of the export and a boot: its hosts come back and go on. */
export const keepsIdentity: readonly string[] = [
  "--behaviour",
  "identity=kept",
  "--behaviour",
  "bootIdentity=kept",
];

/** How a {@linkcode Field} is made. */
export interface FieldOptions {
  readonly nodes: readonly string[];
  /** More flags of the nodes. */
  readonly nodeFlags?: readonly string[];
}

/** Boots the guests and starts everything; the caller stops the controller. */
export async function makeField(bench: Bench, options: FieldOptions): Promise<Field> {
  const guests = await bench.guests(["router", ...options.nodes], {
    memoryMiB: 640,
    ports: [csiPort, controlPort, sshPort],
    disks: [{ name: "pool", sizeBytes: 2 ** 30 }],
  });
  const routerGuest = guests["router"]!;
  const started = options.nodes.map(async (id) => {
    const guest = guests[id]!;
    return {
      id,
      guest,
      driver: await startDriver(guest, { mode: "node", nodeId: id, flags: options.nodeFlags ?? [] }),
    };
  });
  const [router, stamping, ...nodes] = await Promise.all([
    startRouter(routerGuest, { disk: routerGuest.disk("pool"), flags: keepsIdentity }),
    Stamping.install(bench.folder, Object.values(guests)),
    ...started,
  ]);
  const controller = await HostController.start(bench.folder, {
    router: routerGuest,
    nvmeAddress: router.address,
    nodeIds: nodes.map(({ id }) => id),
    flags: ["--unexport-grace", "0s"],
  });
  return { routerGuest, router, controller, nodes, stamping };
}

/** Where the image of a volume lies in the router's guest. */
export async function imageOf({ routerGuest, router }: Field, { id }: GuestVolume): Promise<string> {
  const found = await routerGuest.sh(`find ${router.backing} -type f -path "*${id}*"`);
  if (found === "" || found.includes("\n")) throw new Error(`The image of ${id} is not one file: ${found}`);
  return found;
}
