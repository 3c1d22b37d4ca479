/** What one round took, in milliseconds. */
export interface Measured {
  /** The whole call, from its arrival to its answer. */
  readonly driverMs: number;
  /** The whole call as its client saw it, on the host: over a forwarded port, and what relays it in the guest. */
  readonly clientMs: number;
  readonly shellMs: number;
  readonly shellSteps: Readonly<Record<string, number>>;
  /** What the driver's tools ran for. */
  readonly tools: Readonly<Record<string, number>>;
  /** How long at least one of them ran. */
  readonly toolsMs: number;
}

/** The rounds that were measured. */
export class StageTimes {
  readonly rounds: Measured[] = [];

  add(measured: Measured): void {
    this.rounds.push(measured);
  }

  /** The median of the rounds' ratios: both halves of a round were measured one after the other. */
  get ratio(): number {
    return this.median(({ driverMs, shellMs }) => driverMs / shellMs);
  }

  /** The median of something of the rounds. */
  median(value: (round: Measured) => number): number {
    return medianOf(this.rounds.map(value));
  }
}

/** The middle value, or the mean of the two middle ones. */
export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length / 2;
  return (sorted[Math.floor(half - 0.5)]! + sorted[Math.ceil(half - 0.5)]!) / 2;
}

/** The figures as lines. */
export function report(times: StageTimes): readonly string[] {
  const ms = (value: number) => `${value.toFixed(0)} ms`;
  const names = (of: (round: Measured) => object) => [
    ...new Set(times.rounds.flatMap((round) => Object.keys(of(round)))),
  ];
  const each = (of: (round: Measured) => Readonly<Record<string, number>>) =>
    names(of).map((name) => `${name} ${ms(times.median((round) => of(round)[name] ?? 0))}`).join(", ");
  const rounds = times.rounds.map(({ driverMs, shellMs }) => `${driverMs.toFixed(0)}/${shellMs.toFixed(0)}`);
  return [
    `medians: driver ${ms(times.median(({ driverMs }) => driverMs))} ` +
    `(${ms(times.median(({ clientMs }) => clientMs))} at its client), ` +
    `shell ${ms(times.median(({ shellMs }) => shellMs))}`,
    `driver: outside of child processes ${ms(times.median((round) => round.driverMs - round.toolsMs))}, ` +
    `in them ${ms(times.median(({ toolsMs }) => toolsMs))}: ${each(({ tools }) => tools)}`,
    `shell: ${each(({ shellSteps }) => shellSteps)}`,
    `rounds, driver/shell in ms: ${rounds.join(" ")}`,
  ];
}
