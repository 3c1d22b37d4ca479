import assert from "node:assert/strict";
import { Row } from "../../routeros/console/json.ts";
import { judgeDataPort, judgeSshPort } from "./firewall.ts";
import { type Access, type FilterRule, judgeAccess, parseFilter } from "./firewall_rules.ts";

/** Rules of the chain `input`, unless a rule names its own chain. */
function rules(...lines: string[]): FilterRule[] {
  const rows = lines.map((line) => ({
    chain: "input",
    ...Object.fromEntries(line.split(" ").map((pair) => pair.split("=", 2) as [string, string])),
  }));
  return parseFilter(JSON.stringify(rows));
}

function text({ state, sources, doubts }: Access): string {
  return `${state}: ${[...sources, ...doubts.map((rule) => `?${rule}`)].join("; ")}`;
}

const nodes = "action=accept protocol=tcp dst-port=4420 src-address=10.0.0.0/16";
const close = "action=drop protocol=tcp dst-port=4420";
/** MikroTik's own rules of the chain `input` for small routers. */
const defaults = [
  "action=accept connection-state=established,related,untracked",
  "action=drop connection-state=invalid",
  "action=accept protocol=icmp",
  "action=accept dst-address=127.0.0.1",
  "action=drop in-interface-list=!LAN",
];

const cases: readonly (readonly [what: string, rules: readonly string[], found: string])[] = [
  ["no rules", [], "open: "],
  ["an accept without a drop", [nodes], "open: 10.0.0.0/16"],
  ["an accept and a drop of the port", [nodes, close], "limited: 10.0.0.0/16"],
  ["an accept and a final drop", [nodes, "action=drop"], "limited: 10.0.0.0/16"],
  ["a drop before its accept", [close, nodes], "limited: "],
  ["a drop behind an accept for everyone", ["action=accept protocol=tcp dst-port=4420", close], "open: "],
  ["a drop behind an accept of everything", ["action=accept", close], "open: "],
  ["an accept from the whole internet", [nodes.replace("10.0.0.0/16", "0.0.0.0/0"), close], "open: "],
  ["a drop that is disabled", [nodes, `${close} disabled=true`], "open: 10.0.0.0/16"],
  ["a drop of an interface that is gone", [nodes, `${close} invalid=true`], "open: 10.0.0.0/16"],
  ["a drop in another chain", [nodes, `${close} chain=forward`], "open: 10.0.0.0/16"],
  ["a drop of another port", [nodes, "action=drop protocol=tcp dst-port=22"], "open: 10.0.0.0/16"],
  ["a drop of UDP", [nodes, "action=drop protocol=udp"], "open: 10.0.0.0/16"],
  [
    "a drop of a range of ports",
    [nodes, "action=drop protocol=tcp dst-port=22,4000-5000"],
    "limited: 10.0.0.0/16",
  ],
  ["a drop of all other ports", [nodes, "action=drop protocol=tcp dst-port=!4420"], "open: 10.0.0.0/16"],
  ["a drop of old connections", [nodes, `${close} connection-state=established`], "open: 10.0.0.0/16"],
  [
    "a drop of new connections",
    [nodes, `${close} connection-state=!established,related`],
    "limited: 10.0.0.0/16",
  ],
  ["a reject", [nodes, close.replace("drop", "reject")], "limited: 10.0.0.0/16"],
  ["a drop of everyone else", [`${close} src-address=!10.0.0.0/16`], "limited: 10.0.0.0/16"],
  ["a drop of one network", [`${close} src-address=10.9.0.0/16`], "open: "],
  ["a drop by the source's list", [`${close} src-address-list=!nodes`], "limited: the address list nodes"],
  ["a drop by the interface", [`${close} in-interface=!vlan9`], "limited: the interface vlan9"],
  ["counters and address lists on the way", [
    "action=passthrough",
    "action=add-src-to-address-list address-list=x",
    nodes,
    close,
  ], "limited: 10.0.0.0/16"],
  ["a machine with access to everything", ["action=accept src-address=10.9.0.2", close], "limited: 10.9.0.2"],
  ["MikroTik's defaults", defaults, "unknown: ?action=drop in-interface-list=!LAN"],
  ["MikroTik's defaults behind both rules", [nodes, close, ...defaults], "limited: 10.0.0.0/16"],
  [
    "an accept of the LAN",
    ["action=accept in-interface-list=LAN", nodes, close],
    "unknown: 10.0.0.0/16; ?action=accept in-interface-list=LAN",
  ],
  [
    "an accept of a whole network",
    ["action=accept src-address=10.0.0.0/8", close],
    "unknown: ?action=accept src-address=10.0.0.0/8",
  ],
  [
    "a drop with an unknown condition",
    [nodes, `${close} limit=5,5:packet`],
    "unknown: 10.0.0.0/16; ?action=drop protocol=tcp dst-port=4420 limit=5,5:packet",
  ],
  [
    "an accept with an unknown condition",
    ["action=accept time=8h-9h", close],
    "unknown: ?action=accept time=8h-9h",
  ],
  ["an unknown condition before a drop", [`${close} limit=5,5:packet`, close], "limited: "],
  ["an unknown action", [nodes, "action=fly", close], "unknown: 10.0.0.0/16; ?action=fly"],
  [
    "a jump to a drop",
    [nodes, "action=jump jump-target=rest", "chain=rest action=drop"],
    "limited: 10.0.0.0/16",
  ],
  ["a jump for the port", [
    "action=jump jump-target=data protocol=tcp dst-port=4420",
    "chain=data action=accept src-address=10.0.0.0/16",
    "chain=data action=drop",
  ], "limited: 10.0.0.0/16"],
  ["a jump for another port", [
    "action=jump jump-target=rest protocol=tcp dst-port=22",
    "chain=rest action=drop",
  ], "open: "],
  [
    "a jump for the internet",
    ["action=jump jump-target=wan in-interface=ether1", "chain=wan action=drop"],
    "open: ",
  ],
  ["a chain that returns", [
    "action=jump jump-target=rest",
    "chain=rest action=return",
    "chain=rest action=drop",
  ], "open: "],
  ["a chain that returns for some", [
    "action=jump jump-target=rest",
    "chain=rest action=return src-address=10.0.0.0/16",
    "chain=rest action=drop",
  ], "unknown: ?action=drop"],
  ["chains that jump in a circle", ["action=jump jump-target=input"], "unknown: ?action=jump"],
];

