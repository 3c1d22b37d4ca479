import assert from "node:assert/strict";
import { makeSshKeys } from "../../../tests/fakes/ssh_keys.ts";
import {
  addCommand,
  jsonCommand,
  makeBasePath,
  SshClient,
  startQuickly,
} from "../../../tests/support/simulated_router.ts";
import type { Simulator } from "../simulator.ts";

const admin = { username: "csi", password: "secret" };

/** Runs lines as the administrator, none of which may be refused. */
async function prepare(simulator: Simulator, ...lines: string[]): Promise<void> {
  using client = await SshClient.connect(simulator, admin);
  for (const line of lines) assert.equal((await client.exec(line)).stdout, "", line);
}

/** Makes the driver's user as the quick start does, with a key; returns the private key. */
async function makeUser(simulator: Simulator, more = ""): Promise<string> {
  const keys = makeSshKeys();
  await prepare(
    simulator,
    "/user/group/add name=rds-csi policy=ssh,read,write",
    `/user/add name=rds-csi group=rds-csi password="long enough"${more}`,
    `/file/add name=rds-csi.pub contents="${keys.public} someone@here"`,
    "/user/ssh-keys/import public-key-file=rds-csi.pub user=rds-csi",
  );
  return keys.private;
}

Deno.test("a new user logs in with the imported key, and not with the password", async () => {
  await using simulator = await startQuickly();
  const privateKey = await makeUser(simulator);
  using client = await SshClient.connect(simulator, { username: "rds-csi", privateKey });
  assert.equal((await client.exec(':put "in"')).stdout, "in\r\n");
  await assert.rejects(
    SshClient.connect(simulator, { username: "rds-csi", password: "long enough" }),
    /authentication/,
  );
});

Deno.test("a group of ssh, read and write makes volumes, and cannot change users", async () => {
  await using simulator = await startQuickly();
  const privateKey = await makeUser(simulator);
  using client = await SshClient.connect(simulator, { username: "rds-csi", privateKey });
  assert.equal((await client.exec(`${makeBasePath}; ${addCommand("a")}`)).stdout, "");
  for (
    const line of [
      '/user/add name="other" group="full"',
      '/user/set [find where name="rds-csi"] group="full"',
      '/user/ssh-keys/import public-key-file="rds-csi.pub" user="csi"',
    ]
  ) assert.equal((await client.exec(line)).stdout, "not enough permissions (9)\r\n", line);
  assert.match((await client.exec("/user/print")).stdout, /name=rds-csi group=rds-csi/);
});

Deno.test("a change of a group's policies takes effect for its users at once", async () => {
  await using simulator = await startQuickly();
  const privateKey = await makeUser(simulator);
  using client = await SshClient.connect(simulator, { username: "rds-csi", privateKey });
  await prepare(simulator, '/user/group/set [find where name="rds-csi"] policy=ssh,read');
  assert.equal((await client.exec(makeBasePath)).stdout, "not enough permissions (9)\r\n");
  await prepare(simulator, '/user/remove [find where name="rds-csi"]');
  assert.equal((await client.exec("/user/print")).stdout, "not enough permissions (9)\r\n");
});

Deno.test("a login is refused without the policy ssh, from another address, for a disabled user, and without the key", async () => {
  for (
    const line of [
      '/user/group/set [find where name="rds-csi"] policy=read,write',
      '/user/set [find where name="rds-csi"] address=10.0.0.0/8',
      '/user/disable [find where name="rds-csi"]',
      '/user/ssh-keys/remove [find where user="rds-csi"]',
    ]
  ) {
    await using simulator = await startQuickly();
    const privateKey = await makeUser(simulator, " address=127.0.0.0/8");
    await prepare(simulator, line);
    await assert.rejects(
      SshClient.connect(simulator, { username: "rds-csi", privateKey }),
      /authentication/,
      line,
    );
  }
});

Deno.test("a user without a key logs in with the password", async () => {
  await using simulator = await startQuickly();
  await prepare(simulator, '/user/add name=reader group=read password="long enough"');
  using client = await SshClient.connect(simulator, { username: "reader", password: "long enough" });
  assert.equal((await client.exec(makeBasePath)).stdout, "not enough permissions (9)\r\n");
});

