import type { Suite } from "../kit/suite.ts";

const tests = new URL("identity_inside.ts", import.meta.url);

/** That nothing but the volume itself is ever touched, and nothing formatted that may hold data. */
export const suite: Suite = {
  what: "no call touches another volume under the same name or number; nothing is formatted on a doubt",
  limitMinutes: 15,
  run: async (bench) => {
    const guest = await bench.guest({ memoryMiB: 2048 });
    await bench.inside(guest, tests, ["names", "reads", "sizes", "contents", "mkfs"]);
  },
};
