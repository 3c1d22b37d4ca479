// Writes the reference pages that follow from the code: `deno run -A tools/docs.ts [--check]`. With --check it writes
// nothing, and names the pages that are out of step.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
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
import { nodeFlags, routerFlags, serveFlags } from "../src/cli/config/flag_tables.ts";
import { FLAG_DEFAULT_NOTE, type FlagTable } from "../src/cli/flags.ts";
import { metricTables } from "./metric_tables.ts";
import type { MetricTable } from "../src/telemetry/metrics.ts";
import { routes } from "../src/simulator/control/server.ts";
import { faultKinds } from "../src/simulator/faults.ts";
import { directoryParameterHelp } from "../src/volume/model/directory/parameters.ts";
import { parameterHelp } from "../src/volume/model/parameters.ts";
import { commandsPage } from "./docs_commands.ts";
import { complain, print } from "./print.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** How the simulated router is brought into a faulty state. */
const states: readonly (readonly [what: string, request: string])[] = [
  [
    "A pool is full, degraded, or not mounted; its disks stay or go too",
    [
      '`PATCH /disks/<pool>` `{"free": 0}`',
      '`{"state": "degraded"}`',
      '`{"mounted": false, "vanish": true}`',
    ].join(", "),
  ],
  ["A disk was edited or removed behind everyone's back", "`PATCH` or `DELETE /disks/<slot>`"],
  ["An entry without a file, a file without an entry", "`DELETE /files/<name>`, `DELETE /disks/<slot>`"],
  ["A disk without its export", '`PATCH /disks/<slot>` `{"nvme-tcp-export": false}`'],
  ["A foreign disk, of any kind and slot", "`POST /disks`"],
  ["Thousands of disks", "`rds-csi simulator --seed-disks 10000`"],
  [
    "A user lost a policy; the package is gone; the host key is another one",
    [
      '`PATCH /users/<name>` `{"write": false}`',
      '`PUT /package` `{"state": "missing"}`',
      "`POST /host-key`",
    ].join(", "),
  ],
  [
    "Too many sessions: connections beyond the behaviour are dropped",
    "`rds-csi simulator --behaviour maxSessions=2`",
  ],
  ["Line ends, noise, random error texts, and all that is unknown", "`rds-csi simulator --behaviour …`"],
  ["Whatever else a person could do at the console", '`POST /console` `{"command": "…"}`'],
];

const nodeFlagsNote = `Takes the flags of the node: ${
  Object.keys(nodeFlags).map((name) => `\`--${name}\``).join(", ")
}.`;

const routerFlagsNote = "Takes the flags of the controller as well, as `rds-csi allow-format` does.";

/** Commands with their own flags, and a note on the others. */
const commandParts: readonly (readonly [title: string, flags: FlagTable, note: string])[] = [
  [
    "doctor",
    without(doctorFlags, routerFlags),
    "Takes the flags of the controller as well, none of which is required.",
  ],
  ["describe [VOLUME]", without(describeFlags, nodeFlags), nodeFlagsNote],
  ["describe pvc/NAMESPACE/NAME|pv/NAME", claimFlags, routerFlagsNote],
  ["attach NQN|VOLUME", without(attachFlags, nodeFlags), nodeFlagsNote],
  ["detach NQN|VOLUME", without(detachFlags, nodeFlags), nodeFlagsNote],
  ["audit", auditFlags, routerFlagsNote],
  [
    "adopt VOLUME",
    adoptFlags,
    "Takes the flags of the controller as well, as `rds-csi allow-format` does; so does `rds-csi release VOLUME`, which has no\n" +
    "others.",
  ],
  [
    "import SLOT",
    importCommandFlags,
    "`rds-csi import --path FILE` as well. Takes the flags of the controller as well, as `rds-csi allow-format` does, and\n" +
    "`--driver-name`. [Static volumes](../guides/static-volumes.md) says what it does.",
  ],
  ["withdraw VOLUME", withdrawFlags, routerFlagsNote],
];

const pages: Readonly<Record<string, string>> = {
  "docs/reference/commands.md": await commandsPage(),
  "docs/reference/config.md": configPage(),
  "docs/reference/flags.md": flagsPage(),
  "docs/reference/metrics.md": metricsPage(),
  "docs/reference/parameters.md": parametersPage(),
  "docs/reference/simulator.md": simulatorPage(),
};

function flagsPage(): string {
  return `# Flags

