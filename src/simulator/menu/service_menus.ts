import type { Router } from "../model/router.ts";
import { isPrefix } from "../ssh/users.ts";
import { Refusal } from "../refusal.ts";
import { readPort, readYesNo } from "./inputs.ts";
import { makeItemMenu } from "./item_menu.ts";
import type { Menu, Values } from "./menu.ts";
import type { ReadableProperty } from "./rows.ts";
import { isSince } from "./versions.ts";

/** The SSH service as `/ip/service` shows it. */
interface Service {
  readonly id: number;
  readonly disabled: boolean;
  readonly port: number;
}

/** The property with the allowed addresses: before RouterOS 7.24, and since. */
const origins = ["address", "available-from"] as const;

function originOf({ profile }: Router): typeof origins[number] {
  return isSince(profile.version, 24) ? "available-from" : "address";
}

/**
 * `/ip/service` with SSH. Its limit of sessions and its addresses have an effect; whether it is disabled, and its port
 * are only stored and shown.
 */
export function serviceMenu(router: Router): Menu {
  let service: Service = { id: 1, disabled: false, port: 22 };
  const maxSessions = () => router.behaviours.maxSessions;
  return makeItemMenu<Service>({
    path: "ip/service",
    verbs: ["set", "enable", "disable", "print", "find", "get"],
    columns: ["name", "port"],
    texts: ["disabled", "port", ...origins, "max-sessions"],
    properties: [
      { name: "disabled", isFlag: true, read: ({ disabled }) => disabled },
      { name: "name", read: () => "ssh" },
      { name: "port", read: ({ port }) => BigInt(port) },
      ...origins.map((name): ReadableProperty<Service> => ({
        name,
        read: () => name === originOf(router) ? router.sshOrigins.join(",") : undefined,
      })),
      {
        name: "max-sessions",
        read: () => Number.isFinite(maxSessions()) ? BigInt(maxSessions()) : undefined,
      },
    ],
    items: () => [service],
    nameOf: () => "ssh",
  }, {
    set: (_, values) => {
      service = { ...service, ...readService(values) };
      router.sshOrigins = readOrigins(values) ?? router.sshOrigins;
      const limit = values.get("max-sessions");
      if (limit === undefined) return;
      if (!/^[1-9][0-9]{0,3}$/.test(limit)) throw Refusal.noMatch("max-sessions");
      router.configure(undefined, { maxSessions: Number(limit) });
    },
  });
}

function readService(values: Values): Partial<Service> {
  const [disabled, port] = ["disabled", "port"].map((name) => values.get(name));
  return {
    ...(disabled === undefined ? {} : { disabled: readYesNo("disabled", disabled) }),
    ...(port === undefined ? {} : { port: readPort("port", port) }),
  };
}

function readOrigins(values: Values): readonly string[] | undefined {
  const name = origins.find((name) => values.get(name) !== undefined);
  const prefixes = name && values.get(name)!.split(",").filter((one) => one !== "");
  if (prefixes?.every(isPrefix) === false) throw Refusal.noMatch(name!);
  return prefixes || undefined;
}

/** A package as an item of `/system/package`. */
interface Package {
  readonly id: number;
  readonly name: string;
  readonly version: string;
  readonly disabled: boolean;
}

/** `/system/package`: enabling, disabling and uploads take effect once `apply-changes` has booted the router. */
export function packageMenu(router: Router): Menu {
  const scheduled = new Map<string, string>();
  const menu = makeItemMenu<Package>({
    path: "system/package",
    verbs: ["enable", "disable", "print", "find", "get"],
    columns: ["name", "version"],
    texts: [],
    properties: [
      { name: "name", read: ({ name }) => name },
      { name: "version", read: ({ version }) => version },
      { name: "disabled", read: ({ disabled }) => disabled },
      { name: "scheduled", read: ({ name }) => scheduled.get(name) },
    ],
    items: () => router.packages.map((one, index) => ({ ...one, id: index + 1 })),
    nameOf: ({ name }) => name,
  }, {
    set: ({ name }, values) => {
      scheduled.set(
        name,
        values.get("disabled") === "yes" ? "scheduled for disable" : "scheduled for enable",
      );
    },
  });
  const isUploaded = () => router.files.list().some(({ path }) => /^rose-storage-.*\.npk$/.test(path));
  return {
    ...menu,
    verbs: () => [...menu.verbs(), "apply-changes"],
    texts: (verb) => verb === "apply-changes" ? [] : menu.texts(verb),
    "apply-changes"() {
      const change = scheduled.get("rose-storage");
      if (change !== undefined) router.setRose(change.endsWith("enable") ? "installed" : "disabled");
      else if (isUploaded()) router.setRose("installed");
      scheduled.clear();
    },
  };
}
