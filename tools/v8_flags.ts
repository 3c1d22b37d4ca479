/**
 * The V8 flags that the executable carries. A process's memory is mostly V8's young generation, what was never collected,
 * and what the compiler's threads leave in malloc's arenas: 1 MiB semi-spaces and compiling in the main thread cost no
 * speed here. With 72 MiB of old space a controller of a cluster with 5,000 volumes ran out of memory from the sources,
 * and with 96 it took more than the 180 MB that it may.
 */
export const v8Flags: readonly string[] = [
  "--max-old-space-size=88",
  "--max-semi-space-size=1",
  "--no-concurrent-recompilation",
];
