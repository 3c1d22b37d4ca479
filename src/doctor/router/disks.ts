import { earlierSnapshotsPage, isEarlierSnapshot } from "../../volume/model/legacy_snapshots.ts";
import { isVolumeId } from "../../volume/model/ids.ts";
import { judgeOwnership } from "../../volume/rules/ownership.ts";
import type { StoredVolume } from "../../volume/ports/ports.ts";
import type { CheckSettings, RouterCheck } from "./check.ts";
import { type Finding, fine, problem, warning } from "../../volume/model/finding.ts";

const check = "disks";
const mostNamed = 5;
/** Ids of this driver are no longer; those of the earlier one have 40 characters. */
const longestOwnId = 32;

/** Whose the disks are. */
export const disksCheck: RouterCheck = {
  name: check,
  essential: true,
  run: async (router, settings) => judgeDisks((await router.inventory()).volumes, settings),
};

/** The file-backed disks of a router, by what their comments say. */
export function judgeDisks(
  volumes: readonly StoredVolume[],
  { basePaths, cluster }: Pick<CheckSettings, "basePaths" | "cluster">,
): Finding[] {
  const kinds = Map.groupBy(volumes, (volume) => kindOf(volume, basePaths, cluster ?? ""));
  const listed = (kind: Kind) => kinds.get(kind) ?? [];
  const counts = [
    ...(cluster === undefined ? [] : [`${listed("own").length} of this cluster`]),
    `${listed("other").length} of ${cluster === undefined ? "some cluster" : "other clusters"}`,
    `${listed("earlier").length} of the earlier Go driver`,
    `${listed("foreign").length} of nobody in the base paths`,
  ];
  const findings = [
    cluster === undefined
      ? warning(check, `${counts.join(", ")}; which are this cluster's is not known`, "--cluster-id ID")
      : fine(check, counts.join(", ")),
  ];
  const damaged = listed("damaged");
  if (damaged.length > 0) findings.push(judgeDamaged(damaged));
  const snapshots = listed("earlier-snapshot");
  if (snapshots.length > 0) findings.push(judgeEarlierSnapshots(snapshots));
  return findings;
}

type Kind = "own" | "other" | "damaged" | "earlier" | "earlier-snapshot" | "foreign" | "elsewhere";

function kindOf(volume: StoredVolume, basePaths: readonly string[], cluster: string): Kind {
  const { state } = judgeOwnership(volume, cluster);
  if (state === "owned") return "own";
  if (state === "other-cluster") return "other";
  if (state === "damaged") return "damaged";
  if (volume.id.length > longestOwnId && isVolumeId(volume.id)) return "earlier";
  if (isEarlierSnapshot(volume, basePaths)) return "earlier-snapshot";
  return basePaths.some((path) => volume.imagePath.startsWith(`${path}/`)) ? "foreign" : "elsewhere";
}

function judgeEarlierSnapshots(snapshots: readonly StoredVolume[]): Finding {
  const exported = snapshots.filter((one) => one.exported).length;
  return warning(
    check,
    `${snapshots.length} snapshots of the earlier Go driver (${exported} exported), which hold no copy of a volume's ` +
      `data as far as RouterOS's manual tells: ${earlierSnapshotsPage}`,
    "rds-csi audit --foreign names them",
  );
}

function judgeDamaged(damaged: readonly StoredVolume[]): Finding {
  const names = damaged.slice(0, mostNamed).map(({ id }) => id).join(", ");
  const more = damaged.length > mostNamed ? ` and ${damaged.length - mostNamed} more` : "";
  return problem(
    check,
    `${damaged.length} with a damaged record, which the driver leaves alone: ${names}${more}`,
    `/disk/set [find where slot="${
      damaged[0]!.id
    }"] comment="…" with its comment from a backup or an /export`,
  );
}
