import assert from "node:assert/strict";
import {
  answering,
  ended,
  printFrames,
  queriesOf,
  statementsOf,
  torn,
} from "../../../tests/fakes/ssh_transport.ts";
import { rejectsWith } from "../../../tests/fakes/volume_errors.ts";
import { VolumeError } from "../../volume/errors.ts";
import { plainLocation, subvolumeLocation } from "../../volume/model/layout.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { NewVolume } from "../../volume/ports/store.ts";
import {
  bench,
  diskRow,
  filePrefix,
  fileRow,
  type Model,
  path,
  poolRow,
  pools,
  volume,
} from "../../../tests/support/routeros_store.ts";
import type { StoreWrites } from "../../../tests/support/store_writes.ts";
import type { RouterVolumeStore as Store } from "./volume_store.ts";

type RouterVolumeStore = Store & StoreWrites;

type Use = (store: RouterVolumeStore, context: CallContext) => Promise<unknown>;

const location = plainLocation(path);
const newVolume: NewVolume = { id: "s1", location, sizeBytes: 1024n, comment: "c" };
const guard = { id: "s1", comment: "old" };
const wanted = { id: "s1", filePrefix, folder: "/pool/csi" };
const part = "/snap-1.";
const copy = `${path}.00ff00ff.part`;

Deno.test("add() adds and reads everything back in one command of at most four statements", async () => {
  const { store, ssh, call, held, clock } = bench();
  await store.createView(wanted, call());
  held.disks = [poolRow, diskRow("s1", { comment: "c" })];
  await clock.advance(2000);
  const outcome = await store.add(
    { ...newVolume, makeFolder: { path: "/pool/csi", label: "pool-fs" } },
    call(),
  );
  assert.deepEqual(outcome, {
    after: {
      volumes: [volume("s1", { comment: "c" })],
      pools,
      upMs: 86_402_000,
    },
    refusal: undefined,
    ended: true,
  });
  assert.equal(ssh.commands.length, 2);
  assert.equal(queriesOf(ssh.commands[1]!).length, 1);
});

Deno.test("add() reads anew when it does not know the uptime on this connection", async () => {
  const { store, ssh, call } = bench({ disks: [poolRow, diskRow("s1")] });
  const { after } = await store.add(newVolume, call());
  assert.equal(after.upMs, 86_400_000);
  assert.equal(ssh.commands.length, 2);
  assert.equal(statementsOf(ssh.commands[1]!), "");
});

Deno.test("add() reads disks with all their keys back where there is no room to name some", async () => {
  const { store, ssh, call, held } = bench();
  const folder = `/pool/${"f".repeat(58)}`;
  await store.createView({ ...wanted, folder }, call());
  held.disks = [poolRow, diskRow("s1")];
  const { path, subvolume } = subvolumeLocation(`${folder}/${filePrefix}`, "pool-fs");
  await store.add({
    ...newVolume,
    comment: "c".repeat(140),
    location: { path, subvolume },
    subvolume: { ...subvolume!, readOnly: false },
    makeFolder: { path: folder, label: "pool-fs" },
  }, call());
  assert.deepEqual(queriesOf(ssh.commands[1]!), [
    `/disk print detail as-value where type="file" or mounted`,
  ]);
  assert.equal(ssh.commands.length, 2);
});

const longFolder = `/pool/${"long-folder-".repeat(7)}`;

const copied: NewVolume = {
  ...newVolume,
  sizeBytes: undefined,
  comment: "n".repeat(130),
  makeFolder: { path: longFolder, label: undefined },
  copied: { path: `${longFolder}/${filePrefix}.img.00ff00ff.part` },
  location: plainLocation(`${longFolder}/${filePrefix}.img`),
};

Deno.test("add() that is too long for one command goes on only after the first part ran through", async () => {
  const { store, ssh, call, held } = bench();
  await store.createView(wanted, call());
  held.disks = [poolRow, diskRow("s1")];
  assert.deepEqual((await store.add(copied, call())).after.volumes, [volume("s1")]);
  assert.deepEqual(
    ssh.commands.slice(1).map((command) =>
      /\/file add|\/file set.*\/disk add/.exec(command)?.[0].slice(0, 9)
    ),
    ["/file add", "/file set"],
  );
  assert.ok(ssh.commands.every((command) => command.length <= 1024));
});

