import type { Disk, PoolState } from "../model/disk.ts";
import type { Router } from "../model/router.ts";
import type { RecordValue, Value } from "../value.ts";
import { makeItemMenu } from "./item_menu.ts";
import type { Menu, Verb } from "./menu.ts";
import { readOnlyOf } from "./rows.ts";

const verbs: readonly Verb[] = ["print", "find", "get"];

/** Counters with one entry for each device. */
const counters = ["write", "read", "flush", "corruption", "generation"].map((kind) => `${kind}-errors`);
const flags = ["missing-devs", "balancing", "replacing", "scrubbing"];
const texts = ["balance-status", "replace-status", "scrub-status"];

/** What the control port can set of a file system. */
export const filesystemNames: readonly string[] = ["devs", ...flags, ...texts, ...counters];

interface Filesystem {
  readonly id: number;
  readonly label: string;
  readonly values: RecordValue;
}

/** `/disk/btrfs/filesystem`: one item for each mounted Btrfs pool. Nothing in it can be changed, but by the control port. */
export function filesystemMenu(router: Router): Menu {
  const read = (name: string) => ({ values }: Filesystem) => values[name];
  const plain = ["label", "uuid", "total-devs", "dev-ids", "devs", ...texts, ...counters];
  const menu = makeItemMenu<Filesystem>({
    path: "disk/btrfs/filesystem",
    verbs,
    columns: ["label", "dev-ids", "devs", "balance-status", "uuid", ...counters],
    texts: [],
    properties: [
      ...flags.map((name) => ({ name, isFlag: true, read: read(name) })),
      ...plain.map((name) => ({ name, read: read(name) })),
    ],
    items: () => filesystemsOf(router),
    nameOf: ({ label }) => label,
    reported: () => readOnlyOf(router.behaviours),
  }, {});
  const isKnown = () => router.profile.vocabulary.rose && router.behaviours.hardwareNames !== "none";
  return { ...menu, verbs: () => isKnown() ? verbs : [] };
}

function filesystemsOf(router: Router): Filesystem[] {
  return router.pools().filter(({ pool }) => router.filesystemOf(pool) === "btrfs").map((disk) => {
    const { label } = disk.pool;
    const edited = router.filesystems.get(label) ?? {};
    return { id: disk.id, label, values: { ...valuesOf(router, disk, edited["devs"]), ...edited } };
  });
}

function valuesOf(
  router: Router,
  disk: Disk & { readonly pool: PoolState },
  edited: Value | undefined,
): RecordValue {
  const uuid = disk.extra["fs-uuid"];
  const others = router.disks.list().filter((other) =>
    other.slot !== disk.slot && uuid !== undefined && other.extra["fs-uuid"] === uuid
  );
  const devs = Array.isArray(edited) ? edited : [disk, ...others].map(({ slot }) => slot);
  return {
    label: disk.pool.label,
    uuid: uuid ?? `uuid-of-${disk.slot}`,
    "missing-devs": devs.includes("missing"),
    "total-devs": BigInt(devs.length),
    "dev-ids": devs.map((_, index) => BigInt(index + 1)),
    devs,
    ...Object.fromEntries(counters.map((name) => [name, devs.map(() => 0n)])),
  };
}
