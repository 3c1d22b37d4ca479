import type { Subject } from "../support/parts.ts";
import { percentile, type RpcSamples } from "./rpc.ts";
import { type Sample, withController } from "./controller_stack.ts";

/** How the cost of one RPC grows with the number of disks, and what it costs whatever that is. */
export interface Flatness {
  /** Router commands a call. */
  readonly commands: number;
  /** Bytes read from the router among many disks, as a multiple of those among few. */
  readonly bytes: number;
  /** The median time among many disks, as a multiple of that among few. */
  readonly p50: number;
}

/** By RPC and calls in flight, as in "CreateVolume at 16 in flight". */
export type FlatnessByCall = Readonly<Record<string, Flatness>>;

const [few, many] = [100, 1000];
const rpcs = [
  "CreateVolume",
  "CreateVolume (repeated)",
  "GetCapacity",
  "ControllerPublishVolume",
  "ControllerExpandVolume",
  "ControllerUnpublishVolume",
  "CreateSnapshot",
  "CreateVolume (restored)",
  "DeleteSnapshot",
  "DeleteVolume (restored)",
  "DeleteVolume",
];

/**
 * Measures how the controller's calls grow from a router with 100 disks to one with 1,000. Both take turns, so that what else
 * runs on the machine slows both.
 */
export async function measureFlatness(subject: Subject): Promise<FlatnessByCall> {
  return await withController(subject, few, (small) =>
    withController(subject, many, async (large) => {
      const result: Record<string, Flatness> = {};
      for (const inFlight of [1, 16]) {
        const [among, amongMany] = await inTurns([small, large], inFlight);
        for (const rpc of rpcs) result[`${rpc} at ${inFlight} in flight`] = flatness(rpc, among!, amongMany!);
      }
      return result;
    }));
}

async function inTurns(stacks: readonly Sample[], inFlight: number): Promise<RpcSamples[][]> {
  const bench = { rpcs, inFlight, volumes: 32 };
  const samples = stacks.map((): RpcSamples[] => []);
  for (let number = 0; number < 4; number++) {
    for (const [index, sample] of stacks.entries()) {
      const taken = await sample(bench);
      // What is measured is a controller that serves for months, not one that still compiles.
      if (number > 0) samples[index]!.push(...taken);
    }
  }
  return samples;
}

function flatness(rpc: string, small: readonly RpcSamples[], large: readonly RpcSamples[]): Flatness {
  const costs = [small, large].map((samples) => {
    const own = samples.filter((one) => one.rpc === rpc);
    // Of the turns the cheapest: once a minute one call reads everything, and another program slows some turns, not all.
    const least = (valueOf: (one: RpcSamples) => number) => Math.min(...own.map(valueOf));
    return {
      p50Ms: least(({ milliseconds }) => percentile(milliseconds, 0.5)),
      commands: least(({ used, milliseconds }) => used.commands / milliseconds.length),
      bytes: least(({ used, milliseconds }) => used.bytes / milliseconds.length),
    };
  });
  const [among, amongMany] = [costs[0]!, costs[1]!];
  return {
    commands: rounded(amongMany.commands),
    bytes: rounded(amongMany.bytes / among.bytes),
    p50: rounded(amongMany.p50Ms / among.p50Ms),
  };
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}

/** What counts as flat, whatever was committed. */
const flat = 1.3;

/** The least of each cost: of many calls another one is slowed in each measurement. */
export function minimumOf(before: FlatnessByCall, next: FlatnessByCall): FlatnessByCall {
  const minimum = (one: Flatness, { commands, bytes, p50 }: Flatness): Flatness => ({
    commands: Math.min(one.commands, commands),
    bytes: Math.min(one.bytes, bytes),
    p50: Math.min(one.p50, p50),
  });
  return Object.fromEntries(
    Object.entries(next).map(([call, one]) => [call, minimum(before[call] ?? one, one)]),
  );
}

/** What has become worse by more than a third since the ratios were committed, in words; none when nothing has. */
export function losses(committed: FlatnessByCall, measured: FlatnessByCall): string[] {
  return Object.entries(committed).flatMap(([call, before]) => {
    const now = measured[call];
    if (now === undefined) return [`${call}: it was not measured`];
    return (["commands", "bytes", "p50"] as const).flatMap((cost) =>
      now[cost] <= Math.max(flat, before[cost] * 4 / 3)
        ? []
        : [`${call}: ${cost} ${now[cost]}, ${before[cost]} when it was committed`]
    );
  });
}
