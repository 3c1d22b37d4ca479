import { SeededRandom } from "../fakes/random.ts";

/** Draws at random; the same seed draws the same. */
export class Draw {
  readonly #random: SeededRandom;

  constructor(seed: number) {
    this.#random = new SeededRandom(seed);
  }

  below(limit: number): number {
    return Math.floor(this.#random.fraction() * limit);
  }

  chance(probability: number): boolean {
    return this.#random.fraction() < probability;
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)]!;
  }
}
