import type { FilesystemType } from "../../volume/model/capabilities.ts";
import type { DeviceLayer } from "../../volume/model/device_layer.ts";
import { parseMkfsOptions, withoutPanic } from "../../volume/model/filesystem/mkfs_options.ts";
import { fromLegacyContext } from "../../volume/model/parameters.ts";
import { type ContextValues, wrongContextValue } from "../../volume/model/publish_context.ts";
import type { KeyCost } from "../../volume/ports/encryption.ts";
import type { Target } from "../../volume/ports/node_ports.ts";

/** What the StorageClass passes to the node. */
export interface NodeParameters {
  readonly connection: Pick<
    Target,
    "ctrlLossTmo" | "reconnectDelay" | "keepAliveTmo" | "nrIoQueues" | "fastIoFailTmo" | "digests"
  >;
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
  const take = (key: string, form: RegExp): string | undefined => {
    const value = Object.hasOwn(values, key) ? values[key]! : "";
    if (value === "") return undefined;
    if (form.test(value)) return value;
    throw wrongContextValue("volume context", key, value);
  };
  const number = (key: string, form = /^[1-9][0-9]{0,4}$/): number | undefined => {
    const value = take(key, form);
    return value === undefined ? undefined : Number(value);
  };
  return {
    connection: {
      ctrlLossTmo: number("ctrlLossTmo", /^(?:-1|0|[1-9][0-9]{0,4})$/),
      reconnectDelay: number("reconnectDelay"),
      // The kernel would take 0 as no keep-alive at all.
      keepAliveTmo: number("keepAliveTmo", /^(?:0|[1-9][0-9]{0,4})$/) || undefined,
      nrIoQueues: number("nrIoQueues", /^[1-9][0-9]{0,2}$/),
      fastIoFailTmo: number("fastIoFailTmo"),
      digests: [
        ...take("hdrDigest", /^(?:true|false)$/) === "true" ? ["header"] as const : [],
        ...take("dataDigest", /^(?:true|false)$/) === "true" ? ["data"] as const : [],
      ],
    },
    encryption: {
      encrypted: take("encrypted", /^(?:true|false)$/) === "true",
      allowDiscards: take("allowDiscards", /^(?:true|false)$/) === "true",
      keyCost: {
        memoryMiB: number("pbkdfMemory", /^[1-9][0-9]{1,3}$/),
        timeMs: number("pbkdfTime"),
      },
    },
    deviceLayer: take("deviceLayer", /^(?:auto|multipath|none)$/) as DeviceLayer | undefined,
    fsLabel: take("fsLabel", /^[A-Za-z0-9._][A-Za-z0-9._-]{0,11}$/),
    fsck: take("fsckMode", /^(?:preen|off)$/) === "off" ? "off" : "preen",
    mkfsOptions: filesystem === undefined
      ? []
      : parseMkfsOptions(withoutPanic(values.mkfsOptions ?? ""), filesystem),
  };
}