for (const [how, reply] of [["is torn", () => torn("")], ["is refused", () => ended("no")]] as const) {
  Deno.test(`add() whose first part ${how} reads what is there, and sends no more`, async () => {
    const { store, ssh, replies, call } = bench();
    await store.createView(wanted, call());
    replies.push(reply);
    const { after, refusal, ended } = await store.add(copied, call());
    assert.deepEqual(after.volumes, []);
    assert.equal(ended, false);
    assert.equal(refusal, how === "is refused" ? `"no"` : undefined);
    assert.deepEqual(ssh.commands.slice(2).map(statementsOf), [""]);
  });
}

Deno.test("change() of two long comments reads back in a second command", async () => {
  const { store, ssh, call } = bench({ disks: [poolRow, diskRow("s1")] });
  const comment = "$".repeat(170);
  const nqn = `nqn.2000-02.com.mikrotik:${"s".repeat(40)}:1-ab12cd34`;
  const outcome = await store.change("s1", comment, { comment, export: { nqn, port: 4420 } }, call());
  assert.deepEqual(outcome.after.volume, volume("s1"));
  assert.equal(ssh.commands.length, 2);
  assert.ok(ssh.commands.every((command) => command.length <= 1024));
});

Deno.test("change() reads the uptime only where none is known on its connection", async () => {
  const { store, ssh, call } = bench({ disks: [poolRow, diskRow("s1", { comment: "old" })] });
  for (const queries of [2, 1]) {
    await store.change("s1", "old", { comment: "new" }, call());
    assert.equal(queriesOf(ssh.commands.at(-1)!).length, queries);
  }
});

Deno.test("change() of nothing only reads", async () => {
  const { store, ssh, call } = bench();
  await store.change("s1", "old", {}, call());
  assert.deepEqual(ssh.commands.map(statementsOf), [""]);
});

const odd = { id: "s1", comment: "ünï {rds1 x}" };
const guarded = { label: "pool-fs", path: "csi/x", readOnly: false, guard: odd };

for (
  const [name, change] of Object.entries(
    {
      add: (store, context) => store.add({ ...newVolume, subvolume: guarded }, context),
      "change, of a comment in two lines": (store, context) =>
        store.change("s1", "a\nb", { comment: "x" }, context),
      change: (store, context) => store.change("s1", odd.comment, { comment: "x" }, context),
      remove: (store, context) => store.remove(odd, location, filePrefix, context),
      addSubvolume: (store, context) => store.addSubvolume(guarded, part, context),
      renameFile: (store, context) => store.renameFile(copy, path, odd, filePrefix, context),
    } satisfies Record<string, Use>,
  )
) {
  Deno.test(`${name} throws precondition for a comment that cannot be compared, and sends nothing`, async () => {
    const { store, ssh, call } = bench();
    await rejectsWith(change(store, call()), "precondition", /comment .* volume=s1/);
    assert.equal(ssh.commands.length, 0);
  });
}

// What each change shows after any answer is a property of its own, see tests/property/replies_test.ts.
for (
  const [how, reply] of [["lost", () => torn("")], ["unreadable", answering(() => "oops")]] as const
) {
  Deno.test(`change() settles an answer that is ${how} by reading, without sending it again`, async () => {
    const { store, ssh, replies, call, clock } = bench({
      disks: [poolRow, diskRow("s1", { comment: "old" })],
    });
    // More than one read tries: the outcome has to be known, so it is read until that succeeds.
    replies.push(reply, ...Array(7).fill(() => torn("")));
    const outcome = store.change("s1", "old", { comment: "new" }, call());
    await clock.advance(10_000);
    const { after, refusal, ended } = await outcome;
    assert.deepEqual(after.volume, volume("s1", { comment: "old" }));
    // In whole frames, whatever is in them: then the statements have run.
    assert.deepEqual([refusal, ended], [undefined, how === "unreadable"]);
    assert.deepEqual(ssh.commands.slice(1).map(statementsOf), Array(8).fill(""));
  });
}

const subvolume = { label: "pool-fs", path: "csi/snap", readOnly: true };
const disk = { id: "s1", comment: "old", imagePath: path, sizeBytes: 1024n, exported: false };
const unseen = { filePrefix, settleMs: 0 };
const mutations: Readonly<
  Record<string, (store: RouterVolumeStore, context: CallContext) => Promise<{ ended: boolean } | undefined>>