for (const [what, lines, found] of cases) {
  Deno.test(`judgeAccess() judges ${what}: ${found}`, () => {
    assert.equal(text(judgeAccess(rules(...lines), 4420)), found);
  });
}

Deno.test("parseFilter() reads lists and numbers, and refuses what is no list of rules", () => {
  const frame =
    '[{"chain":"input","action":"drop","protocol":"tcp","dst-port":4420,"connection-state":["new","invalid"]}]';
  assert.equal(text(judgeAccess(parseFilter(frame), 4420)), "limited: ");
  assert.throws(() => parseFilter("{}"), /no list/);
  assert.throws(() => parseFilter("[1]"), /no object/);
});

const closed = rules(nodes, close);

Deno.test("a port that is closed over IPv4 and open over IPv6 is a warning, with a fix for IPv6 alone", () => {
  const { state, found, fix } = judgeDataPort(4420, { ipv4: closed, ipv6: [] });
  assert.equal(state, "warning");
  assert.match(found, /^port 4420: over IPv4 open to 10\.0\.0\.0\/16 alone; over IPv6 open to everyone/);
  assert.match(
    fix!,
    /^if only NODES should reach it: \/ipv6\/.*passthrough.*; \/ipv6\/.*drop place-before=0; if/,
  );
});

Deno.test("a port that is closed over IPv4 is all right while IPv6 is off", () => {
  const { state, found } = judgeDataPort(4420, { ipv4: closed, ipv6: undefined });
  assert.equal(state, "ok");
  assert.match(found, /over IPv6 nothing, because it is off$/);
});

Deno.test("a port that no rule opens is a problem, whose fix comes before the drop", () => {
  for (const lines of [["action=drop"], [close, nodes]]) {
    for (const ipv6 of [undefined, rules(close)]) {
      const { state, found, fix } = judgeDataPort(4420, { ipv4: rules(...lines), ipv6 });
      assert.deepEqual([state, found], ["problem", "port 4420: no rule lets a node reach it"]);
      assert.match(fix!, /src-address=NODES action=accept place-before=0/);
    }
  }
});

Deno.test("a port closed over the IPv4 that nodes use is a problem with that fix alone, however open IPv6 is", () => {
  const filters = { ipv4: rules("action=drop"), ipv6: [] };
  const { state, fix } = judgeDataPort(4420, filters, "10.0.0.1,10.1.0.1");
  assert.equal(state, "problem");
  assert.match(fix!, /^with each network of NODES: \/ip\//);
  assert.doesNotMatch(fix!, /ipv6/);
  // A name, or an address of IPv6, may be reached.
  for (const addresses of ["", "router.lan", "fd00::1", "10.0.0.1,fd00::1"]) {
    assert.equal(judgeDataPort(4420, filters, addresses).state, "warning", addresses);
  }
});

Deno.test("rules that cannot be judged are neither approved nor a warning", () => {
  const { state, found } = judgeDataPort(4420, { ipv4: rules(...defaults), ipv6: undefined });
  assert.equal(state, "skipped");
  assert.match(found, /cannot be judged who gets through "action=drop in-interface-list=!LAN"/);
});

const service = (fields: object) => new Row({ name: "ssh", port: 22n, ...fields }, "service");

Deno.test("SSH is limited by its service as well as by the firewall", () => {
  const open = { ipv4: [], ipv6: [] };
  for (
    const [property, value] of [["available-from", "10.0.0.0/16"], ["address", ["10.0.0.0/16"]]] as const
  ) {
    const { state, found } = judgeSshPort(service({ [property]: value }), open);
    assert.deepEqual([state, found], [
      "ok",
      "SSH, port 22: the service takes connections from 10.0.0.0/16 alone",
    ]);
  }
  assert.equal(judgeSshPort(service({ address: "0.0.0.0/0" }), open).state, "warning");
  assert.match(judgeSshPort(service({ address: "" }), open).fix!, /ssh"\] address=NODES$/);
  assert.match(judgeSshPort(service({ "available-from": "" }), open).fix!, /ssh"\] available-from=NODES$/);
  assert.equal(judgeSshPort(undefined, { ipv4: rules("action=drop"), ipv6: undefined }).state, "ok");
});
