// Every fault at every command of every call of the controller, and kill -9 at every boundary between two of them:
// `make test/fault`.
//
// MATRIX_ONLY is a regular expression on rows and columns, as in `MATRIX_ONLY='drops.*Publish'`. With MATRIX_ALL=1 each
// of several faults that are alike meets every command.
import { print } from "../../tools/print.ts";
import type { StackOptions } from "../support/stack.ts";
import { type Cell, environmentNumber, runMatrix } from "../support/matrix.ts";
import { Controllers } from "./controllers.ts";
import { type Fault, wireFaults } from "./faults.ts";
import { killAt, type Moment, moments } from "./kill.ts";
import { lookRpcs } from "./look_rpcs.ts";
import type { Rpc } from "./rpcs.ts";
import { snapshotRpcs } from "./snapshot_rpcs.ts";
import { staticRpcs } from "./static_rpcs.ts";
import { takeoverRpcs } from "./takeover_rpcs.ts";
import { countCommands, Lane, tryUnder } from "./trial.ts";
import { volumeRpcs } from "./volume_rpcs.ts";
import { worldFaults } from "./world_faults.ts";

/** Rows at a time: they wait more than they work. */
const parallel = 12;
const only = new RegExp(Deno.env.get("MATRIX_ONLY") ?? "");
const all = environmentNumber("MATRIX_ALL", 0) > 0;

const rpcs = [...volumeRpcs, ...takeoverRpcs, ...staticRpcs, ...snapshotRpcs, ...lookRpcs];
const counts = new Map<string, number>();
for (const rpc of rpcs) counts.set(rpc.name, await countCommands(rpc));
print("commands of each call when nothing goes wrong, and the boundaries around them:");
for (const [name, count] of counts) {
  print(`${String(count).padStart(4)} ${String(count + 1).padStart(4)}  ${name}`);
}

/** A command of a call, by its number. */
interface Target {
  readonly rpc: Rpc;
  readonly nth: number;
}

const targets: readonly Target[] = rpcs.flatMap((rpc) =>
  Array.from({ length: counts.get(rpc.name)! }, (_, index) => ({ rpc, nth: index + 1 }))
);

/** A row: a cell for each target, those that need the same router on one lane. */
function tracksOf(
  row: string,
  chosen: readonly Target[],
  options: readonly (StackOptions | undefined)[],
  run: (lane: Lane, target: Target) => Promise<string | void>,
): Cell[][] {
  const wanted = chosen.filter(({ rpc }) => only.test(`${row} ${rpc.name}`));
  return [...Map.groupBy(wanted, ({ rpc }) => rpc.options).entries()].map(([own, targets]) => {
    const lane = new Lane(own, ...options);
    return targets.map((target, index): Cell => ({
      row,
      column: target.rpc.name,
      hint: `at command ${target.nth}`,
      run: async () => {
        const because = await run(lane, target);
        if (index === targets.length - 1) await lane.close();
        return because;
      },
    }));
  });
}

/** Faults that are alike share a row and take turns, unless every one is to meet every command. */
function faultTracks(row: string, faults: readonly Fault[]): Cell[][] {
  return faults.flatMap((fault, turn) => {
    const chosen = targets.filter(({ nth }, index) =>
      (all || index % faults.length === turn) && (fault.once !== true || nth === 1)
    );
    const run = (lane: Lane, { rpc, nth }: Target) => tryUnder(lane, fault, rpc, nth);
    return tracksOf([row, fault.name].join(" ").trim(), chosen, [fault.options], run)
      .map((track) => track.map((cell) => all ? cell : { ...cell, row, hint: `${fault.name} ${cell.hint}` }));
  });
}

const controllers = await Controllers.open(3);
function killTracks(moment: Moment): Cell[][] {
  const router = { simulator: { sshPort: controllers.sshPort } };
  const run = (lane: Lane, { rpc, nth }: Target) => killAt(lane, controllers, rpc, moment, nth);
  return tracksOf(moment.name, targets, [router], run);
}

const runs: readonly (readonly [suite: string, tracks: readonly Cell[][], parallel: number])[] = [
  ["fault", [...wireFaults, ...worldFaults].flatMap(([row, faults]) => faultTracks(row, faults)), parallel],
  // They share one port: each has its router to itself.
  ["fault/kill", moments.flatMap(killTracks), 1],
];
const some = runs.filter(([, tracks]) => tracks.length > 0);
const outcomes = await Promise.all(
  some.map(([suite, tracks, parallel]) => runMatrix(suite, tracks, parallel)),
);
await controllers[Symbol.asyncDispose]();
Deno.exit(some.length === 0 || outcomes.some(({ failed }) => failed > 0) ? 1 : 0);
