import type { GuestOptions } from "../kit/guest.ts";
import type { Suite } from "../kit/suite.ts";
import { isLong } from "../../support/long.ts";

const all = ["reboots", "refusals", "absences", ...(isLong ? ["fences"] : [])];
const tests = new URL("device_layer_inside.ts", import.meta.url);

/**
 * That volumes with a device layer outlast a router's reboot on one kind of node; with GUEST_ONLY, a regular expression,
 * some tests of all.
 */
function layerSuite(where: string, groups: readonly string[], options: GuestOptions): Suite {
  return {
    what:
      `writers behind a device layer outlast a router's reboot, and fenced ones never write again: ${where}`,
    limitMinutes: isLong ? 40 : 15,
    run: async (bench) => {
      const guest = await bench.guest({ memoryMiB: 2048, ...options });
      await bench.inside(guest, tests, [Deno.env.get("GUEST_ONLY") ?? "", ...groups], isLong ? 2_300 : 800);
    },
  };
}

/** Kernels that give a connection up at the first refusal. */
export const suite = layerSuite("newer kernels", all, { kernel: "backports" });

/** Kernels that go on asking. */
export const stableSuite = layerSuite("older kernels", all, { kernel: "stable" });

/** Nodes whose kernel does not join the paths to a volume by itself. */
export const singlePathSuite = layerSuite(
  "without native multipath",
  isLong ? all : ["reboots"],
  { multipath: false },
);

/** The same of newer ones. */
export const newerSinglePathSuite = layerSuite(
  "newer kernels without native multipath",
  isLong ? all : ["reboots"],
  { kernel: "backports", multipath: false },
);
