/**
 * The V8 flags that the executable carries. A process's memory is mostly V8's young generation, what was never collected,
 * and what the compiler's threads leave in malloc's arenas: 1 MiB semi-spaces and compiling in the main thread cost no
 * speed here. Marking at once, not in steps, keeps the heap from growing meanwhile: 20 MB less at 10,000 volumes. With 160
 * MiB of old space a controller of 20,000 volumes takes 235 MB of the 256 MiB that the chart gives it; with 88 it died.
 */
export const v8Flags: readonly string[] = [
  "--max-old-space-size=160",
  "--no-incremental-marking",
  "--max-semi-space-size=1",
  "--no-concurrent-recompilation",
];
