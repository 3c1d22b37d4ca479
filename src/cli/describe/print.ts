import { formatBytes } from "../../volume/model/sizes.ts";
import type { Intent } from "../../volume/model/staging/state.ts";
import { alignColumns } from "../table.ts";
import type { Finding } from "../../volume/model/finding.ts";
import { formatFindings } from "../doctor/doctor.ts";
import { describeUser } from "../../volume/model/host/device_user.ts";
import {
  connectionsOf,
  type DeviceView,
  type MountView,
  type VolumeView,
} from "../../doctor/node/volume_view.ts";

/** A volume and its findings. */
export interface DescribedVolume {
  readonly view: VolumeView;
  readonly findings: readonly Finding[];
}

/** Whether no finding is a problem; warnings do not count. */
export function isHealthy({ findings }: DescribedVolume): boolean {
  return !findings.some(({ state }) => state === "problem");
}

/** A volume for people: one fact on each line, and its findings below. */
export function formatVolume(volume: DescribedVolume): string[] {
  const { view, findings } = volume;
  const { stagingState } = view;
  const rows: (readonly [name: string, text: string])[] = [
    ["volume", `${view.id}: ${stateOf(view)}`],
    ...stagingState === undefined ? [] : [
      ["kind", kindOf(stagingState.intent)] as const,
      ["epoch", stagingState.intent.epoch] as const,
      ["staging", stagingState.intent.stagingPath] as const,
    ],
    ["state file", stagingState === undefined && view.damaged === undefined ? "none" : view.stateFile],
    ...deviceRows(view),
    ...connectionsOf(view).map((each) =>
      ["connection", `${each.name} ${each.stateName} ${each.nqn}${endpoint(each)}`] as const
    ),
    ...view.mounts.map((mount) => ["mount", describeMount(mount)] as const),
  ];
  return [
    ...alignColumns(rows),
    ...findings.length === 0 ? [] : ["", ...formatFindings(findings)],
    `describe: ${isHealthy(volume) ? "healthy" : "not healthy"}`,
  ];
}

function kindOf({ kind, map, readOnly }: Intent): string {
  return [kind, ...map === "crypt" ? ["encrypted"] : [], readOnly ? "read-only" : "read-write"].join(", ");
}

/** All volumes of a node as an aligned table. */
export function formatTable(volumes: readonly DescribedVolume[]): string[] {
  const rows = volumes.map((volume) => {
    const { view } = volume;
    const found = view.device?.found;
    return [
      view.id,
      view.stagingState?.intent.kind ?? "?",
      stateOf(view),
      found?.path ?? "-",
      found === undefined ? "-" : formatBytes(found.sizeBytes),
      connectionsOf(view).map(({ name, stateName }) => `${name}=${stateName}`).join(",") || "-",
      String(view.mounts.filter(({ entry }) => entry !== undefined).length),
      isHealthy(volume) ? "healthy" : "not healthy",
    ];
  });
  const header = ["VOLUME", "KIND", "STATE", "DEVICE", "SIZE", "CONNECTIONS", "MOUNTS", "HEALTH"];
  return alignColumns([header, ...rows]);
}

/** A volume for programs. Sizes are numbers of bytes. */
export function volumeJson(volume: DescribedVolume): unknown {
  const { view, findings } = volume;
  return {
    volume: view.id,
    healthy: isHealthy(volume),
    state: stateOf(view),
    stateFile: view.stateFile,
    stagingState: view.stagingState ?? null,
    device: view.device === undefined ? null : {
      ...view.device.found,
      proven: view.device.mismatch === undefined,
      readOnly: view.device.readOnly ?? null,
    },
    otherDevices: view.others.map(({ path, deviceNumber }) => ({ path, deviceNumber })),
    users: view.users.map((user) => ({ by: user.by, ...describeUser(user) })),
    connections: connectionsOf(view),
    mounts: view.mounts.map(({ path, role, entry, deviceNumber }) => ({
      path,
      role,
      mounted: entry !== undefined,
      deviceNumber: deviceNumber ?? null,
      filesystem: entry?.filesystem ?? null,
      options: entry?.mountOptions ?? [],
    })),
    findings,
  };
}

/** Converts sizes for `JSON.stringify`. */
export function jsonValue(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? Number(value) : value;
}

function stateOf({ stagingState, damaged, connected }: VolumeView): string {
  if (damaged !== undefined) return "damaged state file";
  if (stagingState === undefined) return "connected without state file";
  const state = !stagingState.here.staged
    ? "half staged"
    : stagingState.here.published.length > 0
    ? "published"
    : "staged";
  return connected.length > 0 ? state : `${state}, not connected`;
}

function deviceRows(
  { device, others, users }: VolumeView,
): readonly (readonly [name: string, text: string])[] {
  const all = [
    ...device === undefined ? [] : deviceFacts(device),
    ...others.map(({ path, deviceNumber }) =>
      ["device", `${path} (${deviceNumber}), of another epoch, or not usable now`] as const
    ),
  ];
  if (all.length === 0) return [["device", "none"]];
  return [
    ...all,
    ...users.length === 0 ? [["used", "by nothing else"] as const] : [],
    ...users.map(describeUser).map(({ words, fix }) => ["used", `${words}; to end that: ${fix}`] as const),
  ];
}

function deviceFacts({ found, readOnly, mismatch }: DeviceView): (readonly [name: string, text: string])[] {
  const { path, deviceNumber, sizeBytes, nsid, uniqueId } = found;
  const size = `${formatBytes(sizeBytes)} (${sizeBytes} bytes)`;
  return [
    ["device", `${path} (${deviceNumber}), ${size}${readOnly ? ", read-only" : ""}`],
    [
      "identity",
      `nsid=${nsid} id=${uniqueId || "none"}, ${mismatch === undefined ? "proven just now" : "NOT PROVEN"}`,
    ],
  ];
}

function endpoint(
  { address, port, hostNqn }: { readonly address: string; readonly port: number; readonly hostNqn: string },
): string {
  return `${address === "" ? "" : ` at ${address} port ${port}`}${hostNqn === "" ? "" : ` as ${hostNqn}`}`;
}

function describeMount({ path, role, entry, deviceNumber }: MountView): string {
  if (entry === undefined) return `${path} (${role}): nothing is mounted`;
  const what = entry.deviceNumber.startsWith("0:") ? "device" : entry.filesystem;
  return `${path} (${role}): ${what} ${deviceNumber ?? "unknown"} ${entry.mountOptions.join(",")}`;
}
