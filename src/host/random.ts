import type { Random } from "../volume/ports/system.ts";

/** The machine's randomness. */
export const systemRandom: Random = {
  bytes: (count) => crypto.getRandomValues(new Uint8Array(count)),
  fraction: () => crypto.getRandomValues(new Uint32Array(1))[0]! / 2 ** 32,
};
