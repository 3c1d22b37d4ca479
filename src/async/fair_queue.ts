/**
 * A queue in which keys take turns: a key with many requests delays only its own requests.
 *
 * It runs nothing itself. An item that was taken out may run beside others of its key, which a `KeyedQueue` prevents.
 *
 * Items of one key keep their order.
 */
export class FairQueue<Item> {
  /** In the order of turns: the first key is next. */
  readonly #workers = new Map<string, Item[]>();
  #size = 0;

  /** The number of waiting items. */
  get size(): number {
    return this.#size;
  }

  /** Appends an item behind the others of its key. */
  push(key: string, item: Item): void {
    const worker = this.#workers.get(key);
    if (worker === undefined) this.#workers.set(key, [item]);
    else worker.push(item);
    this.#size++;
  }

  /** Puts an item that was taken out back, as the next one. */
  putBack(key: string, item: Item): void {
    const others = [...this.#workers].filter(([other]) => other !== key);
    const worker = [item, ...this.#workers.get(key) ?? []];
    this.#workers.clear();
    this.#workers.set(key, worker);
    for (const [other, items] of others) this.#workers.set(other, items);
    this.#size++;
  }

  /** Takes the next item that may go; undefined when there is none. An item that may not go delays only its own key. */
  shift(mayGo: (item: Item) => boolean = () => true): Item | undefined {
    for (const [key, worker] of this.#workers) {
      if (!mayGo(worker[0]!)) continue;
      const item = worker.shift()!;
      this.#workers.delete(key);
      if (worker.length > 0) this.#workers.set(key, worker);
      this.#size--;
      return item;
    }
    return undefined;
  }

  /** Removes a waiting item; false when it does not wait. */
  remove(key: string, item: Item): boolean {
    const worker = this.#workers.get(key);
    const index = worker?.indexOf(item) ?? -1;
    if (worker === undefined || index < 0) return false;
    worker.splice(index, 1);
    if (worker.length === 0) this.#workers.delete(key);
    this.#size--;
    return true;
  }

  /** Every waiting item, in no particular order. */
  items(): Item[] {
    return [...this.#workers.values()].flat();
  }
}
