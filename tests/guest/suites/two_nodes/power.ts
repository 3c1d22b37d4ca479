import { startRouter } from "../../kit/driver.ts";
import type { Field } from "./field.ts";

/** A disk's entry on the router, by the router's own names. */
type DiskEntry = Readonly<Record<string, unknown>>;

/** What a router keeps of a volume's entry; everything else follows from it. */
const kept = [
  "slot",
  "type",
  "comment",
  "file-path",
  "nvme-tcp-server-port",
  "nvme-tcp-server-nqn",
  "nvme-tcp-server-allow-host-name",
];

/** Cuts the power of the field's router; its configuration is what this answers. */
export async function cutRouterPower({ routerGuest, router }: Field): Promise<readonly DiskEntry[]> {
  const { disks } = await router.control("/state") as { readonly disks: readonly DiskEntry[] };
  await routerGuest.cutPower();
  return disks.filter((disk) => disk["type"] === "file");
}

/**
 * Turns the power on again. The router has its volumes back, and exports none of them: a simulated one keeps nothing but
 * the disk's files by itself.
 */
export async function restoreRouter(field: Field, disks: readonly DiskEntry[]): Promise<Field> {
  const { routerGuest } = field;
  await routerGuest.boot();
  const router = await startRouter(routerGuest, { disk: routerGuest.disk("pool") });
  await writeThrough({ ...field, router });
  for (const disk of disks) {
    const own = Object.fromEntries(
      kept.flatMap((name) => disk[name] === undefined ? [] : [[name, disk[name]]]),
    );
    const size = String(disk["attached-size"]);
    await router.control("/disks?file=no", {
      method: "POST",
      body: JSON.stringify({ ...own, "size": size, "file-size": size, "nvme-tcp-export": false }),
    });
  }
  return { ...field, router };
}

/**
 * Has the router's files written to its disk before a write is answered. What a target acknowledges, keeps in its memory
 * and loses is lost to any initiator: it is told of a new connection, not of a new start.
 */
export async function writeThrough({ routerGuest, router }: Field): Promise<void> {
  await routerGuest.sh(`mount -o remount,sync ${router.backing}`);
}
