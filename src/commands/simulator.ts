import { describeFlags, type FlagTable, type FlagValues, readFlags } from "../flags.ts";
import { type Knobs, parseKnobs } from "../simulator/knobs.ts";
import { profiles } from "../simulator/profile.ts";
import { type SimulatorOptions, startSimulator } from "../simulator/simulator.ts";
import type { User } from "../simulator/ssh/users.ts";
import { type CommandIo, exitCodes } from "./io.ts";

const loopback = "127.0.0.1";

const table: FlagTable = {
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
    help: "Address of the control server. Whoever reaches it owns the router.",
    fallback: loopback,
  },
  backing: {
    form: "text",
    help: "Folder to keep disks in as real sparse files; without it they are nowhere.",
  },
  exporter: {
    form: "text",
    help: "With loop, exports/<nqn> in the backing folder leads to a disk's file while it is exported.",
    fallback: "none",
    choices: ["none", "loop"],
  },
  profile: {
    form: "text",
    help: "Which kind of router to be.",
    fallback: profiles[0]!.name,
    choices: profiles.map(({ name }) => name),
  },
  knob: { form: "list", help: "name=value: answers an open question about routers in another way." },
  "timing-scale": {
    form: "number",
    help: "1 takes the time that a real router takes, 0 takes none.",
    fallback: "1",
    least: 0,
    most: 100,
  },
  "base-path": {
    form: "list",
    help: "Where the client may make files.",
    fallback: "/storage-pool/metal-csi",
  },
  user: { form: "text", help: "Who may log in.", fallback: "admin" },
  password: {
    form: "text",
    help: "With this password; admin when neither this nor --authorized-key is given.",
  },
  "authorized-key": {
    form: "list",
    help: "File of OpenSSH public keys (RSA, ed25519) with which the user may log in.",
  },
  "host-key": { form: "text", help: "File of the private host key; without it an RSA-2048 key is made." },
  "seed-disks": {
    form: "integer",
    help: "Disks of 1 GiB that are there from the start.",
    fallback: "0",
    least: 0,
    most: 100_000,
  },
  help: { form: "switch", help: "Prints this." },
};

const usage = `Usage: rds-csi simulator [flags]

Runs a simulated RouterOS 7 with ROSE storage: an SSH server for clients and an HTTP port for tests. Prints one line
of JSON when it is ready, and runs until SIGTERM or SIGINT.

${describeFlags(table)}`;

/**
 * `rds-csi simulator`: runs a simulated router until it is told to stop.
 *
 * @returns the exit code.
 * @throws {FlagError} when the flags make no sense.
 */
export async function simulatorCommand(args: string[], io: CommandIo): Promise<number> {
  const values = readFlags(table, args, io.env);
  if (values.switch("help")) {
    io.out(usage);
    return exitCodes.ok;
  }
  const options = readOptions(values);
  values.assertNoProblems();
  try {
    await using simulator = await startSimulator(options);
    const { sshPort, controlUrl, hostKeyPublic } = simulator;
    io.out(JSON.stringify({ ready: true, sshPort, controlUrl, hostKey: hostKeyPublic }));
    await aborted(io.signal);
    return exitCodes.ok;
  } catch (error) {
    io.err(`rds-csi simulator: cannot run: ${error instanceof Error ? error.message : error}`);
    return exitCodes.failed;
  }
}

function readOptions(values: FlagValues): SimulatorOptions {
  const backing = values.text("backing");
  const exporter = values.text("exporter") === "loop" ? "loop" : "none";
  if (exporter === "loop" && backing === "") values.problem("exporter", exporter, "loop only with --backing");
  const hostKey = values.text("host-key");
  return {
    host: values.text("listen"),
    sshPort: values.number("ssh-port"),
    controlHost: values.text("control-listen"),
    controlPort: values.number("control-port"),
    exporter,
    profile: values.text("profile"),
    knobs: readKnobs(values),
    timingScale: values.number("timing-scale"),
    basePaths: values.list("base-path"),
    seedDisks: values.number("seed-disks"),
    users: [readUser(values)],
    ...(backing === "" ? {} : { backingDirectory: backing }),
    ...(hostKey === "" ? {} : { hostKey: readFile(values, "host-key", hostKey) }),
  };
}

function readUser(values: FlagValues): User {
  const files = values.list("authorized-key");
  const authorizedKeys = files.flatMap((file) => readFile(values, "authorized-key", file).split("\n"))
    .filter((line) => line.trim() !== "" && !line.startsWith("#"));
  const password = values.text("password") || (files.length === 0 ? "admin" : "");
  const name = values.text("user");
  return password === "" ? { name, authorizedKeys } : { name, authorizedKeys, password };
}

function readKnobs(values: FlagValues): Partial<Knobs> {
  const settings = values.list("knob").map((setting): Partial<Knobs> => {
    const [, name, value] = /^([A-Za-z]+)=(.*)$/.exec(setting) ?? [];
    try {
      if (name !== undefined) return parseKnobs({ [name]: value });
      values.problem("knob", setting, "name=value");
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      values.problem("knob", setting, `a knob (${error.message})`);
    }
    return {};
  });
  return Object.assign({}, ...settings);
}

function readFile(values: FlagValues, flag: string, path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch (error) {
    values.problem(flag, path, `a file that can be read (${error instanceof Error ? error.message : error})`);
    return "";
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