> = {
  add: (store, context) => store.add(newVolume, context),
  addAlone: (store, context) => store.addAlone(newVolume, context),
  addUnseen: (store, context) => store.addUnseen(newVolume, unseen, context),
  change: (store, context) => store.change("s1", "old", { comment: "new" }, context),
  exportUnseen: (store, context) =>
    store.exportUnseen(disk, { comment: "new", export: { nqn: "nqn.x", port: 4420 } }, filePrefix, context),
  growUnseen: (store, context) => store.growUnseen(disk, { comment: "new", sizeBytes: 2048n }, context),
  remove: (store, context) => store.remove(guard, location, filePrefix, context),
  removeUnseen: (store, context) => store.removeUnseen(guard, path, unseen, context),
  removeImage: (store, context) => store.removeImage(location, filePrefix, context),
  addSubvolume: (store, context) => store.addSubvolume(subvolume, part, context),
  renameFile: (store, context) => store.renameFile(copy, path, undefined, filePrefix, context),
};

for (const [name, mutate] of Object.entries(mutations)) {
  Deno.test(`${name}() has ended with a whole answer, and with no text of the router`, async () => {
    const { store, replies, call } = bench({ disks: [poolRow, diskRow("s1", { comment: "old" })] });
    const context = call();
    await store.view("s1", filePrefix, context);
    replies.push(() => ended("failure: action timed out"));
    assert.equal((await mutate(store, context))?.ended, false);
    replies.push(() => torn(""));
    assert.equal((await mutate(store, context))?.ended, false);
    assert.equal((await mutate(store, context))?.ended, true);
  });
}

const frozen = fileRow(`/pool/csi${part}x/disk.img`);
const inSlot = diskRow("s1", { comment: "c" });

/** What the router shows in the command of a change, and whether that tells everything. */
const shown: readonly (readonly [name: string, what: string, Partial<Model>, whole: boolean])[] = [
  ["add", "the disk", { disks: [poolRow, inSlot] }, true],
  ["add", "no disk", {}, false],
  ["addAlone", "the disk", { disks: [poolRow, inSlot] }, true],
  ["addAlone", "no disk", {}, false],
  ["addSubvolume", "a file", { files: [frozen] }, true],
  ["addSubvolume", "no file", {}, false],
  ["remove", "no file", {}, true],
  ["remove", "a file", { files: [fileRow(path)] }, false],
  ["removeUnseen", "no disk", {}, true],
  ["removeUnseen", "the disk", { disks: [poolRow, inSlot] }, false],
  ["removeUnseen", "another kind of disk", { disks: [poolRow, diskRow("s1", { type: "raid" })] }, false],
];

for (const [name, what, model, whole] of shown) {
  Deno.test(`${name}() that shows ${what} ${whole ? "has read everything" : "reads again"}`, async () => {
    const { store, ssh, held, call } = bench();
    const context = call();
    await store.view("s1", filePrefix, context);
    Object.assign(held, model);
    await mutations[name]!(store, context);
    assert.equal(ssh.commands.length, whole ? 2 : 3);
  });
}

const inSubvolume = `/pool/csi/${filePrefix}/disk.img`;
const unlabelled = { ...poolRow, "fs-label": "" };
const odds: readonly (readonly [what: string, Partial<Model> | undefined, Use])[] = [
  ["addUnseen() without a known uptime", undefined, mutations["addUnseen"]!],
  [
    "addUnseen() of what fits no command",
    {},
    (store, context) =>
      store.addUnseen({ ...copied, copied: undefined, comment: "$".repeat(255) }, {
        ...unseen,
      }, context),
  ],
  ["removeUnseen() without a known uptime", undefined, mutations["removeUnseen"]!],
  [
    "removeUnseen() of a comment that cannot be compared",
    {},
    (store, context) => store.removeUnseen(odd, path, unseen, context),
  ],
  [
    "removeUnseen() in a subvolume of a pool without a label",
    { disks: [unlabelled] },
    (store, context) => store.removeUnseen(guard, inSubvolume, unseen, context),
  ],
];

for (const [what, model, change] of odds) {
  Deno.test(`${what} sends nothing, and returns undefined`, async () => {
    const { store, ssh, call } = bench(model);
    if (model !== undefined) await store.view("s1", filePrefix, call());
    const { length } = ssh.commands;
    assert.equal(await change(store, call()), undefined);
    assert.equal(ssh.commands.length, length);
  });
}

Deno.test("change() throws unavailable when it was certainly not sent", async () => {
  const { store, ssh, call, clock } = bench();
  ssh.onConnect = () => {
    throw new Error("ECONNREFUSED");
  };
  const changing = store.change("s1", "old", { comment: "new" }, call());
  const failure = rejectsWith(changing, "unavailable", /ECONNREFUSED/);
  await clock.advance(10_000);
  await failure;
  assert.equal(ssh.commands.length, 0);
});

