/**
 * The longest length that works, of those from `least` to `most`, when every shorter one works too; undefined when not
 * even `least` does. Asks about as often as a number of that range has bits.
 */
export async function longest(
  least: number,
  most: number,
  works: (length: number) => Promise<boolean>,
): Promise<number | undefined> {
  if (await works(most)) return most;
  let [good, bad] = [least, most];
  if (least === most || !await works(least)) return undefined;
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2);
    if (await works(middle)) good = middle;
    else bad = middle;
  }
  return good;
}
