import { counted } from "../../volume/model/counted.ts";
import type { PoolTotals } from "../../volume/model/totals.ts";
import { formatBytes } from "../../volume/model/sizes.ts";
import { ago, badge, duration, type Html, markup, pager, problemList, table } from "./html.ts";
import { hardwareBlock } from "./hardware_section.ts";
import type { ControllerStatus, FolderStatus, RouterStatus, StatusQuery, VolumeStatus } from "./model.ts";

/** The sections of a controller: its volumes, and each of its routers. */
export function controllerSections(controller: ControllerStatus, query: StatusQuery, nowMs: number): Html {
  return markup`${controller.routers.map((router) => routerSection(router, nowMs))}
${volumeSection(controller, query, nowMs)}`;
}

function routerSection(router: RouterStatus, nowMs: number): Html {
  const { name, address, version, board, folders, readAtMs, latency } = router;
  const kind = [board, version && `RouterOS ${version}`].filter(Boolean).join(", ");
  return markup`<section>
<h2>Router ${name} <small>${address}${kind === "" ? "" : `; ${kind}`}</small></h2>
<p>${sessionBadge(router)} <small>${ago(router.sessionSinceAtMs, nowMs)}${
    router.sessionReason && `: ${router.sessionReason}`
  }</small> ${breakerBadge(router, nowMs)} ${
    router.sshExploited ? badge("bad", "this RouterOS is exploited through SSH: upgrade it") : ""
  }
<small>${latencyWords(latency)}; ${
    counted(router.waiting, "command")
  } waiting, ${router.running} running</small></p>
<h3>Pools <small>read ${ago(readAtMs, nowMs)}</small></h3>
${
    readAtMs === undefined
      ? markup`<p class="quiet">The disks have not been read yet: the next call or round does it.</p>`
      : folders.map(folderBlock)
  }
${hardwareBlock(router.hardware, nowMs)}
<p class="quiet">${auditLine(router, nowMs)}</p>
</section>`;
}

function latencyWords({ count, medianMs, p99Ms }: RouterStatus["latency"]): string {
  if (count === 0) return "no command yet";
  return `commands take ${duration(medianMs)}, 99 % of them at most ${duration(p99Ms)}`;
}

function sessionBadge({ session }: RouterStatus): Html {
  const kind = session === "ready" ? "good" : session === "backing-off" ? "bad" : "plain";
  return badge(kind, `SSH session ${session}`);
}

function breakerBadge({ breaker, breakerSinceAtMs, breakerCause }: RouterStatus, nowMs: number): Html {
  if (breaker === "closed") return badge("plain", "breaker closed");
  return markup`${badge("bad", `breaker ${breaker}: calls are refused at once`)} <small>${
    ago(breakerSinceAtMs, nowMs)
  }${breakerCause && `: ${breakerCause}`}</small>`;
}

function folderBlock({ basePath, poolName, pool, volumes, attachments, labelClaim }: FolderStatus): Html {
  // Shown only when it has volumes.
  if (poolName === "") {
    return volumes === 0
      ? markup``
      : markup`<p>In folders that no --base-path names: ${counted(volumes, "volume")}, ${
        counted(attachments, "attachment")
      }</p>`;
  }
  if (pool === undefined) {
    return markup`<div class="pool"><b>${basePath}</b> ${
      badge("bad", `the pool ${poolName} is not mounted`)
    } <small>its contents are not known</small></div>`;
  }
  return markup`
    <div
      class="pool"><b>${basePath}</b> <small>${counted(volumes, "volume")}, ${
    counted(
      attachments,
      "attachment",
    )
  }, on the pool ${poolName} of ${formatBytes(pool.sizeBytes)}</small> ${labelBadge(pool, labelClaim)}
    ${poolBars(pool)}</div>
  `;
}

function labelBadge({ labelTakenBy }: PoolTotals, claim: string | undefined): Html | undefined {
  if (labelTakenBy === undefined) return undefined;
  const of = claim === undefined ? "" : ` of the claim ${claim}`;
  return badge(
    "bad",
    `the volume ${labelTakenBy}${of} has this pool's label: no volume is created, copied or deleted`,
  );
}