Deno.test("growUnseen() does not take a command as unsent because its call ends as unavailable, as by a lost lead", async () => {
  const { store, ssh, replies, call } = bench({ disks: [poolRow, diskRow("s1", { comment: "old" })] });
  await store.view("s1", filePrefix, call());
  const lead = new AbortController();
  replies.push((_command, signal) => {
    lead.abort(new VolumeError("unavailable", "the lead ran out"));
    return new Promise((resolve) => {
      if (signal.aborted) resolve(torn(""));
      signal.addEventListener("abort", () => resolve(torn("")));
    });
  });
  const disk = { id: "s1", comment: "old", imagePath: path, sizeBytes: 1024n, exported: true };
  const growing = store.growUnseen(disk, { comment: "new", sizeBytes: 2048n }, {
    ...call(),
    signal: lead.signal,
  });
  await rejectsWith(growing, "unavailable", /the lead ran out/);
  assert.equal(ssh.commands.length, 2);
});

Deno.test("remove() never takes the uptime of another connection for its own", async () => {
  const { store, ssh, call, held, clock } = bench();
  await store.view("s1", filePrefix, call());
  ssh.drop();
  await clock.advance(0);
  held.uptime = "00:00:05";
  const { after } = await store.remove(guard, location, filePrefix, call());
  assert.equal(after.upMs, 5000);
});

Deno.test("remove() is not sent when the connection was lost since its call looked: the router may have rebooted", async () => {
  const { store, ssh, call, clock } = bench();
  const context = call();
  await store.view("s1", filePrefix, context);
  ssh.drop();
  await clock.advance(0);
  await store.view("s1", filePrefix, call());
  await rejectsWith(store.remove(guard, location, filePrefix, context), "unavailable", /read again/);
  assert.deepEqual(ssh.commands.map(statementsOf), ["", ""]);
  await store.view("s1", filePrefix, context);
  await store.remove(guard, location, filePrefix, context);
  assert.equal(ssh.commands.length, 4);
});

for (
  const [name, reading] of Object.entries({
    view: (store: RouterVolumeStore, context: CallContext) => store.view("s1", filePrefix, context),
    createView: (store: RouterVolumeStore, context: CallContext) => store.createView(wanted, context),
    files: (store: RouterVolumeStore, context: CallContext) => store.files(part, context),
  })
) {
  Deno.test(`removeImage() is not sent when the connection was lost since its call looked by ${name}()`, async () => {
    const { store, ssh, call, clock } = bench();
    const context = call();
    await reading(store, context);
    ssh.drop();
    await clock.advance(0);
    await store.view("s1", filePrefix, call());
    await rejectsWith(store.removeImage(location, filePrefix, context), "unavailable", /read again/);
    assert.deepEqual(ssh.commands.map(statementsOf), ["", ""]);
  });
}

Deno.test("removeImage() is not sent when files() alone read the router after it came back", async () => {
  const { store, ssh, call, clock } = bench();
  const context = call();
  await store.view("s1", filePrefix, context);
  ssh.drop();
  await clock.advance(0);
  await store.files(filePrefix, context);
  await rejectsWith(store.removeImage(location, filePrefix, context), "unavailable", /read again/);
});

Deno.test("copyFile() makes the folder first where it is missing", async () => {
  const { store, ssh, call } = bench();
  await store.copyFile(path, copy, call(), { path: "/fast/csi", label: undefined });
  await store.copyFile(path, copy, call(), { path: "/pool/csi", label: "pool-fs" });
  const folders = ssh.commands.map(statementsOf).filter((command) => command.includes("/file copy"));
  assert.match(
    folders[0]!,
    /\/file find where name="fast\/csi"\]\]=0\) do=\{\/file add type="directory" name="fast\/csi"\}/,
  );
  assert.match(folders[1]!, /do=\{\/disk\/btrfs\/subvolume\/add fs="pool-fs" name="csi"\}/);
});

Deno.test("copyFile() waits for hours, and longer when told to", async () => {
  for (
    const [options, afterMs, done] of [
      [{}, 86_000_000, true],
      [{}, 87_000_000, false],
      [{ copyTimeoutMs: 60_000 }, 61_000, false],
    ] as const
  ) {
    const { store, clock, replies, call } = bench({}, options);
    replies.push(async (command, signal) => {
      const gone = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      await Promise.race([clock.sleep(afterMs), gone]);
      return signal.aborted ? torn("") : ended(printFrames(command, () => ""));
    });
    const copying = store.copyFile(path, copy, call());
    await clock.advance(90_000_000);
    assert.equal((await copying).done, done);
  }
});
