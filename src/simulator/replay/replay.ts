import { recordedNames, standIn } from "../../router_profile/report/allowed.ts";
import { Recording } from "../../router_profile/report/recorded.ts";
import type { AcceptanceReport, RecordedAnswer } from "../../router_profile/report/report.ts";
import type { Clock, Random } from "../../volume/ports/system.ts";
import { Console, someoneElse } from "../console/console.ts";
import { MemoryBacking } from "../model/backing.ts";
import { noExporter } from "../model/exports.ts";
import { Router } from "../model/router.ts";
import { parsePlayed, type Profile } from "../profile.ts";
import { isSince } from "../menu/versions.ts";
import { Timing } from "../timing.ts";
import { compareAnswers, type Difference } from "./compare.ts";

/** One command that the simulator answers otherwise than the router did. */
export interface ReplayedDifference extends Difference {
  /** The number of the entry, from 1. */
  readonly entry: number;
  readonly step: string;
  readonly command: string;
}

/** What a replay needs. */
export interface ReplayAdapters {
  readonly clock: Clock;
  readonly random: Random;
}

/** Gives a simulated router every command of a report, in their order, and lists what it answers otherwise. */
export async function replayReport(
  report: AcceptanceReport,
  adapters: ReplayAdapters,
): Promise<ReplayedDifference[]> {
  const router = routerOf(report, adapters);
  const console = new Console(router, new Timing(0, adapters.random));
  const recording = new Recording(recordedNames(report.own));
  const differences: ReplayedDifference[] = [];
  for (const [index, entry] of report.transcript.entries()) {
    if ("event" in entry) {
      reboot(router);
      continue;
    }
    const answer = await ask(console, recording, entry.command);
    // Whether the router carried it out is not known: what follows shows it.
    if (entry.end === "torn") continue;
    const { step, command } = entry;
    const found = compareAnswers(entry, answer);
    differences.push(...found.map((difference) => ({ ...difference, entry: index + 1, step, command })));
  }
  return differences;
}

async function ask(console: Console, recording: Recording, command: string): Promise<RecordedAnswer> {
  const { output, refusal } = await console.execute(command, someoneElse);
  return recording.answer(command, output + (refusal === undefined ? "" : `${refusal}\r\n`));
}

/** A router of the report's kind, with its pool and the empty base path. */
function routerOf({ router, profile }: AcceptanceReport, { clock, random }: ReplayAdapters): Router {
  const { version, poolFilesystem, poolBytes } = router;
  const unknown: Profile = {
    name: "unknown",
    version,
    poolFilesystem,
    vocabulary: { rose: true, fileCopy: isSince(version, 23) },
    answers: {},
  };
  const played = profile === undefined ? unknown : parsePlayed(JSON.stringify(profile));
  const model = new Router({
    clock,
    random,
    profile: {
      ...played,
      version,
      answers: { ...isSince(version, 24) && { maxSlot: 32 }, ...played.answers },
    },
    behaviours: {},
    backing: new MemoryBacking(),
    exporter: noExporter,
    pools: [{
      name: standIn.mountPoint,
      label: standIn.label,
      sizeBytes: BigInt(poolBytes),
      filesystem: poolFilesystem,
    }],
  });
  model.files.makeDirectories(standIn.basePath.slice(1));
  return model;
}

function reboot(router: Router): void {
  router.boots++;
  router.exports.powerOff(router.behaviours.bootIdentity);
  router.files.abandonCopies();
  router.disks.renumber((disk) => disk.filePath === "" ? 0 : 1 + router.random.fraction());
  router.system.boot(0);
  router.exports.listen(true);
}

/** Differences for people: each kind at each place once, with the number of commands that show it. */
export function describeDifferences(differences: readonly ReplayedDifference[]): string[] {
  const groups = Map.groupBy(
    differences,
    ({ kind, where, router, simulator }) =>
      JSON.stringify([
        kind,
        where.replaceAll(/[0-9a-f]{8,}/g, "*"),
        ...kind === "value" ? [] : [router, simulator],
      ]),
  );
  return [...groups.values()].map((group) => {
    const { entry, step, kind, where, router, simulator } = group[0]!;
    const place = where === "" ? "" : ` at ${where}`;
    const times = group.length === 1 ? "" : ` (and ${group.length - 1} more)`;
    return `${entry} ${step}: ${kind}${place}: ` +
      `router ${router || "-"}, simulator ${simulator || "-"}${times}`;
  });
}
