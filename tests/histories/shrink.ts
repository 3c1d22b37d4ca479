/**
 * Removes the items of a failing list without which it still fails: large parts first, single items at the end.
 *
 * @param fails whether a shorter list still fails
 * @returns a list that still fails, and does not without any one of its items
 */
export async function shrink<Item>(
  items: readonly Item[],
  fails: (items: readonly Item[]) => Promise<boolean>,
): Promise<readonly Item[]> {
  let left = items;
  for (let size = Math.ceil(items.length / 2); size >= 1;) {
    const before = left.length;
    for (let start = 0; start < left.length;) {
      const shorter = left.toSpliced(start, size);
      if (await fails(shorter)) left = shorter;
      else start += size;
    }
    // Items that only removed ones needed may be removed too.
    if (size > 1) size = Math.ceil(size / 2);
    else if (left.length === before) break;
  }
  return left;
}
