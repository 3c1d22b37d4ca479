import {
  type Environment,
  readBasePaths,
  readNqnPrefix,
  readNvmeAddress,
  readRouter,
  readRouterLoosely,
  type RouterConfig,
  routerFlags,
} from "../../config.ts";
import { type FlagTable, readFlags } from "../../flags.ts";
import { clusterHash } from "../../volume/ids.ts";

/** Flags of `rds-csi doctor`. */
export const doctorFlags: FlagTable = {
  "json": { form: "switch", help: "Print the findings as a JSON array." },
  "probe": {
    form: "switch",
    help:
      "Ask the router what differs between routers, on scratch volumes in --base-path, and print its profile.",
  },
  "output": { form: "text", help: "With --probe: the file to write the profile to, instead of printing it." },
  ...routerFlags,
};

/** What `rds-csi doctor` is told. What a controller must have may be missing here: that is what it finds out. */
export interface DoctorOptions {
  readonly json: boolean;
  readonly probe: boolean;
  /** "" prints. */
  readonly output: string;
  readonly router: RouterConfig;
  readonly basePaths: readonly string[];
  readonly nvmeAddress: string;
  readonly nvmePort: number;
  readonly nqnPrefix: string;
  /** Hash of the cluster's id; undefined when none is given. */
  readonly cluster: string | undefined;
  /** Whether publishing without a fence is allowed. */
  readonly allowUnfenced: boolean;
}

/**
 * Reads the command line of `rds-csi doctor`.
 *
 * @throws {FlagError} naming everything that is wrong, at once
 */
export function readDoctorOptions(args: readonly string[], env: Environment): DoctorOptions {
  const flags = readFlags(doctorFlags, args, env);
  const router = flags.switch("probe") ? readRouter(flags) : readRouterLoosely(flags);
  const clusterId = flags.text("cluster-id");
  const options: DoctorOptions = {
    json: flags.switch("json"),
    probe: flags.switch("probe"),
    output: flags.text("output"),
    router,
    basePaths: readBasePaths(flags),
    nvmeAddress: readNvmeAddress(flags, router),
    nvmePort: flags.number("nvme-port"),
    nqnPrefix: readNqnPrefix(flags),
    allowUnfenced: flags.switch("allow-unfenced"),
    cluster: clusterId === "" ? undefined : clusterHash(clusterId),
  };
  if (options.probe && (!flags.isGiven("base-path") || options.basePaths.length !== 1)) {
    flags.problem(
      "base-path",
      flags.isGiven("base-path") ? options.basePaths.join(", ") : "",
      "one folder for --probe, named explicitly: scratch volumes are made and removed in it",
    );
  }
  if (!options.probe && options.output !== "") {
    flags.problem("output", options.output, "a file with --probe only");
  }
  flags.assertNoProblems();
  return options;
}
