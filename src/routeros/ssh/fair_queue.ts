/**
 * A queue in which keys take turns: whoever asks for much waits behind its own requests, not in front of others'.
 *
 * Items of one key keep their order.
 */
export class FairQueue<Item> {
  /** In the order of turns: the first key is next. */
  readonly #lanes = new Map<string, Item[]>();
  #size = 0;

  /** How many items wait. */
  get size(): number {
    return this.#size;
  }

  /** Appends an item behind the others of its key. */
  push(key: string, item: Item): void {
    const lane = this.#lanes.get(key);
    if (lane === undefined) this.#lanes.set(key, [item]);
    else lane.push(item);
    this.#size++;
  }

  /** Puts an item that was taken out back to where it goes next. */
  putBack(key: string, item: Item): void {
    const others = [...this.#lanes].filter(([other]) => other !== key);
    const lane = [item, ...this.#lanes.get(key) ?? []];
    this.#lanes.clear();
    this.#lanes.set(key, lane);
    for (const [other, items] of others) this.#lanes.set(other, items);
    this.#size++;
  }

  /** Takes the next item that may go; undefined when none waits. One that may not holds up its own key only. */
  shift(mayGo: (item: Item) => boolean = () => true): Item | undefined {
    for (const [key, lane] of this.#lanes) {
      if (!mayGo(lane[0]!)) continue;
      const item = lane.shift()!;
      this.#lanes.delete(key);
      if (lane.length > 0) this.#lanes.set(key, lane);
      this.#size--;
      return item;
    }
    return undefined;
  }

  /** Takes an item out, wherever it waits; false when it does not. */
  remove(key: string, item: Item): boolean {
    const lane = this.#lanes.get(key);
    const index = lane?.indexOf(item) ?? -1;
    if (lane === undefined || index < 0) return false;
    lane.splice(index, 1);
    if (lane.length === 0) this.#lanes.delete(key);
    this.#size--;
    return true;
  }

  /** Every item that waits, in no particular order. */
  items(): Item[] {
    return [...this.#lanes.values()].flat();
  }
}
