import { routerFlags } from "../config/flag_tables.ts";
import type { Environment } from "../config/config.ts";
import { readBasePaths, readNvmeAddress, readRouter, type RouterConfig } from "../config/router_settings.ts";
import { type FlagTable, readFlags } from "../flags.ts";

const routerNames = [
  ...[
    "rds-address",
    "rds-port",
    "rds-user",
    "rds-key",
    "rds-password-file",
    "rds-host-key",
    "rds-insecure-skip-verify",
  ],
  ...["nvme-address", "nvme-port"],
];

/** The most data: it has to fit into a volume of 1 GiB beside a file system. */
const mostData = 512;

/** Flags of `rds-csi acceptance`. */
export const acceptanceFlags: FlagTable = {
  "output": {
    form: "text",
    help: "Folder for the report, which must not hold one; the executable needs it below /tmp.",
  },
  "reboot": {
    form: "text",
    choices: ["ask", "no"],
    fallback: "no",
    help:
      "Whether to ask you to reboot the router, and to see what that does. All volumes in use lose their router meanwhile.",
  },
  "data": {
    form: "text",
    fallback: "256Mi",
    help: `How much data to write to a volume and to compare, from 1Mi to ${mostData}Mi.`,
  },
  "yes": { form: "switch", help: "Begin without asking." },
  "accept-vulnerable": {
    form: "switch",
    help: "Run on a RouterOS with holes in SSH by which routers are taken over.",
  },
  "base-path": {
    form: "text",
    env: routerFlags["base-path"]!.env!,
    help: "An empty folder on a pool of the router, for this run alone.",
  },
  ...Object.fromEntries(routerNames.map((name) => [name, routerFlags[name]!])),
  // The run has its own nodes, and knows one router.
  "known-node": { ...routerFlags["known-node"]!, hidden: true },
  "backend": { ...routerFlags["backend"]!, hidden: true },
};

/** The options of a run. */
export interface AcceptanceOptions {
  readonly router: RouterConfig;
  /** With one leading slash. */
  readonly basePath: string;
  readonly nvmeAddress: string;
  readonly nvmePort: number;
  readonly output: string;
  readonly reboot: boolean;
  /** In whole MiB. */
  readonly dataBytes: number;
  readonly yes: boolean;
  readonly acceptVulnerable: boolean;
}

/**
 * Reads the command line of `rds-csi acceptance`.
 *
 * @throws {FlagError} naming all problems at once
 */
export function readAcceptanceOptions(args: readonly string[], env: Environment): AcceptanceOptions {
  const flags = readFlags(acceptanceFlags, args, env);
  const router = readRouter(flags);
  if (flags.required("base-path", "because the run makes and removes volumes there") !== "") {
    readBasePaths(flags);
  }
  const [, size = "0"] = /^([0-9]{1,3})Mi$/.exec(flags.text("data")) ?? [];
  const dataMiB = Number(size);
  if (dataMiB < 1 || dataMiB > mostData) flags.problem("data", flags.text("data"), `1Mi to ${mostData}Mi`);
  const options = {
    router,
    basePath: flags.text("base-path"),
    nvmeAddress: readNvmeAddress(flags, router.address),
    nvmePort: flags.number("nvme-port"),
    output: flags.required("output", "for the report"),
    reboot: flags.text("reboot") === "ask",
    dataBytes: dataMiB << 20,
    yes: flags.switch("yes"),
    acceptVulnerable: flags.switch("accept-vulnerable"),
  };
  flags.assertNoProblems();
  return options;
}
