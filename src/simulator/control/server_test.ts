import assert from "node:assert/strict";
import {
  addCommand,
  makeBasePath,
  SshClient,
  startQuickly,
} from "../../../tests/support/simulated_router.ts";
import type { Simulator } from "../simulator.ts";

type Row = Readonly<Record<string, unknown>>;

/** The fields that responses may have; only for reading them. */
interface Body extends Row {
  readonly disks: readonly Row[];
  readonly files: readonly Row[];
  readonly pools: readonly Row[];
  readonly sessions: readonly Row[];
  readonly behaviours: Row;
  readonly error: string;
}

async function ask<Answer = Body>(simulator: Simulator, method: string, path: string, body?: unknown) {
  const response = await fetch(simulator.controlUrl + path, {
    method,
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() as Answer };
}

async function withDisk(test: (simulator: Simulator, client: SshClient) => Promise<void>) {
  await using simulator = await startQuickly();
  using client = await SshClient.connect(simulator);
  await client.exec(`${makeBasePath}; ${addCommand("a", 'nvme-tcp-export="yes"')}`);
  await test(simulator, client);
}

Deno.test("GET /health reports that the router is up", async () => {
  await using simulator = await startQuickly();
  assert.deepEqual(await ask(simulator, "GET", "/health"), { status: 200, body: { status: "up" } });
});

Deno.test("GET /state shows disks, files, subvolumes, pools and sessions", async () => {
  await withDisk(async (simulator) => {
    const { body } = await ask(simulator, "GET", "/state");
    const disk = body.disks.find((entry) => entry.slot === "a");
    assert.deepEqual([disk?.["attached-size"], disk?.["served"], disk?.["size"]], [
      1073741824,
      "nqn.2000-02.com.mikrotik:a",
      1073741824,
    ]);
    assert.deepEqual(body.files.map((file) => file.name), [
      "storage-pool",
      "storage-pool/metal-csi",
      "storage-pool/metal-csi/a.img",
    ]);
    assert.deepEqual(body.subvolumes, []);
    assert.deepEqual(body.pools.map((pool: Row) => pool.slot), ["storage-pool"]);
    assert.deepEqual(body.exports, ["nqn.2000-02.com.mikrotik:a"]);
    assert.deepEqual(body.sessions.map((session: Row) => [session.session, session.user]), [[1, "csi"]]);
  });
});

Deno.test("GET /count counts exec requests and statements, and DELETE starts over", async () => {
  await withDisk(async (simulator, client) => {
    await client.exec("/disk print count-only");
    assert.deepEqual((await ask(simulator, "GET", "/count")).body, { execs: 2, statements: 3, bytes: 3 });
    assert.deepEqual((await ask(simulator, "DELETE", "/count")).body, {
      execs: 0,
      statements: 0,
      bytes: 0,
    });
  });
});

Deno.test("GET /log reports time, session, command and outcome, and DELETE forgets", async () => {
  await withDisk(async (simulator, client) => {
    await ask<readonly Row[]>(simulator, "DELETE", "/log");
    await client.exec('/disk remove "x"');
    const { body } = await ask<readonly Row[]>(simulator, "GET", "/log");
    assert.equal(body.length, 1);
    assert.match(String(body[0]?.["time"]), /^\d{4}-\d\d-\d\dT/);
    assert.deepEqual(["session", "command", "outcome"].map((key) => body[0]?.[key]), [
      1,
      '/disk remove "x"',
      "no such item",
    ]);
  });
});

Deno.test("GET /violations reports time, session, command, rule and a sentence", async () => {
  await withDisk(async (simulator, client) => {
    assert.deepEqual((await ask<readonly Row[]>(simulator, "GET", "/violations")).body, []);
    await client.exec('/disk set "a" comment=x');
    const { time, ...violation } = (await ask<readonly Row[]>(simulator, "GET", "/violations")).body[0] ?? {};
    assert.match(String(time), /^\d{4}-/);
    assert.deepEqual(violation, {
      session: 1,
      command: '/disk set "a" comment=x',
      rule: "unquoted-value",
      sentence: "The value of comment is not quoted: x",
    });
    await ask<readonly Row[]>(simulator, "DELETE", "/violations");
    assert.deepEqual((await ask<readonly Row[]>(simulator, "GET", "/violations")).body, []);
  });
});

Deno.test("POST /disks makes a disk of any kind, foreign properties included, and its file", async () => {
  await using simulator = await startQuickly();
  const foreign = {
    slot: "usb1",
    type: "hardware",
    size: 64023257088,
    "smart-state": "ok",
    "temperature": 41,
  };
  const { status, body } = await ask(simulator, "POST", "/disks", foreign);
  assert.equal(status, 201);
  assert.deepEqual([body["smart-state"], body.temperature, body.size], ["ok", 41, 64023257088]);
  const path = "/storage-pool/other/x.img";
  await ask(simulator, "POST", "/disks", {
    slot: "x",
    "file-path": path,
    "file-size": "1048576",
    comment: "c",
  });
  await ask(simulator, "POST", "/disks?file=no", { slot: "y", "file-path": `${path}2`, size: 5 });
  const { files, disks } = (await ask(simulator, "GET", "/state")).body;
  const sizes = files.map((file) => [file.name, file.size]);
  assert.deepEqual(sizes.at(-1), ["storage-pool/other/x.img", 1048576]);
  assert.deepEqual(
    disks.slice(-2).map((disk: Row) => [disk.slot, disk.type, disk.size]),
    [["x", "file", 1048576], ["y", "file", 5]],
  );
});

Deno.test("PATCH /disks/<slot> edits a disk without its client", async () => {
  await withDisk(async (simulator) => {
    const patched = await ask(simulator, "PATCH", "/disks/a", {
      comment: "edited",
      "nvme-tcp-export": false,
    });
    assert.deepEqual([patched.body.comment, patched.body["nvme-tcp-export"]], ["edited", false]);
    assert.deepEqual(simulator.model.exports.list(), []);
    const renamed = await ask(simulator, "PATCH", "/disks/a", { slot: "b", "nvme-tcp-export": "yes" });
    assert.equal(renamed.body.slot, "b");
    assert.equal((await ask(simulator, "PATCH", "/disks/a", {})).status, 404);
  });
});

Deno.test("PATCH /disks/<pool> fills, degrades and unmounts a pool", async () => {
  await withDisk(async (simulator, client) => {
    await ask(simulator, "PATCH", "/disks/storage-pool", { free: 4096, state: "degraded" });
    const read = ':put [/disk print as-value proplist=free,state where slot="storage-pool"]';
    assert.equal((await client.exec(read)).stdout, ".id=*3;free=4096;state=degraded\r\n");
    await ask(simulator, "PATCH", "/disks/storage-pool", { mounted: false });
    assert.equal((await client.exec("/disk print count-only where mounted")).stdout, "0\r\n");
    const added = await client.exec(addCommand("b"));
    assert.equal(added.stdout, "failure: no such directory storage-pool/metal-csi\r\n");
  });
});

Deno.test("DELETE /disks/<slot> removes the entry and leaves the file", async () => {
  await withDisk(async (simulator) => {
    assert.equal((await ask(simulator, "DELETE", "/disks/a")).status, 200);
    assert.equal(simulator.model.disks.findBySlot("a"), undefined);
    assert.notEqual(simulator.model.files.find("storage-pool/metal-csi/a.img"), undefined);
    assert.equal((await ask(simulator, "DELETE", "/disks/a")).status, 404);
  });
});

Deno.test("POST and DELETE /files make and remove files and directories", async () => {
  await using simulator = await startQuickly();
  const file = { name: "/storage-pool/a/b.img", size: 4096, written: 1024 };
  assert.equal((await ask(simulator, "POST", "/files", file)).status, 201);
  await ask(simulator, "POST", "/files", { name: "storage-pool/d/e", type: "directory" });
  const names = () => simulator.model.files.list().map(({ path }) => path);
  assert.deepEqual(names(), [
    "storage-pool",
    "storage-pool/a",
    "storage-pool/a/b.img",
    "storage-pool/d",
    "storage-pool/d/e",
  ]);
  const pool = simulator.model.poolOf("storage-pool/x")!;
  assert.equal(simulator.model.freeBytes(pool), 7301927047168n - 1024n);
  await ask(simulator, "DELETE", "/files/storage-pool/a/b.img");
  await ask(simulator, "DELETE", "/files//storage-pool/d");
  assert.deepEqual(names(), ["storage-pool", "storage-pool/a"]);
  assert.equal((await ask(simulator, "DELETE", "/files/storage-pool/a/b.img")).status, 404);
});

Deno.test("POST /faults adds a fault, GET shows how far it has counted, DELETE removes all", async () => {
  await withDisk(async (simulator, client) => {
    const fault = { match: "^:put", nth: 2, times: 1, action: "error", value: "failure: no" };
    assert.equal((await ask(simulator, "POST", "/faults", fault)).status, 201);
    const says = async () => (await client.exec(':put "x"')).stdout;
    assert.deepEqual([await says(), await says(), await says()], ["x\r\n", "failure: no\r\n", "x\r\n"]);
    assert.deepEqual((await ask<readonly Row[]>(simulator, "GET", "/faults")).body, [{
      ...fault,
      seen: 3,
      struck: 1,
    }]);
    assert.deepEqual((await ask<readonly Row[]>(simulator, "DELETE", "/faults")).body, []);
  });
});

Deno.test("POST /faults with times always adds a permanent fault", async () => {
  await withDisk(async (simulator, client) => {
    await ask(simulator, "POST", "/faults", { action: "error", value: "no", times: "always" });
    for (let run = 0; run < 3; run++) assert.equal((await client.exec(':put "x"')).stdout, "no\r\n");
    assert.equal((await ask<readonly Row[]>(simulator, "GET", "/faults")).body[0]?.["times"], "always");
  });
});

const nonsense: readonly (readonly [method: string, path: string, body: unknown, sentence: RegExp])[] = [
  ["POST", "/faults", { action: "explode" }, /no action explode/],
  ["POST", "/faults", { match: "(", action: "hang" }, /no regular expression/],
  ["POST", "/faults", { action: "hang", nth: 0 }, /nth must be a whole number/],
  ["POST", "/faults", { action: "hang", times: 1.5 }, /times must be a whole number/],
  ["POST", "/faults", { action: "truncate", value: -1 }, /value of truncate/],
  ["POST", "/faults", { action: "drip", value: "slow" }, /value of drip/],
  ["POST", "/faults", { action: "hang", value: "later" }, /before or after/],
  ["POST", "/faults", { action: "drop-after", value: 1 }, /left out/],
  ["POST", "/faults", { action: "hang", times: "often" }, /times must be/],
  ["PUT", "/package", { state: "gone" }, /state must be one of/],
  ["PUT", "/package", {}, /state must be/],
  ["PATCH", "/users/csi", { write: "no" }, /write must be true or false/],
  ["PATCH", "/users/csi", { ftp: true }, /no "ftp"/],
  ["POST", "/host-key", { privateKey: "none" }, /no private key/],
  ["POST", "/reboot", { nvmePort: "never" }, /nvmePort must be one of/],
  ["PATCH", "/disks/storage-pool", { "pool-fs": "ext4" }, /pool-fs must be/],
  ["PATCH", "/disks/storage-pool", { vanish: "maybe" }, /vanish must be/],
  ["POST", "/faults", { action: "noise", value: {} }, /value must be/],
  ["POST", "/faults", { action: "hang", nht: 1 }, /no "nht"/],
  ["POST", "/faults", "{", /no JSON/],
  ["POST", "/faults", "[]", /JSON object/],
  ["POST", "/disks", {}, /slot must be given/],
  ["POST", "/disks", { slot: 5 }, /slot must be a text/],
  ["POST", "/disks", { slot: "nvme1" }, /already/],
  ["POST", "/disks", { slot: "x", size: -1 }, /size must be a whole number/],
  ["POST", "/disks", { slot: "x", size: "1G" }, /size must be a whole number/],
  ["POST", "/disks", { slot: "x", "file-path": "/a/../b" }, /no path/],
  ["POST", "/disks", { slot: "x", "nvme-tcp-export": "maybe" }, /true or false/],
  ["POST", "/disks", { slot: "x", strange: {} }, /strange must be/],
  ["PATCH", "/disks/nvme1", { slot: "nvme2" }, /already/],
  ["PATCH", "/disks/nvme1", { free: 1 }, /no pool/],
  ["POST", "/files", { name: "../x" }, /no file name/],
  ["POST", "/files", { name: "storage-pool" }, /already/],
  ["POST", "/files", { name: "a", type: "pipe" }, /file or directory/],
  ["POST", "/files", { name: "a", size: -5 }, /size must be/],
  ["DELETE", "/files/..%2Fx", undefined, /no file name/],
  ["POST", "/reboot", { downMs: "soon" }, /downMs must be/],
  ["POST", "/reboot", { down: 1 }, /no "down"/],
  ["GET", "/disks/%ff", undefined, /malformed/i],
];

Deno.test("an invalid request gets 400, a sentence, and changes nothing", async () => {
  await using simulator = await startQuickly();
  const before = (await ask(simulator, "GET", "/state")).body;
  for (const [method, path, body, sentence] of nonsense) {
    const answer = await ask(simulator, method, path, body);
    assert.equal(answer.status, 400, `${method} ${path} ${JSON.stringify(body)}`);
    assert.match(answer.body.error, sentence);
  }
  const after = (await ask(simulator, "GET", "/state")).body;
  assert.deepEqual({ ...after, uptimeMs: 0 }, { ...before, uptimeMs: 0 });
  assert.deepEqual(simulator.faults.list(), []);
});

Deno.test("an unknown path is 404, a wrong method 405 with the allowed ones", async () => {
  await using simulator = await startQuickly();
  assert.equal((await ask(simulator, "GET", "/nothing")).status, 404);
  assert.equal((await ask(simulator, "GET", "/disks")).status, 405);
  assert.deepEqual(await ask(simulator, "PUT", "/log"), {
    status: 405,
    body: { error: "/log takes GET, DELETE, not PUT." },
  });
});

Deno.test("PATCH /disks accepts an array's state as a list, also of an array that is no pool", async () => {
  await using simulator = await startQuickly({ profile: "xfs-pool" });
  const state = ["clean", "sync:repair", "resync = 12.5%"];
  for (const slot of ["storage-pool", "storage-pool-m2"]) {
    const { status, body } = await ask(simulator, "PATCH", `/disks/${slot}`, { state });
    assert.deepEqual([status, body["state"]], [200, "clean, sync:repair, resync = 12.5%"]);
  }
  assert.equal(simulator.model.disks.findBySlot("storage-pool-m2")?.pool, undefined);
});
