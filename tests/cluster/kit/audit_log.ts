import assert from "node:assert/strict";
import { join } from "node:path";
import type { ControlPlane } from "./control_plane.ts";

/** The fields of a request in the API server's audit log that the tests use. */
interface AuditEvent {
  readonly verb: string;
  readonly requestURI: string;
  readonly userAgent?: string;
  readonly user: { readonly username: string };
  readonly responseStatus?: { readonly code?: number };
  readonly annotations?: Readonly<Record<string, string>>;
  /** RFC 3339. */
  readonly requestReceivedTimestamp: string;
}

/**
 * Writes an audit policy: the API server logs only requests by service accounts of this namespace. Returns its
 * arguments.
 */
export async function writeAuditPolicy(folder: string, namespace: string): Promise<string[]> {
  const policy = join(folder, "audit-policy.json");
  await Deno.writeTextFile(
    policy,
    JSON.stringify({
      apiVersion: "audit.k8s.io/v1",
      kind: "Policy",
      omitStages: ["RequestReceived", "ResponseStarted"],
      rules: [
        { level: "Metadata", userGroups: [`system:serviceaccounts:${namespace}`] },
        { level: "None" },
      ],
    }),
  );
  return [
    `--audit-policy-file=${policy}`,
    `--audit-log-path=${auditLog(folder)}`,
    "--audit-log-maxsize=4096",
  ];
}

/**
 * Asserts that the API server refused no request of the driver's controller and its sidecars: that the rules of deploy/
 * are enough. Refusals before it serves do not count: it has not read the rules yet.
 */
export async function assertNothingRefused(plane: ControlPlane): Promise<string> {
  const lines = (await Deno.readTextFile(auditLog(plane.folder))).split("\n").filter((line) => line !== "");
  const events = lines.map((line) => JSON.parse(line) as AuditEvent);
  const refused = events.filter((event) => isRefused(event) && plane.servedAt(timeOf(event)));
  const reported = refused.map(({ user, userAgent, verb, requestURI }) =>
    `${userAgent?.split("/")[0]} (${user.username}) may not ${verb} ${requestURI.split("?")[0]}`
  );
  assert.deepEqual([...new Set(reported)].slice(0, 10), []);
  const clients = new Set(events.map(({ userAgent = "" }) => userAgent.split("/")[0]));
  assert(clients.has("rds-csi"), `only ${[...clients].join(", ")} asked anything`);
  return `${events.length} requests of ${[...clients].toSorted().join(", ")}`;
}

function isRefused({ responseStatus, annotations }: AuditEvent): boolean {
  const isForbidden = annotations?.["authorization.k8s.io/decision"] === "forbid";
  return isForbidden || responseStatus?.code === 401 || responseStatus?.code === 403;
}

function timeOf({ requestReceivedTimestamp }: AuditEvent): number {
  return Date.parse(requestReceivedTimestamp);
}

function auditLog(folder: string): string {
  return join(folder, "log", "audit.log");
}
