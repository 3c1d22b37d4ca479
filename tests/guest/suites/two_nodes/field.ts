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

/** How a {@linkcode Field} is made. */
export interface FieldOptions {
  readonly nodes: readonly string[];
  /** More flags of `rds-csi simulator`. */
  readonly simulatorFlags?: readonly string[];
  /** More flags of the controller. */
  readonly controllerFlags?: readonly string[];
}

/** How nodes are started: they look for what was taken from them more often than usual. */
const nodeFlags = ["--fence-interval", "2s"];

/** Boots the guests and starts everything; the caller stops the controller. */
export async function makeField(bench: Bench, options: FieldOptions): Promise<Field> {
  const guests = await bench.guests(["router", ...options.nodes], {
    memoryMiB: 640,
    ports: [csiPort, controlPort, sshPort],
    disks: [{ name: "pool", sizeBytes: 2 ** 30 }],
  });
  const routerGuest = guests["router"]!;
  const address = (await routerGuest.sh("getent hosts router || grep router /etc/hosts")).split(/\s/)[0]!;
  const started = options.nodes.map(async (id) => {
    const guest = guests[id]!;
    return { id, guest, driver: await startDriver(guest, { mode: "node", nodeId: id, flags: nodeFlags }) };
  });
  const [router, stamping, ...nodes] = await Promise.all([
    startRouter(routerGuest, {
      address,
      disk: routerGuest.disk("pool"),
      flags: options.simulatorFlags ?? [],
    }),
    Stamping.install(bench.folder, Object.values(guests)),
    ...started,
  ]);
  const controller = await HostController.start(bench.folder, {
    router: routerGuest,
    nvmeAddress: address,
    nodeIds: options.nodes,
    flags: ["--unexport-grace", "0s", ...options.controllerFlags ?? []],
  });
  return { routerGuest, router, controller, nodes, stamping };
}

/** Where the image of a volume lies in the router's guest. */
export async function imageOf({ routerGuest, router }: Field, { id }: GuestVolume): Promise<string> {
  const found = await routerGuest.sh(`find ${router.backing} -type f -path "*${id}*"`);
  if (found === "" || found.includes("\n")) throw new Error(`The image of ${id} is not one file: ${found}`);
  return found;
}
