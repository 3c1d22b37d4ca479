import { parseDocument } from "yaml";
import { FlagValues } from "../flags.ts";
import { backendNameWords, isBackendName } from "../../volume/model/ids/handles.ts";
import { routerFlags } from "./flag_tables.ts";
import { type FileRouter, isSegment, type RouterKey, routerKeys, type RoutersFile } from "./router_keys.ts";

type Problem = (at: string, wording: string) => void;

/** Parses the file of `--config`. It reports all problems at once, as far as one router's keys go. */
export function parseRoutersFile(text: string, file: string): RoutersFile {
  const problems: string[] = [];
  const problem: Problem = (at, wording) => void problems.push(`${file}: ${at} ${wording}`);
  const document = parseDocument(text, { logLevel: "silent" });
  // The library's own messages quote the text, which may contain a password by mistake.
  for (const { code, linePos: [start] = [] } of document.errors) {
    problem(start === undefined ? "it" : `line ${start.line}, column ${start.col}`, `is not YAML: ${code}`);
  }
  if (problems.length > 0) return { routers: [], problems };
  const root = plainOf(document, problem);
  if (problems.length > 0) return { routers: [], problems };
  if (!isMap(root)) {
    problem("it", "has to be a map with the key routers");
    return { routers: [], problems };
  }
  for (const key of Object.keys(root)) {
    if (key !== "routers") problem(shown(key), "is not a key of this file; use routers");
  }
  const list = root["routers"];
  if (!Array.isArray(list) || list.length === 0) {
    problem("routers", "has to be a list of at least one router");
    return { routers: [], problems };
  }
  const routers = list.flatMap((entry: unknown, index) => {
    const at = `routers[${index}]`;
    if (isMap(entry)) return [readRouter(entry, { file, at, problem })];
    problem(at, `has to be a map with the keys ${Object.keys(routerKeys).join(", ")}`);
    return [];
  });
  compareNames(routers, problem);
  compareTopologies(routers, problem);
  return { routers: routers.map((router) => ({ ...router, at: `${file}: ${router.at}` })), problems };
}

/** An alias could refer to nothing, or make a small file huge. */
function plainOf(document: ReturnType<typeof parseDocument>, problem: Problem): unknown {
  try {
    return document.toJS({ maxAliasCount: 0 });
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error;
    problem("it", "has an alias (*): use plain values");
  }
}

interface Place {
  readonly file: string;
  readonly at: string;
  readonly problem: Problem;
}

function readRouter(entry: Readonly<Record<string, unknown>>, location: Place): FileRouter {
  const { file, at, problem } = location;
  const given = new Map<string, readonly string[]>();
  for (const [key, value] of Object.entries(entry)) {
    const known = Object.hasOwn(routerKeys, key) ? routerKeys[key] : undefined;
    if (known === undefined) {
      problem(
        `${at}.${shown(key)}`,
        `is not a key of a router: use one of ${Object.keys(routerKeys).join(", ")}`,
      );
    } else if (known.flag !== undefined || known.form === "switch") {
      const texts = textsOf(known, value);
      if (texts === undefined) {
        problem(`${at}.${key}`, `cannot be ${shownValue(key, value)}; use ${formWords[known.form]}`);
      } else if (known.flag !== undefined) given.set(known.flag, texts);
    }
  }
  const nameOf = (flag: string) => `${file}: ${at}.${routerFlags[flag]?.key ?? flag}`;
  const flags = new FlagValues(routerFlags, given, [], nameOf);
  return {
    at,
    name: readName(entry["name"], at, problem),
    isDefault: entry["default"] === true,
    topology: readTopology(entry["topology"], at, problem),
    flags,
  };
}

const formWords: Readonly<Record<RouterKey["form"], string>> = {
  text: "text",
  list: "a list of texts",
  switch: "true or false",
  integer: "a whole number",
  number: "a number",
  duration: "a duration such as 250ms, 10s, 5m or 1h",
  map: "a map of texts",
};

/** A value in the form of its flag; undefined for one of another type. */
function textsOf({ form }: RouterKey, value: unknown): readonly string[] | undefined {
  switch (form) {
    case "list":
      return Array.isArray(value) && value.every((one) => typeof one === "string") ? value : undefined;
    case "switch":
      return typeof value === "boolean" ? [String(value)] : undefined;
    case "integer":
    case "number":
      return typeof value === "number" ? [String(value)] : undefined;
    default:
      return typeof value === "string" ? [value] : undefined;
  }
}

function readName(value: unknown, at: string, problem: Problem): string {
  if (typeof value === "string" && isBackendName(value)) return value;
  if (value === undefined) problem(`${at}.name`, `is required: ${backendNameWords}`);
  else problem(`${at}.name`, `cannot be ${shownValue("name", value)}; use ${backendNameWords}`);
  return "";
}

function readTopology(value: unknown, at: string, problem: Problem): Readonly<Record<string, string>> {
  if (value === undefined) return {};
  if (!isMap(value) || Object.keys(value).length === 0) {
    problem(
      `${at}.topology`,
      `cannot be ${shownValue("topology", value)}; use a map of at least one segment`,
    );
    return {};
  }
  for (const [key, segment] of Object.entries(value)) {
    if (typeof segment === "string" && isSegment(key, segment)) continue;
    const allowed = "a key and a text in the form of Kubernetes' labels";
    problem(
      `${at}.topology.${shown(key)}`,
      `cannot be ${shownValue("topology", segment)}; use ${allowed}`,
    );
  }
  return value as Readonly<Record<string, string>>;
}

function compareNames(routers: readonly FileRouter[], problem: Problem): void {
  const seen = new Map<string, string>();
  let defaultAt: string | undefined;
  for (const { at, name, isDefault } of routers) {
    const other = name === "" ? undefined : seen.get(name);
    if (other !== undefined) {
      problem(
        `${at}.name`,
        `cannot be ${JSON.stringify(name)} because ${other} has that name`,
      );
    }
    seen.set(name, at);
    if (isDefault && defaultAt !== undefined) {
      problem(`${at}.default`, `cannot be true because ${defaultAt} is the default router`);
    }
    if (isDefault) defaultAt ??= at;
  }
}

/** Nodes have one set of topology keys: a router without one of them could never be out of a node's reach. */
function compareTopologies(routers: readonly FileRouter[], problem: Problem): void {
  const keysOf = ({ topology }: FileRouter) => Object.keys(topology).toSorted().join(", ");
  const first = routers.find((router) => keysOf(router) !== "");
  if (first === undefined) return;
  for (const router of routers) {
    const keys = keysOf(router);
    if (keys === keysOf(first)) continue;
    problem(
      `${router.at}.topology`,
      `cannot have ${keys === "" ? "no keys" : `the keys ${keys}`}: ` +
        `use those of ${first.at}, ${keysOf(first)}`,
    );
  }
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An unknown key, shortened: a whole line may have become one by mistake. */
function shown(key: string): string {
  return /^[A-Za-z0-9_.\/-]{1,40}$/.test(key) ? key : "a key that is not shown";
}

/** A value in place of a file of credentials may be the credential. */
function shownValue(key: string, value: unknown): string {
  const isHidden = key === "keyFile" || key === "passwordFile" || typeof value === "object" && value !== null;
  return isHidden
    ? "the given value, which is hidden because it may be a secret"
    : JSON.stringify(value)?.slice(0, 80) ?? "empty";
}
