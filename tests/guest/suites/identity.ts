import type { Suite } from "../kit/suite.ts";
import { isLong } from "../../support/long.ts";

const tests = new URL("identity_inside.ts", import.meta.url);

/** That nothing but the volume itself is ever touched, and nothing formatted that may hold data. */
export const suite: Suite = {
  what: "no call touches another volume under the same name or number; nothing is formatted on a doubt",
  limitMinutes: 15,
  run: async (bench) => {
    const guest = await bench.guest({ memoryMiB: 2048 });
    const groups = ["names", "reads", "sizes", "contents", "reboots"];
    // To catch mkfs in the middle takes a device so slow that it takes minutes.
    await bench.inside(guest, tests, isLong ? [...groups, "mkfs"] : groups);
  },
};
