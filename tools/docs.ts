// Writes the reference pages that follow from the code: `deno run -A tools/docs.ts [--check]`. With --check it writes
// nothing, and names the pages that are out of step.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { acceptanceFlags } from "../src/cli/acceptance/options.ts";
import { adoptFlags } from "../src/cli/adopt/adopt.ts";
import { importCommandFlags } from "../src/cli/import.ts";
import { attachFlags, detachFlags } from "../src/cli/attach/options.ts";
import { auditFlags } from "../src/cli/audit/options.ts";
import { describeFlags } from "../src/cli/describe/describe.ts";
import { claimFlags } from "../src/cli/describe/of_claim.ts";
import { doctorFlags } from "../src/cli/doctor/options.ts";
import { withdrawFlags } from "../src/cli/withdraw.ts";
import { legacyFlags } from "../src/cli/config/legacy_flags.ts";
import { routerKeys } from "../src/cli/config/router_keys.ts";
import { clusterFlags } from "../src/cli/config/cluster.ts";
import { nodeFlags, objectFlags, routerFlags, serveFlags } from "../src/cli/config/flag_tables.ts";
import { FLAG_DEFAULT_NOTE, type FlagTable } from "../src/cli/flags.ts";
import { metricTables } from "./metric_tables.ts";
import type { MetricTable } from "../src/telemetry/metrics.ts";
import { routes } from "../src/simulator/control/server.ts";
import { faultKinds } from "../src/simulator/faults.ts";
import { directoryParameterHelp } from "../src/volume/model/directory/parameters.ts";
import { parameterHelp } from "../src/volume/model/parameters.ts";
import { commandsPage } from "./docs_commands.ts";
import { architecturePage } from "./docs_confirmations.ts";
import { hardwarePage } from "./docs_hardware.ts";
import { complain, print } from "./print.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** The flags that commands share, by the section of the page that lists them. */
const sharedFlags: readonly (readonly [title: string, flags: FlagTable])[] = [
  ["The router", routerFlags],
  ["The cluster", { ...clusterFlags, "driver-name": serveFlags["driver-name"]! }],
  ["The node", without(nodeFlags, routerFlags)],
];

const router = "[the router's flags](#the-router)";
const ofObjects = `${router}, and ${namesOf(objectFlags)} of [the cluster's](#the-cluster)`;
const ofOneVolume = `${router}, and \`--kubeconfig\``;
const node = "[the node's flags](#the-node), and `--nqn-prefix`";

/** Commands with their own flags, and which others they take. */
const commandParts: readonly (readonly [title: string, flags: FlagTable, others: string])[] = [
  [
    "doctor",
    without(doctorFlags, routerFlags),
    `${router} and [the node's](#the-node), none of which is required, and \`--kind\``,
  ],
  [
    "acceptance",
    without(acceptanceFlags, without(routerFlags, { "base-path": acceptanceFlags["base-path"]! })),
    "those for reaching a router: `--rds-…`, `--nvme-address`, `--nvme-port`",
  ],
  ["describe [VOLUME]", describeFlags, node],
  ["describe pvc/NAMESPACE/NAME|pv/NAME", claimFlags, ofObjects],
  ["attach NQN|VOLUME", attachFlags, node.replace(", and", ", `--nvme-port` and")],
  ["detach NQN|VOLUME", detachFlags, node],
  ["audit", auditFlags, ofObjects],
  ["adopt VOLUME", adoptFlags, ofObjects],
  ["import SLOT, import --path FILE", importCommandFlags, `${router}, and \`--driver-name\``],
  ["withdraw VOLUME", withdrawFlags, ofOneVolume],
  ["allow-format VOLUME, release VOLUME", {}, ofOneVolume],
];

const pages: Readonly<Record<string, string>> = {
  "docs/internals/architecture.md": await architecturePage(ROOT),
  "docs/reference/commands.md": await commandsPage(),
  "docs/reference/config.md": configPage(),
  "docs/reference/flags.md": flagsPage(),
  "docs/reference/metrics.md": metricsPage(),
  "docs/reference/parameters.md": parametersPage(),
  "docs/reference/simulator.md": simulatorPage(),
  "docs/reference/tested-hardware.md": await hardwarePage(ROOT),
};

