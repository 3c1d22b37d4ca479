/** Does some work for each item, as many at a time as there are cores. The results are in the order of the items. */
export async function onAllCores<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const queue = [...items.entries()];
  const worker = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      results[next[0]] = await work(next[1]);
    }
  };
  await Promise.all(Array.from({ length: navigator.hardwareConcurrency }, worker));
  return results;
}
