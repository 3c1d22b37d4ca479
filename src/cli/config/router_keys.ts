import type { FlagForm, FlagValues } from "../flags.ts";
import { routerFlags } from "./flag_tables.ts";

/** A key of a router in the file of `--config`. */
export interface RouterKey {
  /** The flag with the same meaning for an only router, whose bounds apply here. */
  readonly flag?: string;
  readonly form: FlagForm | "map";
  /** Its help, as a sentence. */
  readonly help: string;
}

/** Every key that a router may have in the file: its own, and those of the flags that have one. */
export const routerKeys: Readonly<Record<string, RouterKey>> = {
  name: {
    form: "text",
    help:
      "Name of the router in volume ids, StorageClasses (`backend`), metrics and logs, in the form of a DNS label of at " +
      "most 32 characters. Required. Never change it while there are volumes.",
  },
  default: {
    form: "switch",
    help:
      "Whether volumes go here if a StorageClass names no `backend`; their ids have no prefix, like those that were " +
      "made with flags. At most one router has it. Never move it to another router while volumes exist.",
  },
  ...Object.fromEntries(
    Object.entries(routerFlags).flatMap(([flag, { key, form, help }]) =>
      key === undefined ? [] : [[key, { flag, form, help }]]
    ),
  ),
  topology: {
    form: "map",
    help:
      "Topology segments that reach this router, such as `rack: a`: nodes with the same `--topology` can use its " +
      "volumes. If one router has it, every router needs it, with the same keys.",
  },
};

const topologyKeyForm =
  /^(?:[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?\/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;
const topologyValueForm = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;

/** Whether a topology can have this segment (Kubernetes' form of labels, as CSI specification v1.13.0, Topology). */
export function isSegment(key: string, value: string): boolean {
  return topologyKeyForm.test(key) && topologyValueForm.test(value);
}

/** A router in the file of `--config`. */
export interface FileRouter {
  /** Its file and position, for messages. */
  readonly at: string;
  readonly name: string;
  readonly isDefault: boolean;
  readonly topology: Readonly<Record<string, string>>;
  /** All other keys, as the flags with the same meaning; their problems name file and key. */
  readonly flags: FlagValues;
}

/** The content of a file of `--config`; the routers can only be used when there are no problems. */
export interface RoutersFile {
  readonly routers: readonly FileRouter[];
  /** Each names file, key, value and what is allowed. A value that may be a secret is not shown. */
  readonly problems: readonly string[];
}

/** Parses the file of `--config`. */
export type RoutersParser = (text: string, file: string) => RoutersFile;
