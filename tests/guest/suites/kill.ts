import type { Suite } from "../kit/suite.ts";
import { isLong } from "../../support/long.ts";

/** Longest that everything takes, in minutes. */
const wholeMinutes = 180;
const drawnMinutes = 15;
/** Deriving a key takes seconds in emulation. */
const drawnEncryptedMinutes = 40;

/** kill -9 of the node between any two of its steps; with GUEST_ONLY, a regular expression, some kills of all. */
export const suite = killSuite(
  "kill -9 of the node at boundaries between its steps: the next one gets there, and data is intact",
);

/**
 * The same of volumes that are used by a map. Kernels that give a connection up at the first refusal take a step of the
 * fence away, or leave it, as they please.
 */
export const layerSuite = killSuite(
  "kill -9 of the node at boundaries between its steps, with a device layer under each volume",
  { deviceLayer: "multipath" },
);

/** The same of encrypted volumes. A guess of the passphrase costs little, because emulation makes it slow. */
export const encryptedSuite = killSuite(
  "kill -9 of the node at boundaries between its steps, on encrypted volumes",
  { encrypted: "true", pbkdfMemory: "32", pbkdfTime: "100" },
  drawnEncryptedMinutes,
);

function killSuite(
  what: string,
  parameters: Readonly<Record<string, string>> = {},
  drawn = drawnMinutes,
): Suite {
  const minutes = isLong ? wholeMinutes : drawn;
  return {
    what,
    limitMinutes: minutes,
    run: async (bench) => {
      const guest = await bench.guest({
        memoryMiB: 2048,
        disks: [{ name: "pool", sizeBytes: 8 * 2 ** 30 }],
        limitSeconds: minutes * 60,
      });
      await guest.sh("mkfs.ext4 -q $disk && mkdir -p /srv && mount $disk /srv", {
        env: { disk: guest.disk("pool") },
      });
      const size = isLong ? "whole" : "drawn";
      const text = [size, `${bench.seed()}`, Deno.env.get("GUEST_ONLY") ?? "", JSON.stringify(parameters)];
      await bench.inside(guest, new URL("kill_inside.ts", import.meta.url), text, minutes * 60);
    },
  };
}
