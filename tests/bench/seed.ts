import type { Subject } from "../support/parts.ts";
import { percentile } from "./rpc.ts";
import { type Sample, withController } from "./controller_stack.ts";

/** How fast an empty router fills, 16 creates in flight. */
export interface SeedMeasurements {
  readonly volumes: number;
  /** Volumes a second in the first and in the last thousand: the medians of ten hundreds each. */
  readonly first: number;
  readonly last: number;
}

/**
 * Creates volumes on an empty router. A hundred others are created and deleted before: what is measured is a controller that
 * serves for months, not one that still compiles.
 *
 * @param volumes how many, in thousands, and at least 2,000
 * @throws {Error} when one is not created
 */
export async function measureSeed(subject: Subject, volumes: number): Promise<SeedMeasurements> {
  return await withController(subject, 0, async (sample) => {
    await takeThrough(sample, ["CreateVolume", "DeleteVolume"], 100);
    const first = await createThousand(sample);
    if (volumes > 2000) await takeThrough(sample, ["CreateVolume"], volumes - 2000);
    return { volumes, first, last: await createThousand(sample) };
  });
}

/** Returns how many a second. */
async function createThousand(sample: Sample): Promise<number> {
  const rates: number[] = [];
  for (let number = 0; number < 10; number++) {
    rates.push(100_000 / await takeThrough(sample, ["CreateVolume"], 100));
  }
  // Another program slows some of them, not all.
  return percentile(rates, 0.5);
}

/** Returns how long it took, in milliseconds. */
async function takeThrough(
  sample: Sample,
  rpcs: readonly string[],
  volumes: number,
): Promise<number> {
  const samples = await sample({ rpcs, inFlight: 16, volumes });
  return samples.reduce((sum, { wallMs }) => sum + wallMs, 0);
}
