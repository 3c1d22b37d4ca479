import assert from "node:assert/strict";
import fc from "fast-check";
import type { Names } from "./allowed.ts";
import { findLeaks } from "./leaks.ts";
import { Recording } from "./recorded.ts";

const id = `pvc-${"0123456789ab".repeat(3).slice(0, 28)}`;
const names: Names = {
  slot: "raid10",
  mountPoint: "raid10",
  label: "photos",
  basePath: "/raid10/my/scratch_1",
  ids: [id],
  cluster: "2a97516c",
  nqnPrefix: "nqn.2026-11.io.srvlab.acc",
};
const nonce = "b8e12d12c0db";
const record =
  `{rds1 c=2a97516c n=dff445149341 k=ext4/w p=4f53cda1 b=1 e=1-6543ff81 h=acceptance-1@tp6m2d/w x=35572e35}`;
const path = `/raid10/my/scratch_1/${id}.2a97516c/disk.img`;
const query =
  `:put ("${nonce}0 ".[:serialize to=json options=json.no-string-conversion value=[/disk print detail as-value where slot="${id}" or mounted]]." ${nonce}")`;
const framed = (value: unknown) => `${nonce}0 ${JSON.stringify(value)} ${nonce}\r\n`;
const disk = {
  ".id": "*4",
  "comment": record,
  "file-path": path,
  "file-size": 1073741824,
  "fs": "-",
  "mount-filesystem": false,
  "nvme-tcp-export": true,
  "nvme-tcp-server-nqn": `nqn.2026-11.io.srvlab.acc:${id}:1-6543ff81`,
  "nvme-tcp-server-port": 4420,
  "slot": id,
  "type": "file",
};
const pool = {
  ".id": "*3",
  "free": 5,
  "fs": "xfs",
  "fs-label": "photos",
  "mount-point": "raid10",
  "mounted": true,
  "model": "RAID0 striped",
  "serial": "S3CR3T99",
  "size": 16003143565312,
  "slot": "raid10",
  "state": "clean",
  "type": "raid",
};

Deno.test("a command keeps the run's own values, with the owner's names replaced", () => {
  const recording = new Recording(names);
  const add =
    `/disk/btrfs/subvolume/add fs="photos" name="my/scratch_1/${id}.2a97516c"; /disk add type="file" slot="${id}" file-path="${path}" ` +
    `file-size="1073741824" mount-filesystem="no" comment="${record}"; ` +
    `:put [:len [/disk find where file-path~"(^|/)raid10/my/scratch_1/${id}[.]2a97516c/disk[.]img" and mount-point="raid10"]]`;
  assert.equal(
    recording.command(add),
    add.replaceAll("raid10/my/scratch_1", "pool/scratch").replace("photos", "pool-fs").replace(
      "my/scratch_1",
      "scratch",
    )
      .replace(`"raid10"`, `"pool"`),
  );
  assert.deepEqual([...recording.hidden], []);
});

Deno.test("an answer keeps own disks and the pool, of other numbers the type, and of other disks nothing", () => {
  const recording = new Recording(names);
  const foreign = { slot: "nvme1", model: "TS1TUTE210T", serial: "I428940051", size: 1 };
  const { frames, text } = recording.answer(query, framed([foreign, pool, disk]));
  assert.deepEqual(text, []);
  assert.deepEqual(frames, [[
    {
      ...{
        ".id": "…",
        "free": 0,
        "fs": "xfs",
        "fs-label": "pool-fs",
        "mount-point": "pool",
        "mounted": true,
      },
      ...{
        "model": "…",
        "serial": "…",
        "size": 16003143565312,
        "slot": "pool",
        "state": "clean",
        "type": "raid",
      },
    },
    { ...disk, ".id": "…", "file-path": `/pool/scratch/${id}.2a97516c/disk.img` },
  ]]);
  assert.ok(recording.hidden.has("I428940051") && recording.hidden.has("TS1TUTE210T"));
});

Deno.test("commands of menus that are not the driver's are not recorded", () => {
  const recording = new Recording(names);
  assert.equal(recording.command('/user print where name="anna-lena"'), undefined);
  assert.equal(recording.command("/ip/firewall/filter print"), undefined);
  assert.equal(recording.command("/system/identity print as-value"), undefined);
  assert.ok(recording.hidden.has("anna-lena"));
});

Deno.test("of a refusal public words, small numbers and own names are recorded", () => {
  const recording = new Recording(names);
  const { text, frames } = recording.answer(
    query,
    `failure: slot ${id} taken by anna (line 1 column 12)\r\n`,
  );
  assert.deepEqual(frames, [null]);
  assert.deepEqual(text, [`failure: slot ${id} … by … (line 1 column 12)`]);
});

