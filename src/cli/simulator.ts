import { type FlagTable, type FlagValues, readFlags } from "./flags.ts";
import { type Behaviours, parseBehaviours } from "../simulator/behaviours.ts";
import { exporterKinds } from "../simulator/model/exporters.ts";
import { readSize } from "../simulator/menu/inputs.ts";
import type { PoolOptions } from "../simulator/model/router.ts";
import { parsePlayed, type Profile, profiles } from "../simulator/profile.ts";
import { type SimulatorOptions, startSimulator } from "../simulator/simulator.ts";
import { describeDifferences, replayReport } from "../simulator/replay/replay.ts";
import type { User } from "../simulator/ssh/users.ts";
import { systemClock } from "../host/clock.ts";
import { systemRandom } from "../host/random.ts";
import { parseReport } from "../router_profile/report/report.ts";
import { counted } from "../volume/model/counted.ts";
import { messageAbout, messageOf } from "../volume/error_messages.ts";
import { aborted, type CommandIo, exitCodes } from "./io.ts";

const loopback = "127.0.0.1";

/** Flags of `rds-csi simulator`. */
export const simulatorFlags: FlagTable = {
  "ssh-port": {
    form: "integer",
    help: "Port of the SSH server; 0 takes any free one.",
    fallback: "2222",
    least: 0,
    most: 65535,
  },
  "control-port": {
    form: "integer",
    help: "Port of the control server; 0 takes any free one.",
    fallback: "8900",
    least: 0,
    most: 65535,
  },
  listen: { form: "text", help: "Address of the SSH server.", fallback: loopback },
  "control-listen": {
    form: "text",
    help: "Address of the control server. Anyone who reaches it controls the router.",
    fallback: loopback,
  },
  backing: {
    form: "text",
    help: "Folder to keep disks in as sparse files; without it disks have no contents.",
  },
  exporter: {
    form: "text",
    help:
      "How exported disks are reached: loop makes links exports/<nqn> in the backing folder, tcp serves " +
      "NVMe/TCP from this process, nvmet has the kernel serve it.",
    fallback: "none",
    choices: exporterKinds,
  },
  "nvme-port": {
    form: "integer",
    help: "Port on which tcp serves the disks that name it; 0 takes any free one.",
    fallback: "4420",
    least: 0,
    most: 65535,
  },
  "nvme-listen": { form: "text", help: "Address of the NVMe port.", fallback: loopback },
  "nvmet-folder": {
    form: "text",
    help: "Where the kernel's target is configured, for nvmet; the executable needs it below /tmp.",
    fallback: "/sys/kernel/config/nvmet",
  },
  profile: {
    form: "text",
    help: "Which kind of router to be: " +
      `${profiles.map(({ name }) => name).join(", ")}, or the path of a profile file.`,
    fallback: profiles[0]!.name,
  },
  pool: {
    form: "list",
    help: "name[:size[:btrfs|xfs[:nfs]]]: a pool; the size in bytes, or with K, M, G, T (binary). " +
      "nfs shares it over NFS: an NFS server of this machine may export files/NAME of --backing.",
    fallback: "storage-pool",
  },
  behaviour: { form: "list", help: "name=value: sets a behaviour in which routers may differ." },
  "timing-scale": {
    form: "number",
    help: "Speed: 1 takes the time that a real router takes, 0 takes none.",
    fallback: "1",
    least: 0,
    most: 100,
  },
  "base-path": {
    form: "list",
    help: "Folder where the client may make files.",
    fallback: "/storage-pool/metal-csi",
  },
  "cluster-hash": {
    form: "list",
    help: "Eight hex digits of the cluster that the client works for; objects with other digits are foreign.",
  },
  user: { form: "text", help: "The user that may log in.", fallback: "admin" },
  password: {
    form: "text",
    help: "The user's password; admin when neither this nor --authorized-key is given.",
  },
  "authorized-key": {
    form: "list",
    help: "File of OpenSSH public keys (RSA, ed25519) with which the user may log in.",
  },
  "host-key": { form: "text", help: "File of the private host key; without it an RSA-2048 key is made." },
  "seed-disks": {
    form: "integer",
    help: "Number of disks of 1 GiB that exist from the start.",
    fallback: "0",
    least: 0,
    most: 100_000,
  },
  replay: {
    form: "text",
    help:
      "File of an acceptance report: serve nothing, give every command of it to a simulated router of that kind, and print " +
      "what it answers otherwise. The other flags have no effect.",
  },
  json: {
    form: "switch",
    help: "No effect: the simulator always reports that it is ready as one JSON object.",
  },
};

/** The text of `rds-csi simulator --help` before the flags. */
export const usage = `Usage: rds-csi simulator [flags]

Runs a simulated RouterOS 7 with ROSE storage: an SSH server for clients and an HTTP port for tests. Prints one line
of JSON when it is ready, and runs until SIGTERM or SIGINT. With --replay it serves nothing: it compares itself with a
router by that router's acceptance report.

Flags:
`;

/**
 * `rds-csi simulator`: runs a simulated router until it is stopped.
 *
 * @returns the exit code.
 * @throws {FlagError} when the flags are invalid.
 */
