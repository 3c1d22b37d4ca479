import type { FilesystemType } from "../../volume/model/capabilities.ts";
import type { DeviceLayer } from "../../volume/model/device_layer.ts";
import { parseMkfsOptions, withoutPanic } from "../../volume/model/filesystem/mkfs_options.ts";
import { fromLegacyContext, nodeForms } from "../../volume/model/parameters.ts";
import type { ContextValues } from "../../volume/model/publish_context.ts";
import { wrongContextValue } from "../../volume/model/parse_context.ts";
import type { KeyCost } from "../../volume/ports/encryption.ts";
import type { ConnectionSettings } from "../../volume/model/staging/state.ts";

/** What the StorageClass passes to the node. */
export interface NodeParameters {
  readonly connection: ConnectionSettings;
  /** Undefined where the StorageClass says nothing about it. */
  readonly deviceLayer: DeviceLayer | undefined;
  readonly encryption: {
    readonly encrypted: boolean;
    readonly allowDiscards: boolean;
    readonly keyCost: KeyCost;
  };
  readonly fsLabel: string | undefined;
  readonly fsck: "preen" | "off";
  /** Arguments for mkfs. */
  readonly mkfsOptions: readonly string[];
}

/**
 * Parses the node's part of a volume context. `filesystem` is undefined for a block volume, whose mkfs options are
 * ignored.
 *
 * @throws {VolumeError} invalid when a value is wrong
 */
export function parseNodeParameters(
  given: ContextValues,
  filesystem: FilesystemType | undefined,
): NodeParameters {
  const values = fromLegacyContext(given);
  const take = (key: keyof typeof nodeForms): string | undefined => {
    const value = Object.hasOwn(values, key) ? values[key]! : "";
    if (value === "") return undefined;
    if (nodeForms[key](value) === undefined) return value;
    throw wrongContextValue("volume context", key, value);
  };
  const number = (key: keyof typeof nodeForms): number | undefined => {
    const value = take(key);
    return value === undefined ? undefined : Number(value);
  };
  return {
    connection: {
      ctrlLossTmo: number("ctrlLossTmo"),
      reconnectDelay: number("reconnectDelay"),
      // The kernel would take 0 as no keep-alive at all.
      keepAliveTmo: number("keepAliveTmo") || undefined,
      nrIoQueues: number("nrIoQueues"),
      fastIoFailTmo: number("fastIoFailTmo"),
      digests: [
        ...take("hdrDigest") === "true" ? ["header"] as const : [],
        ...take("dataDigest") === "true" ? ["data"] as const : [],
      ],
    },
    encryption: {
      encrypted: take("encrypted") === "true",
      allowDiscards: take("allowDiscards") === "true",
      keyCost: {
        memoryMiB: number("pbkdfMemory"),
        timeMs: number("pbkdfTime"),
      },
    },
    deviceLayer: take("deviceLayer") as DeviceLayer | undefined,
    fsLabel: take("fsLabel"),
    fsck: take("fsckMode") === "off" ? "off" : "preen",
    mkfsOptions: filesystem === undefined
      ? []
      : parseMkfsOptions(withoutPanic(values.mkfsOptions ?? ""), filesystem),
  };
}
