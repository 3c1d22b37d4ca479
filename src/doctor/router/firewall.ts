import { isIPv4 } from "node:net";
import { ros } from "../../routeros/console/command.ts";
import { parseRow, parseRows, type Row } from "../../routeros/console/json.ts";
import { VolumeError } from "../../volume/errors.ts";
import { defaultNfsPort } from "../../volume/model/directory/handle.ts";
import { type Finding, fine, type Fix, problem, skipped, warning } from "../../volume/model/finding.ts";
import type { RouterCheck } from "./check.ts";
import { type Access, type FilterRule, judgeAccess, parseFilter } from "./firewall_rules.ts";
import { routerFixes } from "./fixes.ts";

const firewallName = "firewall";

const queries = [
  ros`/ip firewall filter print detail as-value`,
  ros`/ipv6 firewall filter print detail as-value`,
  ros`/ipv6 settings print as-value`,
  ros`/ip service print detail as-value where name=${"ssh"}`,
] as const;

/** Checks whom the router's firewall lets reach the port of the data, and SSH. It changes nothing. */
export const firewallCheck: RouterCheck = {
  name: firewallName,
  essential: false,
  async run(router, { kind, nvmePort, nvmeAddress = "" }) {
    const dataPort = kind === "directory" ? defaultNfsPort : nvmePort;
    try {
      const [ipv4 = "", ipv6 = "", settings = "", services = ""] = await router.readAll(
        firewallName,
        queries,
      );
      const filters = {
        ipv4: parseFilter(ipv4),
        ipv6: parseRow(settings, "settings of IPv6").flag("disable-ipv6", false)
          ? undefined
          : parseFilter(ipv6),
      };
      const ssh = parseRows(services, "list of services").find(isSsh);
      return [judgeDataPort(dataPort, filters, nvmeAddress), judgeSshPort(ssh, filters)];
    } catch (error) {
      if (!VolumeError.is(error, "unavailable")) throw error;
      return [skipped(firewallName, `cannot judge who reaches port ${dataPort} and SSH: ${error.message}`)];
    }
  },
};

/** The rules of both protocols; those of IPv6 are undefined while the router does not speak it. */
export interface Filters {
  readonly ipv4: readonly FilterRule[];
  readonly ipv6: readonly FilterRule[] | undefined;
}

/**
 * Judges who reaches the port of the volumes, or of the shared directories.
 *
 * @param addresses where nodes reach it, separated by commas: an open IPv6 does not help those that use IPv4
 */
export function judgeDataPort(port: number, filters: Filters, addresses = ""): Finding {
  const access = accessTo(port, filters);
  const what = `port ${port}`;
  const used = addresses.split(",").every(isIPv4) ? [access.ipv4] : [access.ipv4, access.ipv6];
  if (used.every(isClosed)) {
    return problem(firewallName, `${what}: no rule lets a node reach it`, routerFixes.portClosed(port));
  }
  return judge(what, access, routerFixes.portOpen(port, needs(access.ipv4), needs(access.ipv6)));
}

/**
 * Judges who reaches SSH: the service itself may limit it, or the firewall.
 *
 * @param service the row of the service; undefined when the router lists none
 */
export function judgeSshPort(service: Row | undefined, filters: Filters): Finding {
  const property = service?.has("available-from") ? "available-from" : "address";
  const origins = service?.isSet(property) ? service.texts(property) : [];
  const port = service?.hasInteger("port") ? Number(service.integer("port")) : 22;
  const what = `SSH, port ${port}`;
  if (origins.length > 0 && !origins.some((origin) => origin.endsWith("/0"))) {
    return fine(firewallName, `${what}: the service takes connections from ${origins.join(", ")} alone`);
  }
  return judge(what, accessTo(port, filters), routerFixes.sshOpen(property));
}

/** The list also has the connections of a service, which are no service. */
function isSsh(row: Row): boolean {
  return row.text("name", "") === "ssh" && !row.isSet("dynamic") && !row.isSet("connection");
}

interface Accesses {
  readonly ipv4: Access;
  readonly ipv6: Access | undefined;
}

function accessTo(port: number, { ipv4, ipv6 }: Filters): Accesses {
  return { ipv4: judgeAccess(ipv4, port), ipv6: ipv6 && judgeAccess(ipv6, port) };
}

function needs(access: Access | undefined): boolean {
  return access !== undefined && access.state !== "limited";
}

function isClosed(access: Access | undefined): boolean {
  return access === undefined || access.state === "limited" && access.sources.length === 0;
}

function judge(what: string, { ipv4, ipv6 }: Accesses, fix: Fix): Finding {
  const found = `${what}: over IPv4 ${describe(ipv4)}; ` +
    `over IPv6 ${ipv6 === undefined ? "nothing, because it is off" : describe(ipv6)}`;
  const states = [ipv4.state, ipv6?.state];
  if (states.includes("open")) return warning(firewallName, found, fix);
  return states.includes("unknown") ? skipped(firewallName, found, fix) : fine(firewallName, found);
}

function describe({ state, sources, doubts }: Access): string {
  switch (state) {
    case "open":
      return "open to everyone, because no rule drops the rest";
    case "limited":
      return sources.length === 0 ? "closed" : `open to ${sources.join(", ")} alone`;
    case "unknown":
      return `it cannot be judged who gets through ${doubts.map((rule) => `"${rule}"`).join(", ")}`;
  }
}
