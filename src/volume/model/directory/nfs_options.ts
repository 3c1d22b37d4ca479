import { VolumeError } from "../../errors.ts";
import { parseMountFlags } from "../filesystem/mount_flags.ts";

/**
 * The options that every mount has unless a volume says otherwise. `hard`: what was written is never given up.
 * `lookupcache=positive`: a node sees at once what another one, or the controller, has made. `noresvport`: a
 * connection comes back after a partition, whatever ports are taken.
 */
const defaults = ["hard", "lookupcache=positive", "noresvport"];

/** Options that break what the driver promises, with the reason. */
const refused: Readonly<Record<string, string>> = {
  soft: "writes would be lost when the server does not answer for a while",
  softerr: "writes would be lost when the server does not answer for a while",
  nolock: "locks would hold on this node only",
  nosharecache: "one node would have several caches of one directory",
  bg: "the call would end before anything is mounted",
  retry: "the driver itself repeats what fails",
  udp: "NFSv4 needs TCP",
  port: "the port belongs to the addresses",
  addr: "the volume context says where the server is",
};

/** Options of which only some values are allowed. */
const allowed: Readonly<Record<string, RegExp>> = {
  vers: /^4(?:\.[0-2])?$/,
  minorversion: /^[0-2]$/,
  proto: /^(?:tcp6?|rdma)$/,
  local_lock: /^none$/,
};

/** Options that only have a meaning for NFS before version 4, or that the kernel sets itself. */
const foreign = /^(?:mount(?:addr|host|port|proto|vers|prog)|nfsprog|clientaddr|lock|nfsvers)$/;

/** Pairs of words that set one thing. */
const negatable =
  /^no(?=(?:resvport|ac|cto|fsc|rdirplus|acl|migration|sharetransport|exec|suid|dev|atime|diratime|relatime)$)/;

/** The options of a directory's mount. */
export interface NfsOptions {
  /** Whether the volume is only read: that is done by its binds, so that all volumes share a mount. */
  readonly readOnly: boolean;
  /** All options, with the defaults, without duplicates, sorted. */
  readonly options: readonly string[];
}

/**
 * Parses the mount flags of a shared directory. A later flag replaces an earlier one, and any flag a default.
 *
 * @throws {VolumeError} invalid when a flag is not allowed
 */
export function parseNfsOptions(mountFlags: readonly string[]): NfsOptions {
  const { readOnly, flags } = parseMountFlags(mountFlags);
  const settings = new Map<string, string>();
  for (const flag of [...defaults, ...flags.map(canonical)]) settings.set(settingOf(flag), flag);
  return { readOnly, options: [...settings.values()].toSorted() };
}

function canonical(flag: string): string {
  // Also `v3` alone: mount.nfs4 takes it for a version.
  const option = flag.replace(/^(?:nfsvers=|v(?=[0-9]))/, "vers=");
  const [name = "", value = ""] = option.split("=", 2);
  const form = Object.hasOwn(allowed, name) ? allowed[name] : undefined;
  const why = Object.hasOwn(refused, name)
    ? refused[name]
    : foreign.test(name)
    ? "it is not one of NFSv4, or the kernel sets it"
    : form !== undefined && !form.test(value)
    ? `its value is not supported: value=${value}`
    : undefined;
  if (why === undefined) return option;
  throw new VolumeError("invalid", `Cannot use the mount flags because ${why}: flag=${name}`);
}

function settingOf(flag: string): string {
  return flag.replace(/=.*$/, "").replace(negatable, "");
}
