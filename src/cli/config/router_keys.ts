import type { FlagTable, FlagValues } from "../flags.ts";

/** A key of a router in the file of `--config`. */
export interface RouterKey {
  /** The flag with the same meaning for an only router, whose bounds apply here. */
  readonly flag?: string;
  /** How the value is written. */
  readonly form: "text" | "list" | "true or false" | "whole number" | "number" | "duration" | "map";
  /** Its help, as a sentence; that of the flag where there is none. */
  readonly help?: string;
}

/** Every key that a router may have in the file. */
export const routerKeys: Readonly<Record<string, RouterKey>> = {
  name: {
    form: "text",
    help:
      "Name of the router in volume ids, StorageClasses (`backend`), metrics and logs, in the form of a DNS label of at " +
      "most 32 characters. Required. Never change it while there are volumes.",
  },
  default: {
    form: "true or false",
    help:
      "Whether volumes go here if a StorageClass names no `backend`; their ids have no prefix, like those that were " +
      "made with flags. At most one router has it. Never move it to another router while volumes exist.",
  },
  address: { flag: "rds-address", form: "text" },
  port: { flag: "rds-port", form: "whole number" },
  user: { flag: "rds-user", form: "text" },
  keyFile: { flag: "rds-key", form: "text" },
  passwordFile: { flag: "rds-password-file", form: "text" },
  hostKeys: { flag: "rds-host-key", form: "list" },
  basePaths: { flag: "base-path", form: "list" },
  nvmeAddress: { flag: "nvme-address", form: "text" },
  nvmePort: { flag: "nvme-port", form: "whole number" },
  settleTime: { flag: "settle-time", form: "duration" },
  unexportGrace: { flag: "unexport-grace", form: "duration" },
  overcommit: { flag: "overcommit", form: "number" },
  routerProfile: { flag: "router-profile", form: "text" },
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

/** Parses the file of `--config`; `table` has the flags that its keys correspond to. */
export type RoutersParser = (text: string, file: string, table: FlagTable) => RoutersFile;
