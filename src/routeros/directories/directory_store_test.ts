import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { fakeCall } from "../../../tests/fakes/contexts.ts";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import { ended, FakeSshTransport } from "../../../tests/fakes/ssh_transport.ts";
import { makeRouter, typeTo } from "../../../tests/support/simulated_router.ts";
import { isLong } from "../../../tests/support/long.ts";
import type { Behaviours } from "../../simulator/behaviours.ts";
import { Session } from "../ssh/session.ts";
import { RouterDirectoryStore } from "./directory_store.ts";

/** How many directories pods have named like those of the driver. */
const named = isLong ? 150_000 : 10_000;
const mark = "0123abcd";

/** A store over a simulated router that shares a pool. */
function bench(behaviours: Partial<Behaviours> = {}, edit = (output: string) => output) {
  const pools = [{ name: "share", nfsSharing: true }, { name: "usb1" }];
  const router = makeRouter({ pools, behaviours });
  const type = typeTo(router);
  const clock = new FakeClock();
  const random = new SeededRandom();
  let longest = 0;
  const transport = new FakeSshTransport(async (command) => {
    const output = edit(await type(command));
    longest = Math.max(longest, output.length);
    return ended(output);
  });
  const session = new Session({ transport, clock, random });
  const probe = () => Promise.resolve();
  const store = new RouterDirectoryStore({ session, clock, random, probe });
  const list = async () => {
    const { entries, share } = await store.list("/share/k8s", mark, fakeCall(clock));
    assert.ok(share?.isShared);
    return entries.map(({ path }) => path).toSorted();
  };
  return { files: router.files, list, transport, longestAnswer: () => longest };
}

const volumes = [
  `/share/k8s/pvc-a.${mark}`,
  `/share/k8s/pvc-b.${mark}.deleted-00112233`,
  `/share/k8s/team/a.b/pvc-c.${mark}`,
  `/share/k8s/Team.20240101/pvc-d.${mark}`,
];

Deno.test("list() finds the directories of all folders, and nothing that a pod names like one, however much", async () => {
  const { files, list, transport, longestAnswer } = bench();
  for (const path of volumes) files.makeDirectories(path.slice(1));
  files.makeDirectories("share/k8s/pvc-e.ffffffff");
  for (let i = 0; i < named; i++) {
    const volume = [...volumes, "/share/k8s/pvc-e.ffffffff"][i % 5]!;
    files.makeDirectories(`${volume.slice(1)}/d${i}.${mark}`);
  }
  files.makeDirectories(`${volumes[0]!.slice(1)}/deep/er/d1.${mark}.deleted-00112233/d2.${mark}`);
  assert.deepEqual(await list(), volumes.toSorted());
  assert.equal(transport.commands.length, 1);
  assert.ok(longestAnswer() < 2_000, `${longestAnswer()} characters`);
});

Deno.test("list() finds all directories in parts where the router's output is limited", async () => {
  const { files, list, transport } = bench({ maxPut: 4096 });
  const many = Array.from({ length: 500 }, (_, i) => `/share/k8s/pvc-${(i * 7919).toString(16)}.${mark}`);
  for (const path of many) files.makeDirectories(path.slice(1));
  assert.deepEqual(await list(), many.toSorted());
  assert.ok(transport.commands.every((command) => command.length <= 1024));
});

for (const slot of ["usb1", "share"]) {
  Deno.test(`list() reads the share where "mounted" of ${slot} cannot be read, unless that is the share itself`, async () => {
    let edited = 0;
    const odd = (row: string) =>
      row.includes(`"slot":"${slot}"`) ? row.replace('"mounted":true', '"mounted":1234') : row;
    const { files, list } = bench({}, (output) =>
      output.replace(/\{[^{}]*\}/g, (row) => {
        if (odd(row) !== row) edited++;
        return odd(row);
      }));
    files.makeDirectories(volumes[0]!.slice(1));
    if (slot === "usb1") assert.deepEqual(await list(), volumes.slice(0, 1));
    else await assert.rejects(list(), /the key mounted has an unexpected value \(of "share"\)/);
    assert.equal(edited, 1);
  });
}
