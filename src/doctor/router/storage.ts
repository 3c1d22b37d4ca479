import type { CheckSettings, RouterCheck } from "./check.ts";
import { type Finding, fine, problem, skipped, warning } from "../../volume/model/finding.ts";
import { isVolumeId, parentFolder, poolOf } from "../../volume/model/ids/ids.ts";
import type { StoredFile, StoredVolume } from "../../volume/model/inventory.ts";
import { fileName, namedFilesQuery } from "../../routeros/store/queries.ts";
import { parseFiles } from "../../routeros/store/rows.ts";
import { isLegacySnapshot, legacySnapshotsPage } from "../../volume/model/snapshots/legacy_snapshots.ts";
import { judgeOwnership } from "../../volume/rules/ownership.ts";
import type { Reach } from "../../host/network.ts";
import { isScratchName } from "../probe/names.ts";
import { routerFixes } from "./fixes.ts";
import { checkHostLists } from "./host_lists.ts";
import { parsePoolDisks, type PoolDisk, poolDisksQuery, whyUnreadable } from "./pools.ts";

const basePathName = "base-path";

/** Checks whether volumes can be made in each allowed folder. */
export const basePathsCheck: RouterCheck = {
  name: basePathName,
  essential: true,
  async run(router, { basePaths }) {
    const pools = parsePoolDisks(await router.read(basePathName, poolDisksQuery));
    const findings: Finding[] = [];
    for (const path of basePaths) {
      const paths = [path, parentFolder(path)];
      const files = parseFiles(
        await router.read(basePathName, namedFilesQuery(paths)),
        (file) => paths.includes(file),
      );
      findings.push(judgeBasePath(path, files, pools));
    }
    return findings;
  },
};

/** @param files the router's files at that path and at its parent folder */
export function judgeBasePath(
  path: string,
  files: readonly StoredFile[],
  pools: readonly PoolDisk[],
): Finding {
  const odd = whyUnreadable(pools, path);
  if (odd !== undefined) {
    const found =
      `${path} is on a pool of which the router's row cannot be read, so that the driver does not use it: ${odd}`;
    return problem(basePathName, found, routerFixes.poolLook());
  }
  const pool = pools.find((disk) => disk.mounted && disk.mountPoint === poolOf(path));
  if (pool === undefined) {
    const mounted = pools.filter((disk) => disk.mounted).map((disk) => `/${disk.mountPoint}`);
    return problem(
      basePathName,
      `${path} is on no mounted pool; mounted is ${mounted.join(", ") || "none"}`,
      mounted.length === 0
        ? routerFixes.poolLook()
        : routerFixes.poolAway(poolOf(path), `${mounted[0]}/metal-csi`),
    );
  }
  const entry = files.find((file) => file.path === path);
  if (entry === undefined) return judgeMissing(path, files);
  if (entry.directory) return fine(basePathName, `${path} is there, on the pool ${pool.slot}`);
  return problem(basePathName, `${path} is a file, not a folder`, routerFixes.basePath(`${path}.d`));
}

/** The driver makes the last folder of a base path with the first volume; its parent has to exist. */
function judgeMissing(path: string, files: readonly StoredFile[]): Finding {
  const parent = parentFolder(path);
  // The mount point of a pool is listed as a disk, on some routers not at all.
  const parentIsThere = parent === `/${poolOf(path)}` || files.some((file) => file.path === parent);
  if (path === `/${poolOf(path)}` || parentIsThere) {
    return fine(basePathName, `${path} does not exist yet; the first volume makes it`);
  }
  return problem(
    basePathName,
    `${path} does not exist, and the driver makes only its last folder`,
    routerFixes.folderMissing(fileName(parent)),
  );
}

const disksName = "disks";
const maxNamed = 5;
/** The longest id of this driver; those of the legacy one have 40 characters. */
const longestOwnId = 32;

/** Checks who owns the disks, and whom they let in. */
export const disksCheck: RouterCheck = {
  name: disksName,
  essential: true,
  namesVolumes: true,
  run: async (router, settings) => [
    ...judgeDisks((await router.inventory()).volumes, settings),
    ...await checkHostLists(router, settings),
  ],
};

/** Judges the file-backed disks of a router by their comments. */
export function judgeDisks(
  volumes: readonly StoredVolume[],
  { basePaths, cluster }: Pick<CheckSettings, "basePaths" | "cluster">,
): Finding[] {
  const kinds = Map.groupBy(volumes, (volume) => kindOf(volume, basePaths, cluster ?? ""));
  const listed = (kind: Kind) => kinds.get(kind) ?? [];
  const counts = [
    ...(cluster === undefined ? [] : [`${listed("own").length} of this cluster`]),
    `${listed("other").length} of ${cluster === undefined ? "some cluster" : "other clusters"}`,
    `${listed("earlier").length} of the legacy Go driver`,
    `${listed("foreign").length} without a known owner in the base paths`,
  ];
  const findings = [
    cluster === undefined
      ? warning(
        disksName,
        `${counts.join(", ")}; this cluster's share is not known`,
        routerFixes.clusterId(),
      )
      : fine(disksName, counts.join(", ")),
  ];
  const scratch = volumes.filter(({ id, imagePath }) =>
    isScratchName(imagePath.slice(imagePath.lastIndexOf("/") + 1)) || isScratchName(id)
  );
  if (scratch.length > 0) findings.push(judgeScratch(scratch));
  const damaged = listed("damaged");
  if (damaged.length > 0) findings.push(judgeDamaged(damaged));
  const unreadable = listed("unreadable");
  if (unreadable.length > 0) findings.push(judgeUnreadable(unreadable));
  const snapshots = listed("earlier-snapshot");
  if (snapshots.length > 0) findings.push(judgeLegacySnapshots(snapshots));
  return findings;
}

