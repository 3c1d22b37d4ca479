import { type Environment, type NodeConfig, readNode } from "../config/config.ts";
import { nodeFlags, routerFlags } from "../config/flag_tables.ts";
import { readNvmeAddress } from "../config/router_settings.ts";
import { FlagError, type FlagTable, readFlags } from "../flags.ts";

const json = { form: "switch", help: "Print the result as a JSON object." } as const;

/** Flags of `rds-csi attach`. */
export const attachFlags: FlagTable = {
  json,
  "nvme-address": {
    form: "text",
    env: ["RDS_NVME_ADDRESS"],
    help: "Address of the router's exports; required unless --existing.",
  },
  "nvme-port": routerFlags["nvme-port"]!,
  "size": { form: "integer", least: 0, fallback: "0", help: "Minimum size of the volume in bytes." },
  "existing": {
    form: "switch",
    help: "Inspect the existing connection, even one that the kubelet uses, and change nothing.",
  },
  "passphrase-stdin": {
    form: "switch",
    help: "Open an encrypted volume with the passphrase on standard input, all of it, byte for byte.",
  },
  ...nodeFlags,
};

/** Flags of `rds-csi detach`. */
export const detachFlags: FlagTable = { json, ...nodeFlags };

/** The options of `rds-csi attach`. */
export interface AttachOptions {
  readonly config: NodeConfig;
  /** An NQN or a volume id. */
  readonly subject: string;
  readonly json: boolean;
  /** "" only with `existing`. */
  readonly address: string;
  readonly port: number;
  /** The least size that it must have. */
  readonly sizeBytes: bigint;
  /** Only inspect the connection, because another process made it. */
  readonly existing: boolean;
  /** Whether to open it with the passphrase on standard input. */
  readonly opens: boolean;
}

/** The options of `rds-csi detach`. */
export type DetachOptions = Pick<AttachOptions, "config" | "subject" | "json">;

/**
 * Reads the command line of `rds-csi attach`.
 *
 * @throws {FlagError} naming all problems at once
 */
export function readAttachOptions(args: readonly string[], env: Environment): AttachOptions {
  const [subject, rest] = takeSubject(args);
  const flags = readFlags(attachFlags, rest, withAnyNode(env, rest));
  const existing = flags.switch("existing");
  const options = {
    config: readNode(flags),
    subject,
    json: flags.switch("json"),
    address: readNvmeAddress(flags) ||
      (existing ? "" : flags.required("nvme-address", "unless --existing is given")),
    port: flags.number("nvme-port"),
    sizeBytes: BigInt(flags.number("size")),
    existing,
    opens: flags.switch("passphrase-stdin"),
  };
  if (existing && options.opens) {
    throw new FlagError([
      "--passphrase-stdin opens a volume, and --existing changes nothing: use one of them",
    ]);
  }
  flags.assertNoProblems();
  return options;
}

/**
 * Reads the command line of `rds-csi detach`.
 *
 * @throws {FlagError} naming all problems at once
 */
export function readDetachOptions(args: readonly string[], env: Environment): DetachOptions {
  const [subject, rest] = takeSubject(args);
  const flags = readFlags(detachFlags, rest, (name) => env(name) || anyNode[name]);
  const options = { config: readNode(flags), subject, json: flags.switch("json") };
  flags.assertNoProblems();
  return options;
}

/** A node id for commands that connect nothing, so that it does not matter. */
const anyNode: Readonly<Record<string, string>> = { KUBE_NODE_NAME: "any-node" };

/** An inspection of a connection needs no node id. */
function withAnyNode(env: Environment, args: readonly string[]): Environment {
  const onlyLooks = readFlags(attachFlags, args, env).switch("existing");
  return onlyLooks ? (name) => env(name) || anyNode[name] : env;
}

function takeSubject(args: readonly string[]): readonly [subject: string, rest: readonly string[]] {
  const [subject, ...rest] = args;
  if (subject === undefined || subject.startsWith("-")) {
    throw new FlagError(["the NQN or the id of a volume is required, before the flags"]);
  }
  return [subject, rest];
}