Deno.test("of a failure the sentence is recorded, without details and what somebody said", () => {
  const recording = new Recording(names);
  assert.equal(
    recording.reason(
      '14 UNAVAILABLE: Cannot read from the router because it refused "no anna": router=keeper@10.0.0.1:22',
    ),
    'UNAVAILABLE Cannot read from the router because it refused "…"',
  );
  assert.equal(
    recording.reason("Cannot open /tmp/anna because it is gone"),
    "Cannot open … because it is gone",
  );
});

const digits = fc.stringMatching(/^[0-9a-f]{6,12}$/);
/** What an owner could have in any field, each with a part that no word of RouterOS has. */
const planted = digits.chain((hex) =>
  fc.constantFrom(
    `qz${hex}`,
    `Qz-${hex}`,
    `qz${hex}.example.net`,
    `10.23.${parseInt(hex.slice(0, 2), 16)}.${parseInt(hex.slice(2, 4), 16)}`,
    `/raid10/qz${hex}/backup`,
    `my/qz${hex}`,
    `fd00::${hex}`,
    `Anna's qz${hex} "NAS"`,
    `qz${hex} ${hex}@home`,
    `{rds1 c=0${hex.slice(0, 6)}1 h=qz${hex}/w}`,
    `nqn.2014-08.org.nvmexpress:uuid:${hex}`,
    `SHA256:${hex}qz`,
  )
);
const properties = [
  ...new Set([...Object.keys(disk), ...Object.keys(pool), "name", "fullname", "parent", "version"]),
];
const reserved = new Set([".id", "slot"]);

Deno.test("what is planted in any field of any row, refusal or command never reaches the transcript", () => {
  const row = fc.constantFrom<Record<string, unknown>>(disk, pool, { name: path.slice(1), type: "file" }, {
    uptime: "1w",
  });
  const property = fc.oneof(
    fc.constantFrom(...properties.filter((name) => !reserved.has(name))),
    fc.stringMatching(/^[a-z]{3,8}(-[a-z]{2,6})?$/),
  );
  fc.assert(
    fc.property(planted, row, property, fc.nat(3), (secret, base, name, depth) => {
      const recording = new Recording(names);
      let value: unknown = secret;
      for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { [name]: value };
      const kept = { ...base, ...(name in base || depth > 0 ? {} : { slot: id }), [name]: value };
      const inRows = recording.answer(query, framed([kept, { ...pool, [name]: value }]));
      const single = recording.answer(query, framed({ [name]: value }));
      const refused = recording.answer(query, `failure: ${secret} is in use by ${secret}\r\n`);
      const raw = recording.answer("/disk print detail", `0 slot=${secret} ${name}="${secret}"\r\n`);
      const quoted = secret.replaceAll(/[\\"$]/g, "\\$&");
      const commands = [
        `/disk set [find where ${name}="${quoted}"] ${name}="${quoted}"`,
        `/disk find where ${name}~"${quoted}"`,
        `:put "${quoted}"`,
        `:error "${quoted}"`,
        `/file print where name="${quoted}"`,
      ].map((command) => recording.command(command));
      const all = JSON.stringify([inRows, single, refused, raw, commands]);
      assert.ok(!all.includes(secret) && !all.includes(quoted), all);
      for (const part of secret.split(/[^A-Za-z0-9]+/)) {
        assert.ok(!/^qz[0-9a-f]{6}/i.test(part) || !all.includes(part), all);
      }
      assert.deepEqual(
        findLeaks([all], { secrets: [secret], names: [secret], hidden: recording.hidden }),
        [],
      );
    }),
    { numRuns: 2000 },
  );
});

Deno.test("findLeaks() finds secrets anywhere and names as whole words, in the form of JSON too", () => {
  const find = (text: string, secrets: string[], known: string[]) =>
    findLeaks([text], { secrets, names: known, hidden: [] }, ["A step of this program"]);
  assert.deepEqual(find("xxhunter2yy", ["hunter2"], []), ["hunter2"]);
  assert.deepEqual(find('{"a":"say \\"hi\\""}', ['say "hi"'], []), ['say "hi"']);
  assert.deepEqual(find("at 10.0.0.7:22", [], ["10.0.0.7", "10.0.0.70"]), ["10.0.0.7"]);
  assert.deepEqual(find("rds-csi-probe-00 file step", [], ["rds-csi", "file", "step"]), []);
});
