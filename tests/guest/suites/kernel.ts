import type { Suite } from "../kit/suite.ts";

const tests = new URL("kernel_inside.ts", import.meta.url);

/** What the kernel does to connections, devices and exports, and what the node service makes of it. */
export const suite: Suite = {
  what:
    "everything that the kernel's initiator and a target can do to a volume, and what the driver guarantees then",
  limitMinutes: 15,
  run: async (bench) => {
    const joined = await bench.guest({ memoryMiB: 2048, multipath: true });
    await bench.inside(
      joined,
      tests,
      "connection use loss size namespace withdrawal offer path fence digest host".split(" "),
    );
    await joined.end();
    const apart = await bench.guest({ memoryMiB: 2048, multipath: false });
    await bench.inside(apart, tests, ["loss", "namespace", "withdrawal", "path"]);
    await apart.end();
    // It gives a connection up at the first refusal.
    const newer = await bench.guest({ memoryMiB: 2048, kernel: "backports" });
    await bench.inside(newer, tests, ["fence"]);
  },
};

/** What takes too long for every change. */
export const longSuite: Suite = {
  what: "file systems that are frozen on mapped devices",
  limitMinutes: 40,
  run: async (bench) => {
    for (const kernel of ["stable", "backports"] as const) {
      const guest = await bench.guest({ memoryMiB: 2048, kernel });
      await bench.inside(guest, tests, ["frozen"]);
      await guest.end();
    }
  },
};
