import type { Router } from "../model/router.ts";
import { fullNameOf, isRoot, nameOf, type Subvolume } from "../model/subvolumes.ts";
import type { Value } from "../value.ts";
import { formatTime } from "./inputs.ts";
import type { Flag, Notation } from "./menu.ts";
import type { ReadableProperty } from "./rows.ts";

/** Letters before a subvolume. */
export const subvolumeFlags: readonly Flag[] = [
  { letter: "*", property: "default", legend: "DEFAULT", column: 0 },
  { letter: "S", property: "snapshot", legend: "SNAPSHOT", column: 1 },
  { letter: "r", property: "read-only", legend: "READ-ONLY", column: 2 },
  { letter: "D", property: "dead", legend: "DEAD", column: 3 },
  { letter: "M", property: "mounted", legend: "MOUNTED", column: 4 },
];

/** Properties of a subvolume, in the order in which `print detail` shows them. */
export function subvolumeProperties({ disks, subvolumes }: Router): readonly ReadableProperty<Subvolume>[] {
  const label = ({ path }: Subvolume) =>
    disks.list().find(({ pool }) => pool?.mounted && pool.mountPoint === path.split("/")[0])?.pool?.label;
  const fullName = (subvolume: Subvolume | undefined) =>
    subvolume === undefined ? undefined : fullNameOf(subvolume);
  const snapshotNames = (subvolume: Subvolume) => {
    const names = subvolumes.snapshotsOf(subvolume).map(fullNameOf);
    return names.length === 0 ? undefined : names;
  };
  return [
    property("default", "flag", isRoot),
    property("snapshot", "flag", ({ sourceUuid }) => sourceUuid !== undefined),
    property("read-only", "flag", ({ readOnly }) => readOnly),
    property("dead", "flag", ({ dead }) => dead),
    property("mounted", "flag", () => false),
    property("fs", "plain", label),
    property("name", "quoted", nameOf),
    property("fullname", "quoted", fullNameOf),
    property(
      "top-level",
      "quoted",
      (one) => isRoot(one) ? undefined : fullName(subvolumes.containing(one.path)),
    ),
    property("parent", "quoted", (one) => fullName(subvolumes.findByUuid(one.sourceUuid))),
    property("mount", "plain", () => false),
    property("uuid", "quoted", ({ uuid }) => uuid),
    property("subvolume-id", "plain", ({ subvolumeId }) => BigInt(subvolumeId)),
    property("generation", "plain", ({ generation }) => BigInt(generation)),
    property("creation-time", "plain", ({ createdAtMs }) => formatTime(createdAtMs)),
    property("snapshots", "quoted", snapshotNames),
  ];
}

function property(
  name: string,
  notation: Notation,
  read: (subvolume: Subvolume) => Value | undefined,
): ReadableProperty<Subvolume> {
  return { name, notation, read };
}
