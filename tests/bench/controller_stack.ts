// The controller on a simulated router of its own, both processes.
import { join } from "node:path";
import { dial } from "../../src/csi/server/client.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { systemClock } from "../../src/host/clock.ts";
import { generateHostKey } from "../../src/simulator/ssh/host_key.ts";
import { freePort, startPart, type Subject } from "../support/parts.ts";
import { type RpcBench, type RpcSamples, sampleRpcs } from "./rpc.ts";
import { growsLive, isReady, metersOf } from "./stack.ts";

/** A controller and its router. */
export interface ControllerStack extends AsyncDisposable {
  /** Takes volumes through their lives, and says what each call cost. */
  sample(
    bench: Pick<RpcBench, "inFlight" | "volumes"> & Required<Pick<RpcBench, "rpcs">>,
  ): Promise<RpcSamples[]>;
}

/**
 * Starts a controller on a router.
 *
 * @param disks how many disks there are, of 1 GiB, on a pool of 100 TiB
 * @throws {Error} when one of the processes does not serve
 */
export async function startController(subject: Subject, disks: number): Promise<ControllerStack> {
  const made = new AsyncDisposableStack();
  try {
    const folder = await Deno.makeTempDir({ prefix: "rds-csi-bench-" });
    made.defer(() => Deno.remove(folder, { recursive: true }));
    const { privatePem, publicLine } = generateHostKey();
    const key = join(folder, "key");
    await Deno.writeTextFile(key, privatePem, { mode: 0o600 });
    await Deno.writeTextFile(`${key}.pub`, `${publicLine}\n`);
    const [sshPort, controlPort] = [freePort(), freePort()];
    const simulator = startPart("sources", "simulator", folder, [
      ...["--ssh-port", String(sshPort), "--control-port", String(controlPort), "--user", "csi"],
      ...["--authorized-key", `${key}.pub`, "--pool", "storage-pool:100T:btrfs"],
      ...["--timing-scale", "0", "--seed-disks", String(disks)],
      ...growsLive.simulator,
    ]);
    made.defer(async () => void await simulator.stop());
    const control = `http://127.0.0.1:${controlPort}`;
    const isUp = async () => (await fetch(`${control}/health`).catch(() => undefined))?.ok ?? false;
    await simulator.ready(isUp);
    const address = `unix://${folder}/csi.sock`;
    const driver = startPart(subject, "serve", folder, [
      ...serveArgs(folder, address, key, sshPort),
      ...await growsLive.driver(folder),
    ]);
    made.defer(async () => void await driver.stop());
    await driver.ready(() => isReady(address));
    const clients = dial(loadCsi(), address, systemClock);
    made.defer(() => clients.close());
    const kept = made.move();
    return {
      sample: (bench) =>
        sampleRpcs({
          ...bench,
          clients,
          nodeId: "bench-node",
          nodeFolder: undefined,
          nameOf: () => `pvc-${crypto.randomUUID()}`,
          meters: () => metersOf(`${control}/count`),
        }),
      [Symbol.asyncDispose]: () => kept.disposeAsync(),
    };
  } catch (error) {
    await made.disposeAsync();
    throw error;
  }
}

function serveArgs(folder: string, address: string, key: string, sshPort: number): string[] {
  return [
    ...["--mode", "controller", "--endpoint", address, "--known-node", "bench-node", "--cluster-id", "bench"],
    ...["--rds-address", "127.0.0.1", "--rds-port", String(sshPort), "--rds-user", "csi"],
    ...["--rds-key-file", key, "--rds-insecure-skip-verify", "--state-dir", join(folder, "state")],
    ...["--unexport-grace", "0s", "--metrics-address", "127.0.0.1:0"],
  ];
}
