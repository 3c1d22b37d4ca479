import type { Random } from "../volume/ports/system.ts";

/** How long something takes on a real router: a range in milliseconds. */
export type Span = readonly [minMs: number, maxMs: number];

const kibi = 1024n;
const gibibyte = kibi ** 3n;
const tebibyte = kibi ** 4n;

/** Setting up an SSH connection. */
export const handshakeSpan: Span = [200, 500];

const spans: Readonly<Record<string, Span>> = {
  "disk add": [300, 450],
  "disk remove": [250, 350],
  "disk set": [100, 200],
  "disk print": [50, 100],
  "disk find": [20, 40],
  "file add": [20, 40],
  "file remove": [100, 150],
  "file copy": [50, 200],
  "file print": [100, 200],
  "file find": [50, 80],
  "disk/btrfs/subvolume add": [50, 200],
  "disk/btrfs/subvolume remove": [50, 200],
};

const otherSpan: Span = [10, 30];
const terabyteAddMs = 2900;

/** How long a command of a menu takes; adding a disk takes longer the bigger it is, up to 3 s for 1 TiB. */
export function spanOf(menu: string, verb: string, sizeBytes = 0n): Span {
  const [least, most] = spans[`${menu} ${verb}`] ?? otherSpan;
  if (`${menu} ${verb}` !== "disk add" || sizeBytes <= gibibyte) return [least, most];
  const share = Math.min(1, Number(sizeBytes) / Number(tebibyte));
  return [least + share * (terabyteAddMs - least), most + share * (terabyteAddMs - most)];
}

/** Chooses durations, scaled: 1 is a real router, 0 is one that takes no time. */
export class Timing {
  readonly #scale: number;
  readonly #random: Random;

  constructor(scale: number, random: Random) {
    this.#scale = scale;
    this.#random = random;
  }

  /** Chooses a duration within `span`, in milliseconds. */
  draw([minMs, maxMs]: Span): number {
    if (this.#scale === 0) return 0;
    return (minMs + this.#random.fraction() * (maxMs - minMs)) * this.#scale;
  }
}
