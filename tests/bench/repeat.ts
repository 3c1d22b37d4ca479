/** How often a figure is measured before it counts as over its limit. */
const maxMeasurements = 3;

/**
 * Measures, and again while something is over its limit: another program on the machine slows one measurement, while what has
 * become slower is slow in all of them.
 *
 * @param overOf says in words what is over its limit; nothing when all is well
 * @param print takes a line about each measurement that is not the last one
 * @param join makes one of all so far and the next; without it each stands for itself
 * @returns the last measurement, joined with those before it
 */
export async function measureUntilWithin<Measurement>(
  measure: () => Promise<Measurement>,
  overOf: (measured: Measurement) => readonly string[],
  print: (line: string) => void,
  join: (before: Measurement, next: Measurement) => Measurement = (_before, next) => next,
): Promise<Measurement> {
  let before: Measurement | undefined;
  for (let number = 1;; number++) {
    const next = await measure();
    const measured = before === undefined ? next : join(before, next);
    before = measured;
    const over = overOf(measured);
    if (over.length === 0 || number === maxMeasurements) return measured;
    for (const line of over) print(`over its limit, measured again: ${line}`);
  }
}
