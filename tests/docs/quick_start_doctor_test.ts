// Someone types the quick start on a router that has a firewall already, and asks the doctor from a pod whose network
// the user's `address` lacks. They type each fix as it is printed, and nothing else, until all is well. The simulated
// router judges its rules and does not enforce them, so SSH answers whatever they say.
import assert from "node:assert/strict";
import { configuration, type Scene, withScene } from "../contract/_fix_scene.ts";
import { makeSshKeys } from "../fakes/ssh_keys.ts";
import { blocksOf, readPage } from "./pages.ts";

const page = blocksOf(readPage("docs/quick-start.md"));
const lines = page.filter(({ language }) => language === "routeros").flatMap(({ text }) => text.split("\n"));
const [nodes, pods] = ["10.0.0.0/16", "127.0.0.0/8"];
const ownFilter = ["chain=input action=accept connection-state=established", "chain=input action=drop"];
const isRule = (line: string) => line.includes("/firewall/filter/add");

/** Types the lines of the page that make the user, its folder, its key, and the given rules. */
async function setUp(scene: Scene, rules: readonly string[]): Promise<void> {
  const keys = makeSshKeys();
  await Deno.writeTextFile(`${scene.folder}/key`, keys.private);
  for (const rule of ownFilter) await scene.type(`/ip/firewall/filter/add ${rule}`);
  const upload = page.map(({ text }) => /"(\/file\/add name=rds-csi-key.pub .*)"$/m.exec(text)?.[1]).find(
    Boolean,
  )!;
  const typed = [
    ...lines.filter((line) => /^\/(user\/(group\/)?|file\/)add /.test(line)),
    ...rules,
    upload.replaceAll('\\"', '"').replace(/\$\(.*\)/, keys.public.trim()),
    ...lines.filter((line) => line.startsWith("/user/ssh-keys/import ")),
  ];
  assert(typed.length >= 5, `${typed}`);
  for (const line of typed) await scene.type(line);
}

/** Asks the doctor and types each fix, until it has none. Returns what it found first, each time. */
async function follow(scene: Scene): Promise<readonly string[]> {
  const seen: string[] = [];
  for (let round = 0; round < 8; round++) {
    const findings = await scene.findings({
      "rds-password-file": undefined,
      "rds-key": `${scene.folder}/key`,
    });
    const worst = findings.find(({ fix }) => fix !== undefined);
    if (worst?.fix === undefined) {
      assert.deepEqual(findings.filter(({ state }) => state !== "ok"), []);
      return seen;
    }
    seen.push(`${worst.state} ${worst.check}: ${worst.found} -> ${worst.fix}`);
    for (const command of worst.fix.slice(worst.fix.search(/(^|: )\//)).replace(/^: /, "").split("; ")) {
      // The key is there, so that its import is not for this person; a rule has one network.
      if (!command.startsWith("/") || command.startsWith("/user/ssh-keys/import")) continue;
      await scene.type(command.replace("NODES", isRule(command) ? nodes : `${nodes},${pods}`));
    }
  }
  throw new Error(`no end: ${seen.join("\n")}`);
}

const missingAddress =
  /^problem login: .* -> with NODES, which replaces the user's address .*has to hold 127\.0\.0\.1, in a pod without masquerading the pod network.*: \/user\/set .* address=NODES; /;

Deno.test("typed with a final drop, the quick start lacks the pod network in the user's address alone", () =>
  withScene({ users: [{ name: "admin", password: "x" }] }, async (scene) => {
    await setUp(scene, lines.filter(isRule));
    const [first, ...more] = await follow(scene);
    assert.match(first!, missingAddress);
    assert.deepEqual(more, []);
  }));

Deno.test("without its rules the final drop closes the data port, and the doctor says where the rule belongs", () =>
  withScene({ users: [{ name: "admin", password: "x" }] }, async (scene) => {
    await setUp(scene, lines.filter((line) => line.startsWith("/ipv6/firewall/filter/add ")));
    const [first, second, ...more] = await follow(scene);
    assert.match(first!, missingAddress);
    assert.match(second!, /^problem firewall: port 4420: .* -> .*action=accept place-before=0/);
    assert.deepEqual(more, []);
    const filter = (await configuration(scene)).filter((line) => line.startsWith("ip/firewall/filter "));
    assert.match(filter[0]!, /"accept".*"dst-port":"?4420/);
    assert.match(filter.at(-1)!, /"drop"/);
  }));
