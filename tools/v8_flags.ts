/**
 * The V8 flags that the executable carries. A process's memory is mostly V8's young generation, what was never collected,
 * and what the compiler's threads leave in malloc's arenas: 1 MiB semi-spaces and compiling in the main thread cost no
 * speed here. With 64 MiB of old space a controller of a cluster with 5,000 volumes ran out of memory; 96 cost an idle
 * process nothing.
 */
export const v8Flags: readonly string[] = [
  "--max-old-space-size=96",
  "--max-semi-space-size=1",
  "--no-concurrent-recompilation",
];
