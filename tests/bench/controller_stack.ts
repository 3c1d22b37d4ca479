// The controller on a simulated router of its own, both processes.
import { dial } from "../../src/csi/server/client.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { systemClock } from "../../src/host/clock.ts";
import type { Subject } from "../support/parts.ts";
import { type RpcBench, type RpcSamples, sampleRpcs } from "./rpc.ts";
import { withStack } from "./stack.ts";

/** Takes volumes through their lives, and says what each call cost. */
export type Sample = (bench: Pick<RpcBench, "inFlight" | "volumes" | "rpcs">) => Promise<RpcSamples[]>;

/**
 * Lets `work` use a controller.
 *
 * @param disks how many disks its router has, of 1 GiB, on a pool of 100 TiB
 * @throws {Error} when one of the processes does not serve
 */
export async function withController<Result>(
  subject: Subject,
  disks: number,
  work: (sample: Sample) => Promise<Result>,
): Promise<Result> {
  const router = ["--pool", "storage-pool:100T:btrfs", "--seed-disks", String(disks)];
  return await withStack(subject, { mode: "controller", router }, async ({ address, meters }) => {
    const clients = dial(loadCsi(), address, systemClock);
    try {
      return await work((bench) => sampleRpcs({ ...bench, clients, nodeId: "bench-node", meters }));
    } finally {
      clients.close();
    }
  });
}
