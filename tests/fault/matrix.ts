// Lets every fault strike every command of every call of the controller, and kills the controller at every boundary
// between two commands. `make test/fault`.
//
// By default every kind of fault meets every command of every call once. Faults of one row are alike, so they take turns.
// A kill after a command leaves the router in the same state as a kill before the next command, and a command that changes
// nothing leaves it as it was; the default run kills once for each state. MATRIX_ALL=1 lets every fault and every kill meet
// every command.
//
// MATRIX_ONLY is a regular expression on rows and columns, as in `MATRIX_ONLY='drops.*Publish'`.
import { print } from "../../tools/print.ts";
import { type Cell, runMatrices, wantedRows, wantsAll } from "../support/matrix.ts";
import type { StackOptions } from "../support/stack.ts";
import { Controllers } from "./controllers.ts";
import { type Fault, wireFaults } from "./faults.ts";
import { killAt, type Moment, moments } from "./kill.ts";
import type { Rpc } from "./rpcs.ts";
import { commandsOf, tryUnder, Worker } from "./trial.ts";
import { routerFaults } from "./router_faults.ts";

/** The number of cells on one router before a new router replaces it: what they leave there slows every list. */
const cellsPerRouter = 12;

/**
 * The calls of every `*_rpcs.ts` in this folder, so that none is forgotten. Not awaited at the top level: a worker
 * loses messages that arrive while its module is loading.
 */
async function allRpcs(): Promise<readonly Rpc[]> {
  const files = await Array.fromAsync(Deno.readDir(import.meta.dirname!), ({ name }) => name);
  const modules = files.filter((name) => name.endsWith("_rpcs.ts")).sort().map(async (name) => {
    const { rpcs } = await import(`./${name}`) as { readonly rpcs: readonly Rpc[] };
    return [...rpcs];
  });
  return (await Promise.all(modules)).flat();
}

/** Whether each command of each call changes the router, by the name of the call. */
type Commands = Readonly<Record<string, readonly boolean[]>>;

/** A command of a call, by its number. */
interface Target {
  readonly rpc: Rpc;
  readonly nth: number;
  readonly changes: boolean;
}

function targetsOf(
  rpcs: readonly Rpc[],
  changesOf: (rpc: Rpc) => readonly boolean[],
): readonly Target[] {
  return rpcs.flatMap((rpc) => changesOf(rpc).map((changes, index) => ({ rpc, nth: index + 1, changes })));
}

/** A row: one cell for each target. Targets that need the same router share a worker. */
function tracksOf(
  row: string,
  chosen: readonly Target[],
  options: readonly (StackOptions | undefined)[],
  run: (worker: Worker, target: Target) => Promise<string | void>,
): Cell[][] {
  const wanted = chosen.filter(({ rpc }) => wantedRows.test(`${row} ${rpc.name}`));
  const workers = [...Map.groupBy(wanted, ({ rpc }) => rpc.options).values()].flatMap((targets) =>
    Array.from(
      { length: Math.ceil(targets.length / cellsPerRouter) },
      (_, index) => targets.slice(index * cellsPerRouter, (index + 1) * cellsPerRouter),
    )
  );
  return workers.map((targets) => {
    const worker = new Worker(targets[0]!.rpc.options, ...options);
    return targets.map((target, index): Cell => ({
      row,
      column: target.rpc.name,
      hint: `at command ${target.nth}`,
      run: async () => {
        const because = await run(worker, target);
        if (index === targets.length - 1) await worker.close();
        return because;
      },
    }));
  });
}

/** Faults that are alike share a row and take turns, unless every one is to meet every command. */
function faultTracks(targets: readonly Target[], row: string, faults: readonly Fault[]): Cell[][] {
  return faults.flatMap((fault, turn) => {
    const chosen = targets.filter(({ nth }, index) =>
      (wantsAll || index % faults.length === turn) && (fault.once !== true || nth === 1)
    );
    const run = (worker: Worker, { rpc, nth }: Target) => tryUnder(worker, fault, rpc, nth);
    return tracksOf([row, fault.name].join(" ").trim(), chosen, [fault.options], run).map((track) =>
      track.map((cell) => wantsAll ? cell : { ...cell, row, hint: `${fault.name} ${cell.hint}` })
    );
  });
}

/** The controllers of one worker share a port, as each worker has its router to itself. */
let controllers: Controllers | undefined;

function killTracks(targets: readonly Target[], moment: Moment): Cell[][] {
  const chosen = targets.filter(({ rpc, nth, changes }) =>
    rpc.unprobed !== true && (wantsAll || moment.isItsOwn(nth, changes))
  );
  const open = () => controllers ??= new Controllers(1);
  const run = (worker: Worker, { rpc, nth }: Target) => killAt(worker, open(), rpc, moment, nth);
  return tracksOf(moment.name, chosen, [Controllers.router], run);
}

const isWell = await runMatrices(import.meta.url, {
  gather: async (): Promise<Commands> => {
    const commands: Record<string, readonly boolean[]> = {};
    for (const rpc of await allRpcs()) commands[rpc.name] = await commandsOf(rpc);
    print("commands of each call when nothing goes wrong, and the boundaries around them:");
    for (const [name, { length }] of Object.entries(commands)) {
      print(`${String(length).padStart(4)} ${String(length + 1).padStart(4)}  ${name}`);
    }
    return commands;
  },
  matrices: async (commands) => {
    const rpcs = await allRpcs();
    const targets = targetsOf(rpcs, ({ name }) => commands[name]!);
    // The controller that is killed did not make the volume itself.
    const killTargets = targetsOf(rpcs, ({ name, unremembered }) => unremembered ?? commands[name]!);
    const faults = [...wireFaults, ...routerFaults];
    return [
      // The cells spend most of their time waiting.
      {
        suite: "fault",
        tracks: faults.flatMap(([row, faults]) => faultTracks(targets, row, faults)),
        parallel: 8,
      },
      {
        suite: "fault/kill",
        tracks: moments.flatMap((moment) => killTracks(killTargets, moment)),
        parallel: 1,
      },
    ];
  },
  close: async () => await controllers?.[Symbol.asyncDispose](),
});
Deno.exit(isWell ? 0 : 1);
