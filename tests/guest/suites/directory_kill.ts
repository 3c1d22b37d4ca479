import { isLong } from "../../support/long.ts";
import { poolFolder, startNfsServer } from "../kit/nfs_server.ts";
import type { Suite } from "../kit/suite.ts";

const limitMinutes = isLong ? 60 : 15;

/**
 * kill -9 of the node of shared directories between any two of its steps; with GUEST_ONLY, a regular expression, some
 * kills of all.
 */
export const suite: Suite = {
  what: "kill -9 of the node of shared directories at boundaries between its steps: mounts are counted right",
  limitMinutes,
  run: async (bench) => {
    const limitSeconds = limitMinutes * 60;
    const guest = await bench.guest({
      memoryMiB: 2048,
      // With the client's module, which else the first publish would load.
      modules: ["nfsd", "nfsv4"],
      disks: [{ name: "pool", sizeBytes: 1 << 30 }],
      limitSeconds,
    });
    await startNfsServer(guest, guest.disk("pool"));
    const text = [isLong ? "whole" : "drawn", `${bench.seed()}`, Deno.env.get("GUEST_ONLY") ?? ""];
    const location = [guest.address, poolFolder, "/pool"];
    const file = new URL("directory/kill_inside.ts", import.meta.url);
    await bench.inside(guest, file, [...text, ...location], limitSeconds);
  },
};
