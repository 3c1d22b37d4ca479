/** How often a figure is measured before it counts as over its limit. */
const maxMeasurements = 3;

/**
 * Measures, and again while something is over its limit: another program on the machine slows one measurement, while what has
 * become slower is slow in all of them.
 *
 * @param overOf says in words what is over its limit; nothing when all is well
 * @param print takes a line about each measurement that is not the last one
 * @returns the last measurement
 */
export async function measureUntilWithin<Measurement>(
  measure: () => Promise<Measurement>,
  overOf: (measured: Measurement) => readonly string[],
  print: (line: string) => void,
): Promise<Measurement> {
  for (let number = 1;; number++) {
    const measured = await measure();
    const over = overOf(measured);
    if (over.length === 0 || number === maxMeasurements) return measured;
    for (const line of over) print(`over its limit, measured again: ${line}`);
  }
}
