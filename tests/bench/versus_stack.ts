// A driver on a simulated router of its own, both processes, for comparing two drivers.
import { join } from "node:path";
import { type CsiClients, dial } from "../../src/csi/server/client.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { systemClock } from "../../src/host/clock.ts";
import { generateHostKey } from "../../src/simulator/ssh/host_key.ts";
import { freePort, type Part, startPart, startProgram, type Subject } from "../support/parts.ts";
import { type RpcBench, type RpcSamples, sampleRpcs } from "./rpc.ts";
import { growsLive, isReady, metersOf } from "./stack.ts";

/** A driver that is compared. */
export interface VersusStack extends AsyncDisposable {
  readonly name: "ours" | "other";
  /** Takes volumes through their lives, and says what each call cost. */
  sample(
    bench: Pick<RpcBench, "inFlight" | "volumes"> & Required<Pick<RpcBench, "rpcs" | "parameters">>,
  ): Promise<RpcSamples[]>;
  /** Delays every exec of the router from now on. */
  delayExecs(ms: number): Promise<void>;
}

/**
 * Starts this driver, or the other one by its command.
 *
 * @param disks how many disks there are, of 1 GiB, on a pool of 100 TiB
 * @param filesystem of the pool
 * @throws {Error} when one of the processes does not serve
 */
export async function startVersus(
  subject: Subject | readonly string[],
  timingScale: number,
  disks: number,
  filesystem: "btrfs" | "xfs" = "btrfs",
): Promise<VersusStack> {
  const made = new AsyncDisposableStack();
  try {
    const folder = await Deno.makeTempDir({ prefix: "rds-csi-versus-" });
    made.defer(() => Deno.remove(folder, { recursive: true }));
    const { privatePem, publicLine } = generateHostKey();
    const key = join(folder, "key");
    await Deno.writeTextFile(key, privatePem, { mode: 0o600 });
    await Deno.writeTextFile(`${key}.pub`, `${publicLine}\n`);
    const [sshPort, controlPort] = [freePort(), freePort()];
    const simulator = startPart("sources", "simulator", folder, [
      ...["--ssh-port", String(sshPort), "--control-port", String(controlPort), "--user", "csi"],
      // The other driver's slots have 40 characters.
      ...[
        "--authorized-key",
        `${key}.pub`,
        "--behaviour",
        "maxSlot=64",
        "--pool",
        `storage-pool:100T:${filesystem}`,
      ],
      ...["--timing-scale", String(timingScale), "--seed-disks", String(disks)],
      ...growsLive.simulator,
    ]);
    made.defer(async () => void await simulator.stop());
    const control = `http://127.0.0.1:${controlPort}`;
    const isUp = async () => (await fetch(`${control}/health`).catch(() => undefined))?.ok ?? false;
    await simulator.ready(isUp);
    const address = `unix://${folder}/csi.sock`;
    const isOther = typeof subject !== "string";
    const driver = isOther
      ? startProgram("other", subject.map((word) => filled(word, { address, key, sshPort })), folder, [])
      : startPart(subject, "serve", folder, [
        ...serveArgs(folder, address, key, sshPort),
        ...await growsLive.driver(folder),
      ]);
    made.defer(async () => void await driver.stop());
    await driver.ready(() => isReady(address));
    const clients = dial(loadCsi(), address, systemClock);
    made.defer(() => clients.close());
    return running(isOther ? "other" : "ours", made.move(), { clients, control, driver });
  } catch (error) {
    await made.disposeAsync();
    throw error;
  }
}

interface Parts {
  readonly clients: CsiClients;
  readonly control: string;
  readonly driver: Part;
}

function running(
  name: VersusStack["name"],
  made: AsyncDisposableStack,
  { clients, control, driver }: Parts,
): VersusStack {
  return {
    name,
    sample: (bench) =>
      sampleRpcs({
        ...bench,
        clients,
        nodeId: "bench-node",
        nodeFolder: undefined,
        nameOf: () => `pvc-${crypto.randomUUID()}`,
        mayFail: true,
        meters: () => metersOf(`${control}/count`, driver),
      }),
    async delayExecs(ms) {
      const fault = { match: "", times: "always", action: "delay", value: ms };
      const answer = await fetch(`${control}/faults`, { method: "POST", body: JSON.stringify(fault) });
      if (!answer.ok) throw new Error(`the simulator refuses the delay: ${await answer.text()}`);
      await answer.body?.cancel();
    },
    [Symbol.asyncDispose]: () => made.disposeAsync(),
  };
}

function filled(
  word: string,
  { address, key, sshPort }: { address: string; key: string; sshPort: number },
): string {
  return word.replaceAll("{address}", address).replaceAll("{key}", key).replaceAll("{port}", String(sshPort))
    .replaceAll("{free}", () => String(freePort()));
}

function serveArgs(folder: string, address: string, key: string, sshPort: number): string[] {
  return [
    ...["--mode", "controller", "--endpoint", address, "--known-node", "bench-node", "--cluster-id", "bench"],
    ...["--rds-address", "127.0.0.1", "--rds-port", String(sshPort), "--rds-user", "csi"],
    ...["--rds-key-file", key, "--rds-insecure-skip-verify", "--state-dir", join(folder, "state")],
    ...["--unexport-grace", "0s", "--metrics-address", "127.0.0.1:0"],
  ];
}
