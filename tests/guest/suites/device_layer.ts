import type { Suite } from "../kit/suite.ts";

const tests = new URL("device_layer_inside.ts", import.meta.url);

/** That volumes with a device layer outlast a router's reboot, on kernels that keep a refused connection and that do not. */
export const suite: Suite = {
  what:
    "writers behind a device layer wait for a router that reboots, and lose nothing; fenced ones never write again",
  limitMinutes: 20,
  run: async (bench) => {
    for (const options of [{ kernel: "stable" }, { kernel: "backports" }, { multipath: false }] as const) {
      const guest = await bench.guest({ memoryMiB: 2048, ...options });
      const groups = "multipath" in options ? ["reboots"] : ["reboots", "refusals"];
      await bench.inside(guest, tests, groups);
      await guest.end();
    }
  },
};