function poolBars({ sizeBytes, freeBytes, diskBytes, snapshotBytes }: PoolTotals): Html {
  const used = sizeBytes - freeBytes;
  const promised = diskBytes + (snapshotBytes ?? 0n);
  const share = (part: bigint) => sizeBytes === 0n ? 0 : Number(part * 1000n / sizeBytes) / 10;
  return markup`${bar(share(used), 0, `${share(used)} % used`)}
<small>used ${formatBytes(used)} (${share(used)} %), free ${formatBytes(freeBytes)}</small>
${bar(share(diskBytes), share(snapshotBytes ?? 0n), `${share(promised)} % promised`)}
<small>promised ${formatBytes(promised)} (${share(promised)} %): disks ${formatBytes(diskBytes)}, snapshots ${
    snapshotBytes === undefined ? "not read yet" : formatBytes(snapshotBytes)
  }</small>`;
}

/** Shares in percent. Drawn with attributes, because the page allows no styles of single elements. */
function bar(first: number, second: number, label: string): Html {
  const isOver = first + second > 100;
  const one = Math.min(first, 100);
  const two = Math.min(second, 100 - one);
  return markup`
    <svg viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label="${label}">
      <rect class="bar-ground" width="100" height="4" />
      <rect class="${isOver ? "bar-over" : "bar"}" width="${one}" height="4" />
      <rect class="bar-second" x="${one}" width="${two}" height="4" />
    </svg>
  `;
}

function volumeSection(controller: ControllerStatus, query: StatusQuery, nowMs: number): Html {
  const { volumes, routers } = controller;
  const several = routers.length > 1;
  const hasClaims = volumes.items.some(({ claim }) => claim !== undefined);
  return markup`<section>
<h2>Volumes <small>read ${ago(seenAtMs(routers), nowMs)}, from the records on the routers</small></h2>
${pager(volumes, query)}
${
    table<VolumeStatus>(volumes.items, [
      { head: "Volume", form: "id", cell: ({ id }) => id },
      ...hasClaims ? [{ head: "Claim", cell: ({ claim = "" }: VolumeStatus) => claim }] : [],
      ...several ? [{ head: "Router", cell: ({ router }: VolumeStatus) => router }] : [],
      { head: "Size", form: "number", cell: ({ sizeBytes }) => formatBytes(sizeBytes) },
      { head: "Attached to", cell: (one) => holders(one, nowMs) },
      { head: "Health", cell: health },
      { head: "Epoch", form: "number", cell: ({ epoch }) => epoch === 0 ? "–" : epoch },
      { head: "Folder", cell: ({ basePath }) => basePath },
    ], volumes.total === 0 ? "No volumes." : "No volume matches the search.")
  }
</section>`;
}

/** The oldest time at which a router was read; undefined while one was never read. */
function seenAtMs(routers: readonly RouterStatus[]): number | undefined {
  const times = routers.map(({ readAtMs }) => readAtMs ?? -Infinity);
  const oldest = Math.min(...times);
  return Number.isFinite(oldest) ? oldest : undefined;
}

function holders({ holders, migrating }: VolumeStatus, nowMs: number): Html {
  if (holders.length === 0) return markup`<span class="quiet">no node</span>`;
  return markup`${
    holders.map(({ nodeId, sinceSeconds, readOnly }) =>
      markup`<div>${nodeId}${readOnly ? ", read only" : ""} <small>${
        ago(sinceSeconds * 1000, nowMs)
      }</small></div>`
    )
  }${migrating ? badge("plain", "migrating") : undefined}`;
}

function health({ problems, holders, exported }: VolumeStatus): Html {
  if (problems.length > 0) return problemList(problems);
  if (holders.length > 0 && !exported) return badge("warn", "not exported");
  if (holders.length === 0 && exported) return badge("warn", "still exported");
  return markup`<span class="quiet">no problem known</span>`;
}

function auditLine({ audit }: RouterStatus, nowMs: number): Html {
  if (audit === undefined) return markup`No audit yet, or another controller runs it.`;
  const found = Object.entries(audit.found).filter(([, count]) => count > 0)
    .map(([kind, count]) => `${count} ${kind}`);
  return markup`Last audit ${ago(audit.atMs, nowMs)}: ${
    found.length === 0 ? "nothing without an owner" : found.join(", ")
  }; \`rds-csi audit\` lists them.`;
}