Written by \`make docs\` from \`src/cli/config/flag_tables.ts\` and \`src/cli/config/cluster.ts\`. ${FLAG_DEFAULT_NOTE}

## rds-csi serve

${table(without(serveFlags, legacyFlags))}
### Flags of the legacy driver

The flags of the Go driver for the same hardware are taken as they stand, also without the command \`serve\` before them.
These have no effect, which the log says: ${
    Object.keys(legacyFlags).map((name) => `\`--${name}\``).join(", ")
  }.

${commandParts.map(([title, flags, note]) => `## rds-csi ${title}\n\n${table(flags)}\n${note}\n`).join("\n")}
## rds-csi allow-format VOLUME

Takes the flags of the controller: ${Object.keys(routerFlags).map((name) => `\`--${name}\``).join(", ")}.
`;
}

function configPage(): string {
  const words: Readonly<Record<string, string>> = { switch: "true or false", integer: "whole number" };
  const rows = Object.entries(routerKeys).map(([key, { flag, form, help }]) => {
    const { fallback = "" } = flag === undefined ? {} : routerFlags[flag]!;
    const named = flag === undefined ? "" : `\`--${flag}\``;
    return `| \`${key}\` | ${words[form] ?? form} | ${fallback} | ${named} | ${help} |`;
  });
  return `# The file of several routers

Written by \`make docs\` from \`src/cli/config/router_keys.ts\`. \`--config FILE\` names a file in YAML for
[several routers](../guides/several-routers.md). Leave out the flags in the table, and their environment variables; every other
flag stays a flag. With a mistake in the file the controller does not start, and reports all mistakes at once, without secrets.

The file has one key, \`routers\`: a list of at least one. Keys of each:

| Key | Form | Default | Flag | What it is for |
| --- | --- | --- | --- | --- |
${rows.join("\n")}

Every router needs \`name\`, \`address\`, \`hostKeys\`, and \`keyFile\` or \`passwordFile\`. Two of one address and port need
folders apart from each other.

Names of exports begin with \`--nqn-prefix\` on the default router, with \`<--nqn-prefix>:<name>\` on any other.

The controller reads the file once, at the start, and the files of keys, passwords and host keys for
[every connection](../guides/several-routers.md#exchanging-credentials).
`;
}

function without(flags: FlagTable, others: FlagTable): FlagTable {
  return Object.fromEntries(Object.entries(flags).filter(([name]) => !Object.hasOwn(others, name)));
}

function table(flags: FlagTable): string {
  const rows = Object.entries(flags).map(([name, flag]) => {
    const form = flag.choices?.join(" \\| ") ?? flag.form;
    const env = flag.env?.map((name) => `\`${name}\``).join(", ") ?? "";
    const names = [name, ...flag.aliases ?? []].map((one) => `\`--${one}\``).join(", ");
    return `| ${names} | ${form} | ${flag.fallback ?? ""} | ${env} | ${flag.help} |`;
  });
  return [
    "| Flag | Form | Default | Environment | What it is for |",
    "| --- | --- | --- | --- | --- |",
    ...rows,
    "",
  ]
    .join("\n");
}

