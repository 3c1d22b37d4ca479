/**
 * The V8 flags of the executable. A process's memory is mostly V8's young generation, uncollected garbage, and the
 * malloc arenas of the compiler's threads: 1 MiB semi-spaces and compiling in the main thread cost no speed here.
 * Marking at once, not in steps, keeps the heap from growing meanwhile: 20 MB less at 10,000 volumes. With 160 MiB of
 * old space a controller of 20,000 volumes takes 224 MB of the 384 MiB that the chart gives it; with 88 MiB it ran out
 * of memory.
 */
export const v8Flags: readonly string[] = [
  "--max-old-space-size=160",
  "--no-incremental-marking",
  "--max-semi-space-size=1",
  "--no-concurrent-recompilation",
];
