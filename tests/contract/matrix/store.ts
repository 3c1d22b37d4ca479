// Shared by the scenarios of the RouterOS adapter: running one, and the routers on which it can do almost nothing.
import assert from "node:assert/strict";
import { minCommand } from "../../../src/router_profile/limits.ts";
import { VolumeError } from "../../../src/volume/errors.ts";
import {
  type Bench,
  type BenchOptions,
  filePrefix,
  gib,
  held,
  makeFolder,
  newVolume,
  nqn,
  record,
  rejectsWith,
  slot,
  truth,
  wanted,
  withRouter,
} from "../_routeros_bench.ts";
import type { Otherwise, Scenario } from "./scenario.ts";
import type { Setting } from "./settings.ts";

/** Many routers share this machine: a router that is slow for a moment must not be taken for a silent one. */
const patientMs = 3000;

/** Runs a test over SSH against a router with this setting. */
export function on(test: (bench: Bench) => Promise<void>, options: BenchOptions = {}): Scenario["run"] {
  return ({ profile, behaviours }: Setting) =>
    withRouter(
      {
        commandTimeoutMs: patientMs,
        ...options,
        profile,
        behaviours: { ...options.behaviours, ...behaviours },
      },
      test,
    );
}

/** Checks that the router has no disk with a file, and no file. */
export function assertUntouched({ router }: Bench): void {
  assert.deepEqual(router.model.disks.list().filter((disk) => disk.type === "file"), []);
  assert.deepEqual(router.model.files.list().filter((file) => file.kind === "file"), []);
}

/** Checks that the router refused nothing; a hostile router always prints something. */
export function assertQuiet({ router }: Bench, refusal: string | undefined): void {
  if (router.model.behaviours.output === "plain") assert.equal(refusal, undefined);
}

export const noRose: Otherwise = {
  when: ({ rose }) => !rose,
  because: "without rose-storage every call is refused, nothing is touched, and probe() names the package",
  run: on(async (bench) => {
    const { store, call } = bench;
    await rejectsWith(store.probe(call()), "precondition", /rose-storage/);
    await rejectsWith(store.createView(wanted(slot), call()), "unavailable");
    await rejectsWith(store.inventory(call()), "unavailable");
    await assert.rejects(store.add({ ...newVolume(), makeFolder }, call(200)), VolumeError);
    assertUntouched(bench);
  }),
};

const shortSlots: Otherwise = {
  when: ({ maxSlot }) => maxSlot < slot.length,
  because: "a slot that is too long for the router is refused, and nothing is left of it",
  run: on(async (bench) => {
    const { store, call } = bench;
    const { after, refusal } = await store.add({ ...newVolume(), makeFolder }, call());
    assert.notEqual(refusal, undefined);
    assert.deepEqual(after.volumes, []);
    assertUntouched(bench);
  }),
};

const fewWords: Otherwise = {
  when: ({ maxPut }) => maxPut < 1024,
  because: "where a router cannot even print one disk, what is there is unavailable, never absent",
  run: on(async (bench) => {
    const { store, call, router } = bench;
    const { after } = await store.add({ ...newVolume(), makeFolder }, call());
    assert.deepEqual(after.volumes, [truth(router, slot)]);
    const comment = { comment: record.repeat(4) };
    await rejectsWith(store.change(slot, record, comment, call(300)), "deadline");
    await rejectsWith(store.view(slot, filePrefix, call()), "unavailable", /cut/);
    await rejectsWith(store.createView(wanted(slot), call()), "unavailable", /cut/);
    assert.equal(truth(router, slot)?.sizeBytes, gib);
  }),
};

const shortCommands: Otherwise = {
  when: ({ maxCommand }) => maxCommand < minCommand,
  because:
    "a router that takes no command as long as they are is not read, and nothing comes of what it is told",
  run: on(async (bench) => {
    const { store, call } = bench;
    await rejectsWith(store.view(slot, filePrefix, call()), "unavailable", /lost/);
    await rejectsWith(store.createView(wanted(slot), call()), "unavailable", /lost/);
    const { after } = await store.add({ ...newVolume(), makeFolder }, call());
    assert.deepEqual(after.volumes, []);
    const changed = await store.change(slot, record, { comment: held, export: { nqn, port: 4420 } }, call());
    assert.equal(changed.after.volume, undefined);
    assertUntouched(bench);
  }),
};

/** Routers whose comments have no room for a holder. */
export const shortHeld: Pick<Otherwise, "when"> = { when: ({ maxComment }) => maxComment < held.length };

/** Routers that are of no use: every scenario has this outcome on them. */
export const useless: readonly Otherwise[] = [noRose, shortSlots, fewWords, shortCommands];
