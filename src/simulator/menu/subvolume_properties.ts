import type { Router } from "../model/router.ts";
import { fullNameOf, isRoot, nameOf, type Subvolume } from "../model/subvolumes.ts";
import { formatTime } from "./inputs.ts";
import type { ReadableProperty } from "./rows.ts";

/** Properties of a subvolume. */
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
    { name: "default", isFlag: true, read: isRoot },
    { name: "snapshot", isFlag: true, read: ({ sourceUuid }) => sourceUuid !== undefined },
    { name: "read-only", isFlag: true, read: ({ readOnly }) => readOnly },
    { name: "dead", isFlag: true, read: ({ dead }) => dead },
    { name: "mounted", isFlag: true, read: () => false },
    { name: "fs", read: label },
    { name: "name", read: nameOf },
    { name: "fullname", read: fullNameOf },
    {
      name: "top-level",
      read: (one) => isRoot(one) ? undefined : fullName(subvolumes.containing(one.path)),
    },
    { name: "parent", read: (one) => fullName(subvolumes.findByUuid(one.sourceUuid)) },
    { name: "mount", read: () => false },
    { name: "uuid", read: ({ uuid }) => uuid },
    { name: "subvolume-id", read: ({ subvolumeId }) => BigInt(subvolumeId) },
    { name: "generation", read: ({ generation }) => BigInt(generation) },
    { name: "creation-time", read: ({ createdAtMs }) => formatTime(createdAtMs) },
    { name: "snapshots", read: snapshotNames },
  ];
}