function metricsPage(): string {
  const sections = Object.entries(metricTables).map(([title, metrics]) =>
    `## ${title}\n\n${metricRows(metrics)}`
  );
  return `# Metrics

Written by \`make docs\` from \`src/telemetry/\`. \`/metrics\` of \`--metrics-address\` has the text format
of Prometheus. A scrape touches neither the router nor a disk.

Two answers for probes, 200 or 503 with the reason, replace livenessprobe:

- \`/healthz\` fails only when a restart would help: when the socket for calls was removed or taken over. A router that is
  away or a device that hangs does not make it fail.
- \`/readyz\` fails until the driver serves and, for a controller, the router has answered once and is fit for this
  driver. It also fails while no router can be used, and when the driver stops. A router that no longer answers is found
  within 30 s.

${sections.join("\n")}`;
}

function metricRows(metrics: MetricTable): string {
  const rows = Object.entries(metrics).map(([name, { type, help, labels }]) =>
    `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(", ")} | ${help} |`
  );
  return ["| Metric | Type | Labels | What it counts |", "| --- | --- | --- | --- |", ...rows, ""].join("\n");
}

function parametersPage(): string {
  return `# StorageClass parameters

Written by \`make docs\` from \`src/volume/model/parameters.ts\` and
\`src/volume/model/directory/parameters.ts\`. An unknown key is refused; keys that begin with
\`csi.storage.k8s.io/\` are the sidecars'. The file system is \`csi.storage.k8s.io/fstype\`.

${parameterRows(parameterHelp)}

## Shared directories

Those of the second driver, \`--kind directory\`: [shared directories](../guides/shared-directories.md). How nodes mount the
share is the StorageClass's \`mountOptions\`. A file system is not named.

${parameterRows(directoryParameterHelp)}

A static volume names in \`volumeAttributes\` its \`addresses\` and its \`path\` from the root of the server, and the
\`export\` that holds the path if that is not \`/\`.
`;
}

function parameterRows(help: Readonly<Record<string, string>>): string {
  const rows = Object.entries(help).map(([key, text]) => `| \`${key}\` | ${text} |`);
  return ["| Key | What it is for |", "| --- | --- |", ...rows].join("\n");
}

function simulatorPage(): string {
  const values = {
    none: "",
    count: "milliseconds",
    text: "text",
    cut: "bytes, or sentinel",
    moment: "before, after",
  };
  const requests = Object.entries(routes).map(([request, { what }]) => `| \`${request}\` | ${what} |`);
  const faults = Object.entries(faultKinds).map(([action, { value, what }]) =>
    `| \`${action}\` | ${values[value]} | ${what} |`
  );
  return `# The simulated router

Written by \`make docs\` from \`src/simulator/\`. \`rds-csi simulator --help\` lists its flags; its behaviours are those
of \`src/simulator/behaviours.ts\`, which includes the questions of \`rds-csi doctor --probe\`.

## What works, and what is only kept

Disks, files, subvolumes, exports and everything that the driver uses are as on a router. Beside them:

- \`/user\`, \`/user/group\`, \`/user/ssh-keys\`: the policies ssh, read, write and policy, addresses, disabled users,
  and that a key shuts the password out. Other policies allow nothing more.
- \`/disk/add type=raid raid-type=1\`, \`raid-master\`, \`/disk/format\`: drives become a mirror, and a pool. Nothing
  degrades or rebuilds by itself.
- \`/ip/firewall/filter\`, \`/ipv6/firewall/filter\`, \`/ipv6/settings\`, \`/disk/settings\` are kept and have no effect. There
  are no rules at first.
- \`/ip/service\`: SSH's limit of sessions holds.
- \`/system/package\`: changes count after \`apply-changes\`, which boots nothing.
- \`/disk/print\` and \`/disk/print detail\` print for people as RouterOS 7.24 does; other menus one line an item.

## Requests to the control port

| Request | What it does |
| --- | --- |
${requests.join("\n")}

## Faults

\`POST /faults\` binds one to the \`nth\` command that fits \`match\` (a regular expression), and to the next \`times\`.

| Action | Value | What happens |
| --- | --- | --- |
${faults.join("\n")}

## States

| What is wrong | Request, or how it is started |
| --- | --- |
${states.map(([what, request]) => `| ${what} | ${request} |`).join("\n")}
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
