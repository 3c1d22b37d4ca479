import { type JsonValue, parseJson, unreadable } from "../../routeros/console/json.ts";

/** A rule of the firewall's filter: the values that it has, as texts. */
export type FilterRule = ReadonlyMap<string, string>;

/** Who gets through the chain `input` with a new TCP connection to a port, as far as the rules show it. */
export interface Access {
  /** `limited` means that a rule drops everyone but the sources; `unknown`, that some rule cannot be judged. */
  readonly state: "open" | "limited" | "unknown";
  /** The sources that are let in, such as `10.0.0.0/16`. */
  readonly sources: readonly string[];
  /** The rules that cannot be judged, and the wide ones that may let in more than the nodes. */
  readonly doubts: readonly string[];
}

/**
 * Parses `/ip/firewall/filter/print detail as-value`: the rules in their order, without those that have no effect.
 *
 * @throws {VolumeError} unavailable when it is no list of objects
 */
export function parseFilter(frame: string): FilterRule[] {
  const what = "list of firewall rules";
  const rows = parseJson(frame, what);
  if (!Array.isArray(rows)) throw unreadable(what, "it is no list");
  const rules = rows.map((row: JsonValue) => {
    if (typeof row !== "object" || row === null) throw unreadable(what, "an item of it is no object");
    return new Map(Object.entries(row).map(([name, value]) => [name, textOf(value)]));
  });
  return rules.filter((rule) => !["disabled", "invalid"].some((flag) => isTrue(rule.get(flag))));
}

function textOf(value: JsonValue): string {
  if (Array.isArray(value)) return value.map(textOf).join(",");
  return value === null || typeof value === "object" ? "" : String(value);
}

function isTrue(text: string | undefined): boolean {
  return text === "true" || text === "yes";
}

/** Judges who reaches a TCP port of the router. */
export function judgeAccess(rules: readonly FilterRule[], port: number): Access {
  const walk: Walk = {
    port,
    rules,
    sources: new Set(),
    remaining: [],
    doubtfulAccepts: [],
    doubtfulDrops: [],
  };
  const isClosed = walkChain("input", everyone, walk, 0) === "drop";
  const remaining = isClosed ? [] : walk.remaining;
  const narrow = remaining.filter(({ isNarrow }) => isNarrow);
  // Each of the remaining limits is one that a connection has to meet: a single narrow one is enough.
  const isOpen = !isClosed && narrow.length === 0;
  const sources = [...walk.sources, ...narrow.map(({ text }) => text)];
  const wide = isOpen ? remaining.map(({ text }) => text) : [];
  const doubts = [...walk.doubtfulAccepts, ...wide, ...isOpen && wide.length === 0 ? walk.doubtfulDrops : []];
  if (isOpen && doubts.length === walk.doubtfulAccepts.length) return { state: "open", sources, doubts: [] };
  return { state: doubts.length === 0 ? "limited" : "unknown", sources, doubts: [...new Set(doubts)] };
}

/** A rule's limit to some sources. */
interface Source {
  readonly text: string;
  readonly negated: boolean;
}

/** The connections that a rule matches. */
interface Match {
  /** All of these have to hold. */
  readonly sources: readonly Source[];
  /** Whether it has a condition that is not understood: it matches at most what the sources allow. */
  readonly isUnclear: boolean;
  /** Whether the rule is meant for this port, and not for all traffic. */
  readonly namesPort: boolean;
}

const everyone: Match = { sources: [], isUnclear: false, namesPort: false };

/** What a walk through the rules has found so far. */
interface Walk {
  readonly port: number;
  readonly rules: readonly FilterRule[];
  readonly sources: Set<string>;
  /** What a rule such as "drop what does not come from X" leaves. */
  readonly remaining: { readonly text: string; readonly isNarrow: boolean }[];
  readonly doubtfulAccepts: string[];
  readonly doubtfulDrops: string[];
}

const maxDepth = 16;
const drops: readonly string[] = ["drop", "reject", "tarpit"];
const passes = /^(passthrough|log|add-(src|dst)-to-address-list|fasttrack-connection)$/;

/**
 * Follows a new connection through a chain; returns the action that ends it for everyone whom `context` matches, or
 * "return" when nothing does.
 */
function walkChain(chain: string, context: Match, walk: Walk, depth: number): "accept" | "drop" | "return" {
  let within = context;
  for (const rule of walk.rules.filter((one) => one.get("chain") === chain)) {
    const own = matchOf(rule, walk.port);
    if (own === undefined) continue;
    const match = both(within, own);
    const action = rule.get("action") || "accept";
    if (passes.test(action)) continue;
    if (action === "return" && chain !== "input") {
      if (own.sources.length === 0 && !own.isUnclear) return "return";
      // What follows in this chain is for some only.
      within = { ...within, isUnclear: true };
      continue;
    }
    const end = action === "jump" && depth < maxDepth
      ? walkChain(rule.get("jump-target") ?? "", match, walk, depth + 1)
      : apply(action, match, rule, walk);
    if (end === "accept" || end === "drop") return end;
  }
  return "return";
}

