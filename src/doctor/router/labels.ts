import { type Fragment, ros } from "../../routeros/console/command.ts";
import { parseRows } from "../../routeros/console/json.ts";
import { findSlotsBelow, mayBeMounted } from "../../routeros/store/rows.ts";
import { type Finding, problem } from "../../volume/model/finding.ts";
import { routerFixes } from "./fixes.ts";

/** A Btrfs file system that the router finds on a disk. */
export interface LabelledDisk {
  readonly slot: string;
  /** Such as "raid", "file" or "partition". */
  readonly kind: string;
  /** Slot of the disk of which it is a part; "" for none. */
  readonly parent: string;
  readonly label: string;
  readonly mounted: boolean;
}

/** Every disk with a Btrfs file system, including volumes. */
export const labelsQuery: Fragment =
  ros`/disk print detail as-value proplist=slot,type,parent,fs-label,mounted where fs=${"btrfs"}`;

/**
 * Parses the frame of {@linkcode labelsQuery}. A label that cannot be read is no other's: the router prints one in one way.
 *
 * @throws {VolumeError} unavailable when it is no list, or a disk has no slot
 */
export function parseLabels(frame: string): LabelledDisk[] {
  return parseRows(frame, "list of labels").map((row) => ({
    slot: row.text("slot"),
    kind: row.find("type") ?? "",
    parent: findSlotsBelow(row)[0] ?? "",
    label: row.find("fs-label") ?? "",
    mounted: mayBeMounted(row),
  }));
}

/**
 * One finding for each volume that has the label of a mounted pool, in itself or in a partition. RouterOS finds a file
 * system by its label, and a workload chooses the label in its volume. A member of a pool on several disks has the
 * pool's label too, and is no volume.
 */
export function judgeLabels(disks: readonly LabelledDisk[], volumes: ReadonlySet<string>): Finding[] {
  const labels = new Set(
    disks.filter(({ mounted, kind }) => mounted && kind !== "file").map(({ label }) => label),
  );
  const isInVolume = ({ kind, parent }: LabelledDisk) => kind === "file" || volumes.has(parent);
  return disks.filter((disk) => disk.label !== "" && labels.has(disk.label) && isInVolume(disk)).map((disk) =>
    problem(
      "pool",
      `${disk.slot} holds a file system with the label ${disk.label} of a pool: the volume's user ` +
        "wrote it, and the driver refuses subvolumes by that label meanwhile",
      routerFixes.labelLook(disk.label),
    )
  );
}
