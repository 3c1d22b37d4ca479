import assert from "node:assert/strict";
import { parse, parseAllDocuments } from "yaml";
import { judgeDataPort, judgeSshPort } from "../../src/doctor/router/firewall.ts";
import { parseFilter } from "../../src/doctor/router/firewall_rules.ts";
import { addCommand, jsonCommand, makeBasePath, makeRouter, typeTo } from "../support/simulated_router.ts";
import { blocksOf, readPage } from "./pages.ts";

const blocks = blocksOf(readPage("docs/quick-start.md"));

// The suite node_machine_quick_start of tests/guest runs the blocks; these tests only check that it can.

Deno.test("every block of the quick start is for the router's terminal or for a shell, so that none is left out", () => {
  assert.deepEqual([...new Set(blocks.map(({ language }) => language))].toSorted(), ["routeros", "sh"]);
});

Deno.test("lines for the router's terminal are whole commands", () => {
  const lines = blocks.filter(({ language }) => language === "routeros").flatMap(({ text }) =>
    text.split("\n")
  );
  assert(lines.length > 12);
  assert.deepEqual(lines.filter((line) => !/^\/[a-z]/.test(line)), []);
});

Deno.test("the quick start removes what it has made", () => {
  const typed = blocks.map(({ text }) => text).join("\n");
  for (
    const [made, taken] of [
      ["kubectl create namespace rds-csi", "kubectl delete namespace rds-csi"],
      ["helm install rds-csi", "helm uninstall rds-csi"],
      ["/ip/firewall/filter/add", '/ip/firewall/filter/remove [find where comment="rds-csi"]'],
      ["/ipv6/firewall/filter/add", '/ipv6/firewall/filter/remove [find where comment="rds-csi"]'],
      ["/user/add name=rds-csi", "/user/remove rds-csi"],
      ["/user/group/add name=rds-csi", "/user/group/remove rds-csi"],
      ["name: first", "kubectl delete pvc first"],
    ] as const
  ) assert(typed.indexOf(made) >= 0 && typed.indexOf(taken) > typed.indexOf(made), `${made}: ${taken}`);
});

Deno.test("the quick start lists what the folder for volumes holds before it removes that", async () => {
  const router = makeRouter({ behaviours: { directoryRemoval: "recursive" } });
  const type = typeTo(router);
  await type(`${makeBasePath}; ${addCommand("a")}`);
  const lines = blocks.filter(({ language }) => language === "routeros").map(({ text }) => text.split("\n"));
  const removal = "/file/remove storage-pool/metal-csi";
  const at = lines.findIndex((block) => block.includes(removal));
  assert.deepEqual(lines[at], [removal], "a person looks at the list before they type it");
  const list = lines[at - 1]!.at(-1)!;
  assert.match(await type(list), /metal-csi\/a/);
  await type(removal);
  assert.equal(await type(list), "", "everything in it is gone");
});

const finalDrop = ["chain=input action=accept connection-state=established", "chain=input action=drop"];
const lanFirst = ["chain=input action=accept in-interface-list=LAN", ...finalDrop];

for (
  const [what, before] of [["an empty filter", []], ["a final drop", finalDrop], [
    "the LAN let in",
    lanFirst,
  ]] as const
) {
  Deno.test(`the firewall rules of the quick start close data port and SSH for all but the nodes, with ${what}`, async () => {
    const type = typeTo(makeRouter());
    const menus = ["/ip/firewall/filter", "/ipv6/firewall/filter"];
    for (const menu of menus) for (const rule of before) assert.equal(await type(`${menu}/add ${rule}`), "");
    const filters = async () => {
      const [ipv4, ipv6] = await Promise.all(
        menus.map(async (menu) => parseFilter(await type(jsonCommand(`${menu}/print detail as-value`)))),
      );
      return { ipv4: ipv4!, ipv6: ipv6! };
    };
    const lines = blocks.filter(({ language }) => language === "routeros").flatMap(({ text }) =>
      text.split("\n")
    );
    for (const line of lines.filter((line) => /firewall\/filter\/add/.test(line))) {
      assert.equal(await type(line), "");
    }
    const closed = await filters();
    for (const finding of [judgeDataPort(4420, closed), judgeSshPort(undefined, closed)]) {
      assert.equal(finding.state, "ok", finding.found);
      assert.match(finding.found, /over IPv4 open to 10\.0\.0\.0\/16 alone; over IPv6 closed$/);
    }
    for (const line of lines.filter((line) => /firewall\/filter\/remove/.test(line))) {
      assert.equal(await type(line), "");
    }
    const left = await filters();
    assert.deepEqual(
      [left.ipv4.length, left.ipv6.length],
      [before.length, before.length],
      "its rules are gone",
    );
  });
}

Deno.test("the quick start probes the router after the doctor has checked it, and installs with the probe's profile", () => {
  const order = [
    '--base-path "$FOLDER" --cluster-id "$CLUSTER"\n',
    "doctor --probe ",
    "--set-file router.profile=profile.json",
  ];
  const typed = blocks.map(({ text }) => `${text}\n`).join("");
  const places = order.map((words) => typed.indexOf(words));
  assert(!places.includes(-1), `${places}`);
  assert.deepEqual(places, places.toSorted((a, b) => a - b));
});

const trial = blocksOf(readPage("docs/guides/try-without-a-router.md"));

Deno.test("a suite runs all commands of the page for trying without a router, except those that need its pod", () => {
  const others = trial.filter(({ language }) => language !== "sh").map(({ text }) => text.split("\n")[0]);
  assert.deepEqual(others, ["kubectl -n rds-csi port-forward deployment/rds-csi-simulator 8900"]);
});

Deno.test("the page for trying without a router removes what it has made", () => {
  const typed = trial.map(({ text }) => text).join("\n");
  for (const taken of ["helm uninstall rds-csi", "kubectl delete namespace rds-csi", "rm rds-csi-key "]) {
    assert(typed.includes(taken), taken);
  }
});

Deno.test("the first pod is one that the Pod Security Standard restricted takes", () => {
  const applied = blocks.find(({ text }) => text.includes("kind: Pod\n"))!.text;
  const [, yaml] = /<<END\n([^]*?)\nEND/.exec(applied)!;
  const pod = parseAllDocuments(yaml!).map((document) => document.toJS()).find(({ kind }) => kind === "Pod");
  const { securityContext, containers } = pod.spec;
  assert.deepEqual(securityContext, {
    runAsNonRoot: true,
    runAsUser: 1000,
    seccompProfile: { type: "RuntimeDefault" },
  });
  for (const { securityContext: own } of containers) {
    assert.deepEqual(own, { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } });
  }
});

Deno.test("the policy that keeps pods away allows all but the router", () => {
  const page = blocksOf(readPage("docs/guides/storage-network.md"));
  const { spec } = parse(page.find(({ text }) => text.includes("NetworkPolicy"))!.text);
  assert.deepEqual(spec.policyTypes, ["Egress"]);
  assert.deepEqual(spec.egress[0].to[0].ipBlock, { cidr: "0.0.0.0/0", except: ["10.0.1.1/32"] });
});