type Kind =
  | "own"
  | "other"
  | "unreadable"
  | "damaged"
  | "earlier"
  | "earlier-snapshot"
  | "foreign"
  | "elsewhere";

function kindOf(volume: StoredVolume, basePaths: readonly string[], cluster: string): Kind {
  const { state } = judgeOwnership(volume, cluster);
  if (state === "owned") return "own";
  if (state === "other-cluster") return "other";
  if (state === "damaged" || state === "unreadable") return state;
  if (volume.id.length > longestOwnId && isVolumeId(volume.id)) return "earlier";
  if (isLegacySnapshot(volume, basePaths)) return "earlier-snapshot";
  return basePaths.some((path) => volume.imagePath.startsWith(`${path}/`)) ? "foreign" : "elsewhere";
}

/** A probe makes its files in the given folder, or below. */
function judgeScratch(scratch: readonly StoredVolume[]): Finding {
  const { imagePath } = scratch[0]!;
  return warning(
    disksName,
    `${scratch.length} left by a killed probe, or waiting for --after-reboot: ` +
      `${scratch.slice(0, maxNamed).map(({ id }) => id).join(", ")}`,
    routerFixes.probeLeftovers(imagePath.slice(0, imagePath.lastIndexOf("/"))),
  );
}

function judgeLegacySnapshots(snapshots: readonly StoredVolume[]): Finding {
  const exported = snapshots.filter((one) => one.exported).length;
  return warning(
    disksName,
    `${snapshots.length} snapshots of the legacy Go driver (${exported} exported), which hold no copy of a volume's ` +
      `data according to RouterOS's manual: ${legacySnapshotsPage}`,
    routerFixes.legacySnapshots(),
  );
}

function judgeDamaged(damaged: readonly StoredVolume[]): Finding {
  const names = damaged.slice(0, maxNamed).map(({ id }) => id).join(", ");
  const more = damaged.length > maxNamed ? ` and ${damaged.length - maxNamed} more` : "";
  return problem(
    disksName,
    `${damaged.length} with a damaged record, which the driver leaves alone: ${names}${more}`,
    routerFixes.recordDamaged(damaged[0]!.id),
  );
}

function judgeUnreadable(disks: readonly StoredVolume[]): Finding {
  const [{ id, unreadable }] = disks as [StoredVolume];
  const more = disks.length === 1 ? "" : `; so it is with ${disks.length - 1} more`;
  return problem(
    disksName,
    `${id}: the router's row of it cannot be read, and the driver leaves it alone: ${unreadable}${more}`,
    routerFixes.poolLook(id),
  );
}

const portName = "nvme-port";

/** Facts about the port of the exports, as seen from this machine. */
interface PortFacts {
  readonly address: string;
  readonly port: number;
  readonly reach: Reach;
  /** The router's file-backed disks; undefined when it was not asked. */
  readonly volumes: readonly StoredVolume[] | undefined;
  /** Whether this machine has to reach the port: it is a node. */
  readonly isNode: boolean;
}

/** A firewall as it should be keeps all other machines away. */
export const onlyNodes = "only nodes need to: ask rds-csi doctor there";

/** Judges whether volumes can be reached from here. A router listens only while it exports something. */
export function judgeNvmePort({ address, port, reach, volumes, isNode }: PortFacts): Finding {
  const location = `${address}:${port}`;
  const exported = volumes?.filter((volume) => volume.exported && volume.exportPort === port).length;
  const exports = exported === undefined ? "what is exported is not known" : `exported there: ${exported}`;
  switch (reach.state) {
    case "open":
      return fine(portName, `${location} answers; ${exports}`);
    case "refused":
      if (exported === 0) return fine(portName, `${location} refuses because nothing is exported there`);
      return exported === undefined
        ? warning(
          portName,
          `${location} refuses: nothing is exported there, or the address is wrong (${exports})`,
        )
        : problem(
          portName,
          `${location} refuses although volumes are exported there; ${exports}`,
          routerFixes.exportsLook(),
        );
    case "unresolved":
      return problem(
        portName,
        `the name ${address} cannot be resolved: ${reach.reason}`,
        routerFixes.nvmeName(),
      );
    case "silent":
    case "failed": {
      const found = `${location} cannot be reached from here (${reach.reason}); ${exports}`;
      if (!isNode) return skipped(portName, `${found}; ${onlyNodes}`);
      const fix = routerFixes.nvmeSilent(port);
      return exported === undefined || exported === 0
        ? warning(portName, found, fix)
        : problem(portName, found, fix);
    }
  }
}