/** Notes what a rule does with the connections that it matches; returns its action if it matches everyone. */
function apply(action: string, match: Match, rule: FilterRule, walk: Walk): "accept" | "drop" | undefined {
  const isForAll = match.sources.length === 0 && !match.isUnclear;
  // At the end of the chain `input` everything is accepted.
  if (action === "accept" || action === "return") {
    if (isForAll) return "accept";
    if (isNarrow(match)) walk.sources.add(match.sources.map(({ text }) => text).join(" and "));
    else walk.doubtfulAccepts.push(describe(rule));
  } else if (drops.includes(action)) {
    if (isForAll) return "drop";
    const [only] = match.sources;
    if (match.isUnclear) walk.doubtfulDrops.push(describe(rule));
    else if (match.sources.length === 1 && only!.negated) {
      const left = { ...only!, negated: false };
      walk.remaining.push(
        isNarrow({ ...match, sources: [left] })
          ? { text: left.text, isNarrow: true }
          : { text: describe(rule), isNarrow: false },
      );
    }
  } else {
    walk.doubtfulAccepts.push(describe(rule));
    walk.doubtfulDrops.push(describe(rule));
  }
  return undefined;
}

/** Whether an accept is a deliberate one: for this port, or for single machines. */
function isNarrow({ sources, namesPort }: Match): boolean {
  return sources.some(({ negated, text }) => !negated && (namesPort || isHost(text)));
}

function isHost(text: string): boolean {
  return text.includes(":") ? /^[0-9a-f:.]+(\/128)?$/i.test(text) : /^[0-9.]+(\/32)?$/.test(text);
}

function both(one: Match, other: Match): Match {
  return {
    sources: [...one.sources, ...other.sources],
    isUnclear: one.isUnclear || other.isUnclear,
    namesPort: one.namesPort || other.namesPort,
  };
}

/** Fields of a rule that are no condition. */
const noConditions = new Set([
  ...[".id", ".nextid", ".about", "chain", "action", "comment", "jump-target", "log", "log-prefix", "bytes"],
  ...["packets", "disabled", "invalid", "dynamic", "reject-with", "address-list", "address-list-timeout"],
  ...["creation-time"],
]);

/** Conditions by which a rule limits the sources, with the word for each. */
const sourceWords: ReadonlyMap<string, string> = new Map([
  ["src-address", ""],
  ["src-address-list", "the address list "],
  ["src-mac-address", "MAC address "],
  ["in-interface", "the interface "],
  ["in-interface-list", "the interface list "],
  ["in-bridge-port", "the bridge port "],
  ["in-bridge-port-list", "the bridge port list "],
]);

/** The new TCP connections to a port that a rule matches; undefined for none. */
function matchOf(rule: FilterRule, port: number): Match | undefined {
  const sources: Source[] = [];
  let isUnclear = false;
  let namesPort = false;
  for (const [name, value] of rule) {
    if (value === "" || noConditions.has(name)) continue;
    const negated = value.startsWith("!");
    const text = negated ? value.slice(1) : value;
    const word = sourceWords.get(name);
    const matched = word === undefined
      ? conditionOf(name, text, port)
      : isOfRouter(text)
      ? false
      : isEverything(name, text)
      ? true
      : undefined;
    if (matched === undefined && word !== undefined) sources.push({ text: word + text, negated });
    else if (matched === undefined) isUnclear = true;
    else if (matched === negated) return undefined;
    if (name === "dst-port" && !negated) namesPort = true;
  }
  return { sources, isUnclear, namesPort };
}

/** Whether a new TCP connection to the port meets a condition; undefined when that cannot be said. */
function conditionOf(name: string, text: string, port: number): boolean | undefined {
  const parts = text.split(",");
  switch (name) {
    case "protocol":
      return parts.some((part) => part === "tcp" || part === "6");
    case "dst-port":
    case "port":
      return parts.some((part) => holdsPort(part, port)) || (name === "port" ? undefined : false);
    case "connection-state":
      return parts.includes("new");
    case "dst-address":
      return isOfRouter(text) ? false : undefined;
    default:
      return undefined;
  }
}

function holdsPort(range: string, port: number): boolean {
  const [first, last = first] = range.split("-").map(Number);
  return first! <= port && port <= last!;
}

/** The router's own traffic with itself. */
function isOfRouter(text: string): boolean {
  return text === "lo" || /^127\.[0-9.]+(\/(8|16|24|32))?$/.test(text) || /^::1(\/128)?$/.test(text);
}

function isEverything(name: string, text: string): boolean {
  return name === "src-address" ? /\/0$/.test(text) : name.endsWith("-list") && text === "all" &&
    name !== "src-address-list";
}

/** A rule for people, as it would be typed. */
function describe(rule: FilterRule): string {
  const parts = [...rule].filter(([name, value]) => value !== "" && !noConditions.has(name))
    .map(([name, value]) => `${name}=${value}`);
  return [`action=${rule.get("action") || "accept"}`, ...parts].join(" ");
}