export async function simulatorCommand(args: string[], io: CommandIo): Promise<number> {
  const values = readFlags(simulatorFlags, args, io.env);
  const options = readOptions(values);
  const report = values.text("replay");
  const text = report === "" ? undefined : readFile(values, "replay", report);
  values.assertNoProblems();
  if (text !== undefined) return await replay(text, io);
  try {
    await using simulator = await startSimulator(options);
    const { sshPort, nvmePort, controlUrl, hostKeyPublic } = simulator;
    io.out(JSON.stringify({ ready: true, sshPort, nvmePort, controlUrl, hostKey: hostKeyPublic }));
    await aborted(io.signal);
    return exitCodes.ok;
  } catch (error) {
    io.err(`rds-csi simulator: cannot run: ${messageOf(error)}`);
    return exitCodes.failed;
  }
}

/** Prints the differences, or that there is none. */
async function replay(text: string, io: CommandIo): Promise<number> {
  try {
    const report = parseReport(text);
    const differences = describeDifferences(
      await replayReport(report, { clock: systemClock, random: systemRandom }),
    );
    for (const line of differences) io.out(line);
    const commands = report.transcript.filter((entry) => !("event" in entry)).length;
    io.out(`replay: ${counted(commands, "command")}, ${counted(differences.length, "difference")}`);
    return differences.length === 0 ? exitCodes.ok : exitCodes.failed;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    io.err(`rds-csi simulator: cannot replay: ${error.message}`);
    return exitCodes.failed;
  }
}

function readOptions(values: FlagValues): SimulatorOptions {
  const backing = values.text("backing");
  const exporter = exporterKinds.find((kind) => kind === values.text("exporter")) ?? "none";
  if ((exporter === "loop" || exporter === "nvmet") && backing === "") {
    values.problem("exporter", exporter, `${exporter} together with --backing`);
  }
  const hostKey = values.text("host-key");
  const hashes = values.list("cluster-hash");
  return {
    host: values.text("listen"),
    sshPort: values.number("ssh-port"),
    controlHost: values.text("control-listen"),
    controlPort: values.number("control-port"),
    exporter,
    nvmeHost: values.text("nvme-listen"),
    nvmePort: values.number("nvme-port"),
    nvmetFolder: values.text("nvmet-folder"),
    profile: readProfile(values),
    pools: values.list("pool").map((pool) => readPool(values, pool)),
    behaviours: readBehaviours(values),
    timingScale: values.number("timing-scale"),
    basePaths: values.list("base-path"),
    ...(hashes.length === 0 ? {} : { clusterHashes: hashes }),
    seedDisks: values.number("seed-disks"),
    users: [readUser(values)],
    ...(backing === "" ? {} : { backingDirectory: backing }),
    ...(hostKey === "" ? {} : { hostKey: readFile(values, "host-key", hostKey) ?? "" }),
  };
}

/** A name, or a file with a probe's result. */
function readProfile(values: FlagValues): Profile {
  const given = values.text("profile");
  const known = profiles.find(({ name }) => name === given);
  if (known !== undefined) return known;
  const text = readFile(values, "profile", given);
  try {
    if (text !== undefined) return parsePlayed(text);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    values.problem("profile", given, `a router profile (${error.message})`);
  }
  return profiles[0]!;
}

function readPool(values: FlagValues, given: string): PoolOptions {
  const match = /^([a-z0-9-]+)(?::([0-9]{1,15}[KMGT]?)(?::(btrfs|xfs)(:nfs)?)?)?$/.exec(given);
  if (match === null) values.problem("pool", given, "name[:size[:btrfs|xfs[:nfs]]]");
  const [, name = given, size, filesystem, nfs] = match ?? [];
  return {
    name,
    ...(size === undefined ? {} : { sizeBytes: readSize("pool", size) }),
    ...(nfs === undefined ? {} : { nfsSharing: true }),
    ...(filesystem === "btrfs" || filesystem === "xfs" ? { filesystem } : {}),
  };
}

function readUser(values: FlagValues): User {
  const files = values.list("authorized-key");
  const authorizedKeys = files.flatMap((file) => (readFile(values, "authorized-key", file) ?? "").split("\n"))
    .filter((line) => line.trim() !== "" && !line.startsWith("#"));
  const password = values.text("password") || (files.length === 0 ? "admin" : "");
  const name = values.text("user");
  return password === "" ? { name, authorizedKeys } : { name, authorizedKeys, password };
}

function readBehaviours(values: FlagValues): Partial<Behaviours> {
  const settings = values.list("behaviour").map((setting): Partial<Behaviours> => {
    const [, name, value] = /^([A-Za-z]+)=(.*)$/.exec(setting) ?? [];
    try {
      if (name !== undefined) return parseBehaviours({ [name]: value });
      values.problem("behaviour", setting, "name=value");
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      values.problem("behaviour", setting, `a behaviour (${error.message})`);
    }
    return {};
  });
  return Object.assign({}, ...settings);
}

function readFile(values: FlagValues, flag: string, path: string): string | undefined {
  try {
    return Deno.readTextFileSync(path);
  } catch (error) {
    values.problem(flag, path, `a file that can be read (${messageAbout(path, error)})`);
    return undefined;
  }
}