function flagsPage(): string {
  const shared = sharedFlags.map(([, flags]) => flags).reduce((all, flags) => ({ ...all, ...flags }), {});
  const own = commandParts.map(([title, flags, others]) =>
    `## rds-csi ${title}\n\n${
      flagRows(differing(flags, { ...shared, kind: serveFlags["kind"]! }))
    }\nAlso takes ${others}.\n`
  );
  return `# Flags

Written by \`make docs\` from \`src/cli/config/flag_tables.ts\` and \`src/cli/config/cluster.ts\`. ${FLAG_DEFAULT_NOTE}

After a flag are the form of its value (text without one), its default and its environment variable.

## rds-csi serve

${flagRows(without(without(serveFlags, shared), legacyFlags))}
It takes all flags of the next three sections as well. These of the legacy Go driver have no effect, which the log shows: ${
    namesOf(legacyFlags)
  }.

${sharedFlags.map(([title, flags]) => `## ${title}\n\n${flagRows(flags)}`).join("\n")}
${own.join("\n")}`;
}

function namesOf(flags: FlagTable): string {
  return Object.keys(flags).map((name) => `\`--${name}\``).join(", ");
}

function configPage(): string {
  const own = Object.entries(routerKeys).filter(([, { flag }]) => flag === undefined)
    .map(([key, { form, help }]) => `- \`${key}\` (${form === "switch" ? "true or false" : form}): ${help}`);
  const ofFlags = Object.entries(routerKeys).flatMap(([key, { flag }]) =>
    flag === undefined ? [] : [`\`${key}\` (\`--${flag}\`)`]
  );
  return `# The file of several routers

Written by \`make docs\` from \`src/cli/config/router_keys.ts\`. \`--config FILE\` names a file in YAML for
[several routers](../guides/several-routers.md). With a mistake in it the controller does not start, and reports all mistakes
at once, without secrets. The file has one key, \`routers\`: a list of at least one. Keys of each:

${own.join("\n")}

These keys stand for [flags](flags.md#the-router), with the same defaults; leave out the flags and their environment
variables: ${ofFlags.join(", ")}. 

Every router needs \`name\`, \`address\`, \`hostKeys\`, and \`keyFile\` or \`passwordFile\`. Two of one address and port need
folders apart from each other. Names of exports begin with \`--nqn-prefix\` on the default router, with
\`<--nqn-prefix>:<name>\` on any other.

The controller reads the file once, at the start, and the files of keys, passwords and host keys for
[every connection](../guides/several-routers.md#exchanging-credentials).
`;
}

function without(flags: FlagTable, others: FlagTable): FlagTable {
  return Object.fromEntries(Object.entries(flags).filter(([name]) => !Object.hasOwn(others, name)));
}

/** Returns the flags of which the others have none with the same help, without `--json`. */
function differing(flags: FlagTable, others: FlagTable): FlagTable {
  return Object.fromEntries(
    Object.entries(flags).filter(([name, { help }]) => name !== "json" && help !== others[name]?.help),
  );
}

function flagRows(flags: FlagTable): string {
  return Object.entries(flags).map(([name, flag]) => {
    const names = [name, ...flag.aliases ?? []].map((one) => `\`--${one}\``).join(", ");
    const fallback = flag.fallback === undefined || flag.fallback === "" ? [] : [`\`${flag.fallback}\``];
    const env = flag.env?.map((name) => `\`${name}\``) ?? [];
    const form = flag.choices?.join("|") ?? (flag.form === "text" ? undefined : flag.form);
    const details = [...form === undefined ? [] : [form], ...fallback, ...env];
    return `- ${names}${details.length === 0 ? "" : ` (${details.join(", ")})`}: ${flag.help}\n`;
  }).join("");
}

function metricsPage(): string {
  const sections = Object.entries(metricTables).map(([title, metrics]) =>
    `## ${title}\n\n${metricRows(metrics)}`
  );
  return `# Metrics

Written by \`make docs\` from \`src/telemetry/\`. \`/metrics\` of \`--metrics-address\` has the text format
of Prometheus. A scrape touches neither the router nor a disk. After a metric are its type and its labels;
metrics about a router have its name as \`backend\`, too.

Two answers for probes, 200 or 503 with the reason, replace livenessprobe:

- \`/healthz\` fails only when the socket for calls was removed or taken over: then a restart helps.
- \`/readyz\` fails until the driver serves, while no router can be used, and when the driver stops. It finds a router
  that no longer answers within 30 s.

${sections.join("\n")}`;
}

