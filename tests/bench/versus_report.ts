/** What delays the simulated router's answers. */
export type Delays = "none" | "statement" | "statement, on XFS" | "exec";

/** What one RPC cost one driver, a call on average. */
export interface VersusRow {
  readonly driver: "ours" | "other";
  readonly delays: Delays;
  /** How many disks the router had beside those of the calls. */
  readonly disks: number;
  readonly inFlight: number;
  readonly rpc: string;
  /** Those that were answered OK. */
  readonly calls: number;
  readonly failed: number;
  readonly firstError?: string;
  readonly p50Ms: number;
  readonly perSecond: number;
  /** Router commands: exec requests. */
  readonly commands: number;
  /** Bytes that the router has printed. */
  readonly bytes: number;
  /** Processor time of the driver, in milliseconds. */
  readonly processorMs: number;
}

/** The costs of one RPC under the same conditions: of this driver, and of the other one where it was measured. */
interface Pair {
  readonly ours: VersusRow;
  readonly other: VersusRow | undefined;
}

function pairsOf(rows: readonly VersusRow[]): Pair[] {
  const keyOf = ({ delays, disks, inFlight, rpc }: VersusRow) => `${delays} ${disks} ${inFlight} ${rpc}`;
  const others = new Map(rows.filter(({ driver }) => driver === "other").map((row) => [keyOf(row), row]));
  return rows.filter(({ driver }) => driver === "ours")
    .map((ours) => ({ ours, other: others.get(keyOf(ours)) }));
}

/** How many times of the other driver's this driver's cost is; undefined where either has none. */
export function ratioOf({ ours, other }: Pair, cost: "p50Ms" | "processorMs"): number | undefined {
  const ratio = other === undefined ? NaN : ours[cost] / other[cost];
  return Number.isFinite(ratio) ? ratio : undefined;
}

const columns = [
  "call",
  "delays",
  "disks",
  "in flight",
  "commands",
  "bytes",
  "p50 ms",
  "ratio",
  "a second",
  "CPU ms",
  "CPU ratio",
] as const;

/** The rows as a Markdown table, each cell "ours / other". */
export function table(rows: readonly VersusRow[]): string {
  const lines = pairsOf(rows).map((pair) => {
    const { ours, other } = pair;
    const both = (write: (row: VersusRow) => string) =>
      [ours, other].flatMap((row) => row ? [write(row)] : []).join(" / ");
    return [
      ours.rpc,
      ours.delays,
      String(ours.disks),
      String(ours.inFlight),
      both((row) => fixed(row.commands, 1)),
      both((row) => fixed(row.bytes, 0)),
      both((row) => fixed(row.p50Ms, 1) + (row.failed > 0 ? ` (${row.failed} failed)` : "")),
      fixed(ratioOf(pair, "p50Ms"), 2),
      both((row) => fixed(row.perSecond, 0)),
      both((row) => fixed(row.processorMs, 1)),
      fixed(ratioOf(pair, "processorMs"), 2),
    ];
  });
  const header = [columns, columns.map(() => "---")];
  return [...header, ...lines].map((cells) => `| ${cells.join(" | ")} |\n`).join("");
}

function fixed(value: number | undefined, digits: number): string {
  return value === undefined || !Number.isFinite(value) ? "-" : value.toFixed(digits);
}

const [labelWidth, barWidth, lineHeight, maxRatio] = [420, 360, 18, 4];

/** How many times of the other driver's time each call takes, as bars; the line is where both take the same. */
export function chart(rows: readonly VersusRow[]): string {
  const bars = pairsOf(rows).flatMap((pair) => {
    const ratio = ratioOf(pair, "p50Ms");
    return ratio === undefined ? [] : [{ ratio, label: labelOf(pair.ours) }];
  });
  const [width, height] = [labelWidth + barWidth + 60, (bars.length + 2) * lineHeight];
  const xOf = (ratio: number) => labelWidth + Math.min(ratio, maxRatio) * barWidth / maxRatio;
  const drawn = bars.map(({ ratio, label }, index) => {
    const y = (index + 1) * lineHeight;
    const colour = ratio <= 1 ? "#2e7d32" : "#c62828";
    return `<text x="${labelWidth - 8}" y="${y + 12}" text-anchor="end">${label}</text>` +
      `<rect x="${labelWidth}" y="${y + 2}" width="${
        (xOf(ratio) - labelWidth).toFixed(1)
      }" height="12" fill="${colour}"/>` +
      `<text x="${(xOf(ratio) + 6).toFixed(1)}" y="${y + 12}">${ratio.toFixed(2)}</text>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    `<title>Median time of each call, as a multiple of the other driver's</title>`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...drawn,
    `<line x1="${xOf(1)}" y1="8" x2="${xOf(1)}" y2="${height - 8}" stroke="#333" stroke-dasharray="4 3"/>`,
    "</svg>\n",
  ].join("\n");
}

function labelOf({ rpc, delays, disks, inFlight }: VersusRow): string {
  const delayed = delays === "none" ? "" : `, delays per ${delays}`;
  return `${rpc}: ${disks} disks, ${inFlight} in flight${delayed}`;
}
