import { type Environment, type NodeConfig, readNode } from "./config/config.ts";
import { type FlagTable, type FlagValues, readFlags } from "./flags.ts";
import type { KernelFiles } from "../host/kernel_files.ts";
import { assertNodeId } from "../volume/model/ids/ids.ts";

/** The node's configuration, and where its id comes from. */
export interface NodeOptions {
  readonly config: NodeConfig;
  /** The id is only this machine's name, because no flag sets it. */
  readonly nodeIdGuessed: boolean;
}

/**
 * Reads the flags of a command on a node; without a node id it uses this machine's name, as the kubelet does. Problems
 * are added to the flags'.
 */
export function readNodeFlags(
  table: FlagTable,
  args: readonly string[],
  env: Environment,
  files: Pick<KernelFiles, "readText">,
): { readonly flags: FlagValues; readonly node: NodeOptions } {
  const given = readFlags(table, args, env).isGiven("node-id");
  const guess = given ? undefined : machineName(files);
  const lastVariable = table["node-id"]!.env!.at(-1);
  const flags = readFlags(table, args, (name) => name === lastVariable && !given ? guess : env(name));
  return { flags, node: { config: readNode(flags), nodeIdGuessed: guess !== undefined } };
}

function machineName(files: Pick<KernelFiles, "readText">): string | undefined {
  const name = files.readText("/proc/sys/kernel/hostname")?.trim().toLowerCase() ?? "";
  try {
    assertNodeId(name);
    return name;
  } catch {
    return undefined;
  }
}
