import type { FenceMemory, Here, PublishedTarget, StagingState } from "./state.ts";

/** What is here, with that target published, replacing an earlier entry. */
export function withPublished(here: Here, target: PublishedTarget): Here {
  return { ...here, published: [...withoutPublished(here, target.targetPath).published, target] };
}

/** What is here, without that target. */
export function withoutPublished(here: Here, targetPath: string): Here {
  return { ...here, published: here.published.filter((other) => other.targetPath !== targetPath) };
}

/** What is here, with that memory of missed reads, or with none. */
export function withMissed({ missed: _missed, ...here }: Here, memory: FenceMemory | undefined): Here {
  return memory === undefined ? here : { ...here, missed: memory };
}

/** Where a volume is published, as recorded. */
export function targetsOf({ here: { published } }: StagingState): readonly string[] {
  return published.map(({ targetPath }) => targetPath);
}

/** Where a volume is staged and published, as recorded. */
export function placesOf(stagingState: StagingState): readonly string[] {
  return [stagingState.intent.stagingPath, ...targetsOf(stagingState)];
}

/** Returns the device numbers that are recorded for a volume. */
export function recordedNumbers({ device, mountedAs }: Here): readonly string[] {
  return [device?.deviceNumber, mountedAs].filter((number) => number !== undefined);
}