Deno.test("invalid commands are refused, and change nothing", async () => {
  await using simulator = await startQuickly();
  await makeUser(simulator);
  await prepare(simulator, '/file/add name=ecdsa.pub contents="ecdsa-sha2-nistp256 AAAA x"');
  using client = await SshClient.connect(simulator, admin);
  const shown = jsonCommand("/user/print detail as-value");
  const before = (await client.exec(shown)).stdout;
  for (
    const [line, refusal] of [
      ["/user/add name=rds-csi group=full", "failure: already have such user"],
      ["/user/add name=other group=nobody", "input does not match any value of group"],
      ["/user/add name=other group=read address=here", "input does not match any value of address"],
      ["/user/group/add name=g policy=ssh,fly", "input does not match any value of policy"],
      ["/user/group/remove rds-csi", "failure: could not remove, in use"],
      ["/user/ssh-keys/import public-key-file=none.pub user=rds-csi", "no such item"],
      [
        "/user/ssh-keys/import public-key-file=ecdsa.pub user=rds-csi",
        "unable to load key file (wrong format)",
      ],
      ["/user/ssh-keys/import public-key-file=rds-csi.pub user=no", "input does not match any value of user"],
    ]
  ) assert.equal((await client.exec(line!)).stdout, `${refusal}\r\n`, line);
  assert.equal((await client.exec(shown)).stdout, before);
});

Deno.test("passwords are never shown, policies and keys are", async () => {
  await using simulator = await startQuickly();
  await makeUser(simulator);
  using client = await SshClient.connect(simulator, admin);
  const ask = async (command: string) => JSON.parse((await client.exec(jsonCommand(command))).stdout);
  assert.doesNotMatch(JSON.stringify(await ask("/user/print detail as-value")), /long enough|secret/);
  const [group] = await ask('/user/group/print detail as-value where name="rds-csi"');
  assert.match(group.policy, /^ssh,read,write,!local,.*!policy/);
  const [key] = await ask("/user/ssh-keys/print detail as-value");
  assert.deepEqual([key.user, key["key-type"], key["key-owner"]], ["rds-csi", "ed25519", "someone@here"]);
});

Deno.test("a client that changes users or the firewall breaks a rule", async () => {
  await using simulator = await startQuickly();
  await prepare(
    simulator,
    '/user/group/add name="g" policy="ssh"',
    '/ip/firewall/filter/add chain="input" action="drop"',
  );
  assert.deepEqual(simulator.violations.list().map(({ sentence }) => sentence), [
    "/user/group add changes what no client has to change.",
    "/ip/firewall/filter add changes what no client has to change.",
  ]);
});

Deno.test("rules of the firewall are stored as they were typed, and a port needs a protocol", async () => {
  await using simulator = await startQuickly();
  const rule =
    'chain=input protocol=tcp dst-port=4420 src-address=!10.0.0.0/16 action=drop comment="nodes only"';
  await prepare(simulator, `/ip/firewall/filter/add ${rule}`);
  using client = await SshClient.connect(simulator, admin);
  assert.equal(
    (await client.exec("/ip/firewall/filter/add chain=input dst-port=22")).stdout,
    "input does not match any value of dst-port\r\n",
  );
  const shown = await client.exec(jsonCommand("/ip/firewall/filter/print detail as-value"));
  assert.deepEqual(JSON.parse(shown.stdout), [{
    ".id": "*1",
    "action": "drop",
    "chain": "input",
    "comment": "nodes only",
    "dst-port": "4420",
    "protocol": "tcp",
    "src-address": "!10.0.0.0/16",
  }]);
});

Deno.test("a rule is placed before another one, and is disabled and removed, in both firewalls", async () => {
  for (const menu of ["/ip/firewall/filter", "/ipv6/firewall/filter"]) {
    await using simulator = await startQuickly();
    await prepare(
      simulator,
      `${menu}/add chain=input action=drop`,
      `${menu}/add chain=input action=passthrough comment=first place-before=0`,
      `${menu}/disable [find where action=drop]`,
    );
    using client = await SshClient.connect(simulator, admin);
    const shown = async () =>
      JSON.parse((await client.exec(jsonCommand(`${menu}/print detail as-value`))).stdout) as object[];
    assert.deepEqual(await shown(), [
      { ".id": "*2", action: "passthrough", chain: "input", comment: "first" },
      { ".id": "*1", action: "drop", chain: "input", disabled: true },
    ]);
    assert.equal((await client.exec(`${menu}/add chain=input place-before=2`)).stdout, "no such item\r\n");
    await prepare(simulator, `${menu}/remove [find where comment=first]`);
    assert.equal((await shown()).length, 1);
  }
});

Deno.test("/ipv6 settings says whether IPv6 is off", async () => {
  await using simulator = await startQuickly();
  using client = await SshClient.connect(simulator, admin);
  const shown = async () =>
    JSON.parse((await client.exec(jsonCommand("/ipv6 settings print as-value"))).stdout);
  assert.equal((await shown())["disable-ipv6"], false);
  await prepare(simulator, "/ipv6/settings/set disable-ipv6=yes");
  assert.equal((await shown())["disable-ipv6"], true);
});
