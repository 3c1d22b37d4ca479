import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { addCommand, makeBasePath, makeRouter, typeTo } from "../../../tests/support/simulated_router.ts";
import { DirectoryBacking } from "./directory_backing.ts";
import type { Exporter } from "./exports.ts";
import { LoopExporter } from "./exporters.ts";
import { makeScratch } from "../../../tests/support/scratch.ts";

function recorded() {
  const calls: string[] = [];
  const exporter: Exporter = {
    serve: (nqn) => calls.push(`+${nqn}`),
    change: (nqn) => calls.push(`~${nqn}`),
    withdraw: (nqn) => calls.push(`-${nqn}`),
  };
  return { calls, exporter };
}

async function exporting(behaviours = {}) {
  const clock = new FakeClock();
  const { calls, exporter } = recorded();
  const router = makeRouter({ clock, exporter, behaviours });
  const type = typeTo(router);
  await type(makeBasePath);
  await type(addCommand("a", 'nvme-tcp-export="yes" nvme-tcp-server-nqn="nqn.1"'));
  return { clock, router, type, calls };
}

const endings: readonly (readonly [name: string, command: string, calls: readonly string[]])[] = [
  ["export=no", '/disk set "a" nvme-tcp-export="no"', ["+nqn.1", "-nqn.1"]],
  ["disable", '/disk disable "a"', ["+nqn.1", "-nqn.1"]],
  ["remove", '/disk remove "a"', ["+nqn.1", "-nqn.1"]],
  ["a new NQN", '/disk set "a" nvme-tcp-server-nqn="nqn.2"', ["+nqn.1", "-nqn.1", "+nqn.2"]],
  ["a change that does not concern it", '/disk set "a" comment="x"', ["+nqn.1"]],
  ["export=yes once more", '/disk set "a" nvme-tcp-export="yes"', ["+nqn.1"]],
  ["another port", '/disk set "a" nvme-tcp-server-port="4421"', ["+nqn.1", "~nqn.1"]],
  ["more room", '/disk set "a" file-size="2147483648"', ["+nqn.1", "~nqn.1"]],
  ["hosts that it is for", '/disk set "a" nvme-tcp-server-allow-host-name="nqn.h"', ["+nqn.1", "~nqn.1"]],
  ["disable and enable", '/disk disable "a"; /disk enable "a"', ["+nqn.1", "-nqn.1", "+nqn.1"]],
];

for (const [name, command, expected] of endings) {
  Deno.test(`an export follows ${name}`, async () => {
    const { type, calls } = await exporting({ grow: "live" });
    assert.equal(await type(command), "");
    assert.deepEqual(calls, expected);
  });
}

Deno.test("an export that comes back while it lingers stays", async () => {
  const { clock, router, type } = await exporting({ unexport: 500 });
  await type('/disk disable "a"');
  await clock.advance(100);
  await type('/disk enable "a"');
  await clock.advance(1000);
  assert.deepEqual(router.exports.list(), ["nqn.1"]);
});

Deno.test("an exporter is called when an export lingers", async () => {
  const clock = new FakeClock();
  const { calls, exporter } = recorded();
  const lingering: Exporter = { ...exporter, linger: (nqn) => calls.push(`?${nqn}`) };
  const type = typeTo(makeRouter({ clock, exporter: lingering, behaviours: { unexport: 500 } }));
  await type(makeBasePath);
  await type(addCommand("a", 'nvme-tcp-export="yes" nvme-tcp-server-nqn="nqn.1"'));
  await type('/disk remove "a"');
  assert.deepEqual(calls, ["+nqn.1", "?nqn.1"]);
  await clock.advance(500);
  assert.deepEqual(calls, ["+nqn.1", "?nqn.1", "-nqn.1"]);
});

Deno.test("an exporter is called when hosts stay connected to a withdrawn export", async () => {
  const { calls, exporter } = recorded();
  const refusing: Exporter = { ...exporter, refuse: (nqn) => calls.push(`!${nqn}`) };
  const behaviours = { unexport: "refuses-commands" } as const;
  const type = typeTo(makeRouter({ exporter: refusing, behaviours }));
  await type(makeBasePath);
  await type(addCommand("a", 'nvme-tcp-export="yes" nvme-tcp-server-nqn="nqn.1"'));
  await type('/disk set "a" nvme-tcp-export="no"');
  assert.deepEqual(calls, ["+nqn.1", "!nqn.1"]);
});

Deno.test("LoopExporter links an NQN to the disk's file exactly while it is exported", async () => {
  await using scratch = await makeScratch();
  const folder = scratch.path;
  const backing = new DirectoryBacking(`${folder}/files`);
  const router = makeRouter({ backing, exporter: new LoopExporter(`${folder}/exports`) });
  const type = typeTo(router);
  const nqn = "nqn.2000-02.com.mikrotik:a:1-ab12cd34";
  await type(makeBasePath);
  await type(addCommand("a", `nvme-tcp-export="yes" nvme-tcp-server-nqn="${nqn}"`));
  const link = `${folder}/exports/${nqn}`;
  const file = await Deno.realPath(`${folder}/files/storage-pool/metal-csi/a.img`);
  assert.equal(await Deno.realPath(link), file);
  await type('/disk set "a" nvme-tcp-export="no"');
  assert.deepEqual(Array.from(Deno.readDirSync(`${folder}/exports`)), []);
});

Deno.test("LoopExporter removes the links of an earlier run, and nothing else", async () => {
  await using scratch = await makeScratch();
  const folder = scratch.path;
  await Deno.symlink("/nowhere", `${folder}/nqn.old`);
  await Deno.writeTextFile(`${folder}/note`, "keep");
  const exporter = new LoopExporter(folder);
  assert.deepEqual(Array.from(Deno.readDirSync(folder), ({ name }) => name), ["note"]);
  exporter.withdraw("nqn.never");
});

Deno.test("LoopExporter makes no link outside its folder", async () => {
  await using scratch = await makeScratch();
  const folder = scratch.path;
  const exporter = new LoopExporter(`${folder}/exports`);
  for (const nqn of ["../escape", "..", "a/b", ""]) {
    exporter.serve(nqn, `${folder}/file`);
    exporter.withdraw(nqn);
  }
  assert.deepEqual(Array.from(Deno.readDirSync(folder), ({ name }) => name), ["exports"]);
});
