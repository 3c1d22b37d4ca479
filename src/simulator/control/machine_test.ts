import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import {
  addCommand,
  jsonCommand,
  makeBasePath,
  SshClient,
  startQuickly,
} from "../../../tests/support/simulated_router.ts";
import type { Simulator } from "../simulator.ts";

async function ask(simulator: Simulator, method: string, path: string, body: unknown = {}) {
  const response = await fetch(simulator.controlUrl + path, {
    method,
    ...(method === "GET" ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() };
}

async function withDisk(test: (simulator: Simulator, client: SshClient, clock: FakeClock) => Promise<void>) {
  const clock = new FakeClock();
  await using simulator = await startQuickly({ clock });
  using client = await SshClient.connect(simulator);
  await client.exec(`${makeBasePath}; ${addCommand("a", 'nvme-tcp-export="yes"')}`);
  await test(simulator, client, clock);
}

const counts = ":put [:len [/disk find]]; :put [:len [/file find]]";

Deno.test("a pool that is not mounted hides its files; its disks stay, or disappear with it, and come back", async () => {
  await withDisk(async (simulator, client) => {
    const say = async (command: string) => (await client.exec(command)).stdout;
    assert.equal(await say(counts), "4\r\n3\r\n");
    await ask(simulator, "PATCH", "/disks/storage-pool", { mounted: false });
    assert.equal(await say(counts), "4\r\n0\r\n");
    assert.equal(simulator.model.exports.list().length, 1);
    await ask(simulator, "PATCH", "/disks/storage-pool", { vanish: true });
    assert.equal(await say(counts), "3\r\n0\r\n");
    assert.deepEqual(simulator.model.exports.list(), []);
    await ask(simulator, "PATCH", "/disks/storage-pool", { mounted: true });
    assert.equal(await say(counts), "4\r\n3\r\n");
    assert.equal(simulator.model.exports.list().length, 1);
  });
});

Deno.test("a full pool accepts no disk, no file, no copy and no subvolume, until there is room again", async () => {
  await withDisk(async (simulator, client) => {
    const commands = [
      addCommand("b"),
      '/file add type="directory" name="storage-pool/d"',
      '/file copy "storage-pool/metal-csi/a.img" name="storage-pool/c.img"',
      '/disk/btrfs/subvolume/add fs="storage-pool-fs" name="v"',
    ];
    await ask(simulator, "PATCH", "/disks/storage-pool", { free: 0 });
    for (const command of commands) {
      assert.equal((await client.exec(command)).stdout, "failure: not enough space\r\n");
    }
    await ask(simulator, "PATCH", "/disks/storage-pool", { free: 4096 });
    for (const command of commands) assert.equal((await client.exec(command)).stdout, "");
  });
});

Deno.test("PATCH /users removes policies, also from users who are logged in", async () => {
  await withDisk(async (simulator, client) => {
    const refused = "not enough permissions (9)\r\n";
    const set = '/disk set "a" comment="x"';
    const patched = await ask(simulator, "PATCH", "/users/csi", { write: false });
    assert.deepEqual(patched.body, { name: "csi", ssh: true, read: true, write: false });
    assert.equal((await client.exec(set)).stdout, refused);
    assert.equal((await client.exec(":put [:len [/disk find]]")).stdout, "4\r\n");
    await ask(simulator, "PATCH", "/users/csi", { write: true, read: false });
    assert.equal((await client.exec("/disk print")).stdout, refused);
    await ask(simulator, "PATCH", "/users/csi", { ssh: false });
    await assert.rejects(SshClient.connect(simulator), /authentication/);
    await ask(simulator, "PATCH", "/users/csi", { ssh: true, read: true });
    assert.equal((await client.exec(set)).stdout, "");
    assert.equal((await ask(simulator, "PATCH", "/users/nobody")).status, 404);
  });
});

Deno.test("PUT /package removes rose-storage, and file disks and exports with it", async () => {
  for (
    const [state, packages] of [["disabled", "rose-storage true routeros false"], [
      "missing",
      "routeros false",
    ]]
  ) {
    await withDisk(async (simulator, client) => {
      await ask(simulator, "PUT", "/package", { state });
      const listed = JSON.parse(
        (await client.exec(jsonCommand("/system package print detail as-value"))).stdout,
      );
      assert.equal(
        listed.map((one: { name: string; disabled: boolean }) => `${one.name} ${one.disabled}`).join(" "),
        packages,
      );
      assert.equal((await client.exec(":put [:len [/disk find]]")).stdout, "3\r\n");
      assert.match((await client.exec(addCommand("b"))).stdout, /^expected end of command/);
      assert.deepEqual(simulator.model.exports.list(), []);
      await ask(simulator, "PUT", "/package", { state: "installed" });
      assert.equal((await client.exec(":put [:len [/disk find]]")).stdout, "4\r\n");
    });
  }
});

Deno.test("POST /console runs a command that is neither counted nor checked", async () => {
  await withDisk(async (simulator) => {
    const counted = simulator.journal.counts;
    const { body } = await ask(simulator, "POST", "/console", { command: ":put x; /disk remove nvme1" });
    assert.deepEqual(body, { output: "x\r\n", refusal: "failure: can not remove nvme1" });
    assert.deepEqual((await ask(simulator, "POST", "/console", { command: "/disk print count-only" })).body, {
      output: "4\r\n",
      refusal: null,
    });
    assert.deepEqual([simulator.journal.counts, simulator.violations.list()], [counted, []]);
  });
});

Deno.test("POST /host-key shows new connections another key", async () => {
  await withDisk(async (simulator, client) => {
    const before = simulator.hostKeyPublic;
    const { body } = await ask(simulator, "POST", "/host-key");
    assert.notEqual(body.hostKey, before);
    assert.equal(simulator.hostKeyPublic, body.hostKey);
    let seen = "";
    using _other = await SshClient.connect(simulator, {
      username: "csi",
      password: "secret",
      hostVerifier: (key: { toString(encoding: string): string }) => {
        seen = key.toString("base64");
        return true;
      },
    });
    assert.equal(`ssh-rsa ${seen}`, body.hostKey);
    assert.equal((await client.exec(':put "still here"')).stdout, "still here\r\n");
  });
});

Deno.test("a delay keeps removed subvolumes listed, as dead ones", async () => {
  await withDisk(async (simulator, client, clock) => {
    simulator.model.delays.deadMs = 1000;
    const menu = "/disk/btrfs/subvolume";
    await client.exec(`${menu}/add fs="storage-pool-fs" name="v"; ${menu}/remove "v"`);
    const read = jsonCommand(`${menu}/print as-value proplist=fullname,dead where fullname="v"`);
    const dead = '[{".id":"*2","dead":true,"fullname":"v"}]\r\n';
    assert.equal((await client.exec(read)).stdout, dead);
    assert.equal((await client.exec(read.replace('fullname="v"', "!default"))).stdout, dead);
    assert.equal(
      (await client.exec(`${menu}/remove [find where fullname="v"]`)).stdout,
      "no such item (4)\r\n",
    );
    assert.equal((await client.exec(`${menu}/add fs="storage-pool-fs" name="v"`)).stdout, "");
    await clock.advance(1000);
    assert.equal((await client.exec(read)).stdout, '[{".id":"*3","fullname":"v"}]\r\n');
  });
});

Deno.test("a reboot that loses more than the router's whole life loses no pool", async () => {
  await withDisk(async (simulator, _client, clock) => {
    await ask(simulator, "POST", "/reboot", { loseLastMs: 1e12 });
    await clock.advance(0);
    assert.deepEqual(simulator.model.disks.list().map(({ slot }) => slot), [
      "nvme1",
      "nvme2",
      "storage-pool",
    ]);
    assert.equal(simulator.model.pools().length, 1);
    assert.notEqual(simulator.model.files.find("storage-pool/metal-csi/a.img"), undefined);
  });
});
