// Shared by the test of the doctor's fixes: a router with something wrong, a person at its console, and the doctor.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { examine } from "../../src/cli/doctor/doctor.ts";
import { readDoctorOptions } from "../../src/cli/doctor/options.ts";
import { systemClock } from "../../src/host/clock.ts";
import { type Network, type Reach, systemNetwork } from "../../src/host/network.ts";
import { systemRandom } from "../../src/host/random.ts";
import type { Finding } from "../../src/volume/model/finding.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "../../src/simulator/simulator.ts";
import { routerHostKey } from "../fakes/ssh_keys.ts";
import { makeScratch } from "../support/scratch.ts";

/** The name of the driver's user on the router. */
export const user = "rds-csi";
/** The password of every user in these tests. */
export const password = "a test's password";
/** The address of a node. */
export const node = "10.1.2.3";

/** Flags of the doctor; a value of undefined leaves the flag out. */
export type Flags = Readonly<Record<string, string | undefined>>;

/** A router with something wrong, and a person at its console. */
export interface Scene {
  readonly router: Simulator;
  /** The folder for files with credentials, where a test needs some. */
  readonly folder: string;
  readonly flags: Flags;
  /** Types a command at the console, and fails when the router refuses it. */
  type(command: string): Promise<string>;
  control(request: string, body: unknown): Promise<void>;
  /** How this machine reaches the port of the data. @default {as the firewall's rules say for a node} */
  reachData?: () => Promise<Reach>;
  /** What the doctor finds. */
  findings(flags?: Flags): Promise<readonly Finding[]>;
  /** The finding of a check that is not all right; one fault is put right in one way. */
  complaint(check: string, flags?: Flags): Promise<Finding | undefined>;
}

/** The menus that a test compares. Sizes that change with time are left out. */
const menus = [
  "disk",
  "user",
  "user/group",
  "user/ssh-keys",
  "ip/service",
  "ip/firewall/filter",
  "ipv6/firewall/filter",
  "system/package",
];

/** The router's whole configuration, one item a line. */
export async function configuration(scene: Scene): Promise<readonly string[]> {
  const lines: string[] = [];
  for (const menu of [...menus, "file"]) {
    const keys = menu === "file" ? " proplist=name,type" : "";
    const printed = await scene.type(
      `:put [:serialize to=json options=json.no-string-conversion value=[/${menu}/print detail as-value${keys}]]`,
    );
    for (const row of JSON.parse(printed)) {
      lines.push(`${menu} ${JSON.stringify({ ...row, ".id": undefined })}`);
    }
  }
  return lines;
}

/** The lines that were removed, and those that were added. */
export function differences(before: readonly string[], after: readonly string[]): readonly string[] {
  return [
    ...before.filter((line) => !after.includes(line)).map((line) => `- ${line}`),
    ...after.filter((line) => !before.includes(line)).map((line) => `+ ${line}`),
  ];
}

/** A network in which the router's services and firewall rules decide what a node can reach. */
function networkOf(scene: () => Scene): Network {
  const real = systemNetwork(systemClock);
  const rows = async (menu: string): Promise<readonly Record<string, string>[]> =>
    JSON.parse(await scene().type(`:put [:serialize to=json value=[/${menu}/print detail as-value]]`));
  return {
    resolve: (name) => real.resolve(name),
    async reach(address, port, timeoutMs): Promise<Reach> {
      const { reachData } = scene();
      if (port === 4420 && reachData !== undefined) return await reachData();
      const isSsh = port === scene().router.sshPort;
      const named = isSsh ? "22" : String(port);
      const rule = (await rows("ip/firewall/filter")).find((one) =>
        String(one["dst-port"]) === named && (one["src-address"] === undefined || one["src-address"] === node)
      );
      if (rule?.["action"] === "drop") return { state: "silent", reason: "no answer" };
      const [service] = await rows("ip/service");
      if (isSsh && service!["disabled"]) return { state: "refused", reason: "ECONNREFUSED" };
      return port === 4420 && address === "127.0.0.1"
        ? { state: "open", ms: 1 }
        : await real.reach(address, port, timeoutMs);
    },
  };
}

/** Prepares a scene, and removes it after the test. */
export async function withScene(
  options: Partial<SimulatorOptions>,
  work: (scene: Scene) => Promise<void>,
): Promise<void> {
  await using scratch = await makeScratch();
  const folder = scratch.path;
  await using router = await startSimulator({
    timingScale: 0,
    hostKey: routerHostKey.privatePem,
    users: [{ name: user, password }, { name: "admin", password }],
    ...options,
  });
  await Deno.writeTextFile(`${folder}/password`, password);
  const flags = {
    "rds-address": "127.0.0.1",
    "rds-port": String(router.sshPort),
    "rds-user": user,
    "rds-password-file": `${folder}/password`,
    "rds-host-key": router.hostKeyPublic,
    "cluster-id": "test",
    "nvme-port": "4420",
  };
  const scene: Scene = {
    router,
    folder,
    flags,
    async type(command) {
      const { output, refusal } = await control<{ output: string; refusal: string | null }>(
        router,
        "POST /console",
        { command },
      );
      assert.equal(refusal, null, command);
      return output;
    },
    control: async (request, body) => void await control(router, request, body),
    findings: (own = {}) => doctor({ ...flags, ...own }, networkOf(() => scene)),
    complaint: async (check, own = {}) => {
      const findings = await scene.findings(own);
      const problems = findings.filter(({ state }) => state === "problem").map(({ fix }) => fix);
      assert.ok(new Set(problems.map((fix) => fix?.split("; ")[0])).size <= 1, problems.join("\n"));
      return findings.find((finding) => finding.check === check && finding.state !== "ok");
    },
  };
  await work(scene);
}

async function doctor(flags: Flags, network: Network): Promise<readonly Finding[]> {
  const args = Object.entries(flags).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}=${value}`]
  );
  const router = readDoctorOptions([...args, "--json"], () => undefined, Deno.readTextFileSync);
  const printed: string[] = [];
  const io = {
    out: (line: string) => void printed.push(line),
    err: () => {},
    env: () => undefined,
    signal: new AbortController().signal,
  };
  const adapters = {
    clock: systemClock,
    random: systemRandom,
    network,
    readText: (path: string) => Deno.readTextFile(path),
  };
  const halves = { json: true, router, named: [], node: undefined };
  await examine(halves, { router: adapters, node: () => assert.fail("no node here") }, io);
  return JSON.parse(printed.join("\n"));
}