function metricRows(metrics: MetricTable): string {
  return Object.entries(metrics).map(([name, { type, help, labels }]) => {
    const by = labels.filter((label) => label !== "backend").map((label) => `, \`${label}\``).join("");
    return `- \`${name}\` (${type}${by}): ${help}\n`;
  }).join("");
}

function parametersPage(): string {
  return `# StorageClass parameters

Written by \`make docs\` from \`src/volume/model/parameters.ts\` and
\`src/volume/model/directory/parameters.ts\`. An unknown key is refused; keys that begin with
\`csi.storage.k8s.io/\` are the sidecars'. The file system is \`csi.storage.k8s.io/fstype\`.

${parameterRows(parameterHelp)}

## Shared directories

Those of the second driver, \`--kind directory\`: [shared directories](../guides/shared-directories.md). The StorageClass's
\`mountOptions\` are for the share; it names no file system.

${parameterRows(directoryParameterHelp)}

A static volume names in \`volumeAttributes\` its \`addresses\` and its \`path\` from the root of the server, and the
\`export\` that holds the path if that is not \`/\`.
`;
}

function parameterRows(help: Readonly<Record<string, string>>): string {
  return Object.entries(help).map(([key, text]) => `- \`${key}\`: ${text}`).join("\n");
}

function simulatorPage(): string {
  const values = {
    none: "",
    count: "milliseconds",
    text: "text",
    cut: "bytes, or sentinel",
    moment: "before, after",
  };
  const requests = Object.entries(routes).map(([request, { what }]) => `- \`${request}\`: ${what}`);
  const faults = Object.entries(faultKinds).map(([action, { value, what }]) =>
    `- \`${action}\`${values[value] && ` (${values[value]})`}: ${what}`
  );
  return `# The simulated router

Written by \`make docs\` from \`src/simulator/\`. \`rds-csi simulator --help\` lists its flags; its behaviours are those of \`src/simulator/behaviours.ts\`.

## What works, and what is only kept

Disks, files, subvolumes, exports and everything that the driver uses are as on a router. Beside them:

- \`/user\`, \`/user/group\`, \`/user/ssh-keys\`: the policies ssh, read, write and policy, addresses, and that a key shuts
  the password out.
- \`/disk/add type=raid raid-type=1\`, \`raid-master\`, \`/disk/format\`: drives become a mirror, and a pool.
- \`/ip/firewall/filter\`, \`/ipv6/firewall/filter\`, \`/ipv6/settings\`, \`/disk/settings\` are kept and have no effect.
- \`/ip/service\`: SSH's limit of sessions holds.
- \`/disk/btrfs/filesystem\`, and what drives report of themselves (SMART): shown, and changed by the control port alone.
- \`/system/package\`: changes count after \`apply-changes\`, which boots nothing.

## Requests to the control port

${requests.join("\n")}

## Faults

\`POST /faults\` binds one to the \`nth\` command that fits \`match\` (a regular expression), and to the next \`times\`. After
an action is the form of its \`value\`.

${faults.join("\n")}
`;
}

/** Markdown as \`deno fmt\` leaves it, so that a formatted page counts as in step. */
async function formatted(text: string): Promise<string> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["fmt", "--ext", "md", "-"],
    cwd: ROOT,
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(text));
  await writer.close();
  return new TextDecoder().decode((await child.output()).stdout);
}

const check = Deno.args.includes("--check");
let stale = 0;
for (const [path, text] of Object.entries(pages)) {
  const file = join(ROOT, path);
  const wanted = await formatted(text);
  if (check && await Deno.readTextFile(file).catch(() => "") !== wanted) {
    complain(`${path} is out of step with the code: make docs`);
    stale++;
  }
  if (!check) await Deno.writeTextFile(file, wanted);
}
if (!check) print(`written: ${Object.keys(pages).join(", ")}`);
Deno.exit(stale === 0 ? 0 : 1);
