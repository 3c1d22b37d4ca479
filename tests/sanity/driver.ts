import { join } from "node:path";
import { freePort, type Part, startPart, type Subject } from "../support/parts.ts";

/** A simulated router and the whole driver for it, as separate processes. */
export class DriverUnderTest {
  readonly endpoint: string;
  readonly #control: string;
  readonly #parts: Part[] = [];

  private constructor(folder: string, control: string) {
    this.endpoint = `unix://${join(folder, "csi.sock")}`;
    this.#control = control;
  }

  /** Starts both in `folder`; after a failure neither is running. */
  static async start(subject: Subject, folder: string, signal: AbortSignal): Promise<DriverUnderTest> {
    const [sshPort, controlPort] = [freePort(), freePort()];
    const driver = new DriverUnderTest(folder, `http://127.0.0.1:${controlPort}`);
    try {
      await driver.#startSimulator(subject, folder, sshPort, controlPort, signal);
      await driver.#startDriver(subject, folder, sshPort, signal);
      return driver;
    } catch (error) {
      await driver.stop();
      throw error;
    }
  }

  async #startSimulator(subject: Subject, folder: string, ssh: number, control: number, signal: AbortSignal) {
    const part = startPart(subject, "simulator", folder, [
      ...["--ssh-port", `${ssh}`, "--control-port", `${control}`, "--backing", join(folder, "router")],
      ...["--exporter", "loop", "--timing-scale", "0", "--user", "csi", "--password", "sanity"],
    ]);
    this.#parts.push(part);
    await part.ready(async () => (await this.#get("/state")) !== undefined, 50, signal);
  }

  async #startDriver(subject: Subject, folder: string, sshPort: number, signal: AbortSignal) {
    const passwordFile = join(folder, "password");
    await Deno.writeTextFile(passwordFile, "sanity\n", { mode: 0o600 });
    const socket = join(folder, "csi.sock");
    const part = startPart(subject, "serve", folder, [
      ...["--mode", "all", "--endpoint", `unix://${socket}`, "--node-id", "node-1"],
      ...["--rds-address", "127.0.0.1", "--rds-port", `${sshPort}`, "--rds-user", "csi"],
      // The simulator makes a host key of its own at every start.
      ...["--rds-password-file", passwordFile, "--rds-insecure-skip-verify"],
      ...["--base-path", "/storage-pool/metal-csi", "--nvme-address", "127.0.0.1", "--cluster-id", "sanity"],
      ...["--connector", "loop", "--loop-backing", join(folder, "router")],
      ...["--state-dir", join(folder, "state"), "--unexport-grace", "0s"],
      ...["--metrics-address", "127.0.0.1:0"],
    ]);
    this.#parts.push(part);
    await part.ready(() => isSocket(socket), 50, signal);
  }

  /** Returns the rules that the driver broke. */
  async violations(): Promise<readonly unknown[]> {
    const answer = await this.#get("/violations");
    const list = Array.isArray(answer)
      ? answer
      : (answer as { violations?: unknown } | undefined)?.violations;
    if (!Array.isArray(list)) throw new Error(`GET /violations answered ${JSON.stringify(answer)}`);
    return list;
  }

  /** Stops the driver, then the simulator. Returns the problems of their ends. */
  async stop(): Promise<readonly string[]> {
    const problems: string[] = [];
    for (const part of this.#parts.reverse()) problems.push(...await part.stop());
    return problems;
  }

  async #get(path: string): Promise<unknown> {
    try {
      const response = await fetch(this.#control + path, { signal: AbortSignal.timeout(5_000) });
      return response.ok ? await response.json() : undefined;
    } catch (error) {
      if (error instanceof TypeError) return undefined; // Nobody listens yet.
      throw error;
    }
  }
}

async function isSocket(path: string): Promise<boolean> {
  try {
    return (await Deno.lstat(path)).isSocket === true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
