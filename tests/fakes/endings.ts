import assert from "node:assert/strict";
import type { VolumeErrorKind } from "../../src/volume/errors.ts";
import { refusal } from "./refusal.ts";
import type { Mishap } from "./mishap.ts";
import type { FakeVolumeStore } from "./volume_store.ts";

/** How a command can end, and whether the call that sent it may answer OK. */
export type Ending = readonly [name: string, mishap: Mishap, isDone: boolean];

/** Every way in which a command with one change can end. */
export const endings: readonly Ending[] = [
  ["ran, end unknown", { runs: true, refusal: "interrupted" }, true],
  ["did not run", { runs: false }, false],
  ["refused", { refusal: "failure: no" }, false],
  ["ran, unreadable", { unreadable: true }, false],
  ["did not run, unreadable", { runs: false, unreadable: true }, false],
];

/** Waits for a call whose command ended in that way: it may answer OK only if its change was read back. */
export async function endsAs(
  [name, , isDone]: Ending,
  call: Promise<unknown>,
  kind: VolumeErrorKind = "unavailable",
): Promise<void> {
  await (isDone ? call : assert.rejects(call, refusal(kind), name));
}

/** Waits for a call that is refused, and checks that nothing has changed on the router. */
export async function refusedUnchanged(
  store: Pick<FakeVolumeStore, "snapshot">,
  call: () => Promise<unknown>,
  error: (error: unknown) => true,
  name?: string,
): Promise<void> {
  const before = store.snapshot();
  await assert.rejects(call(), error, name);
  assert.deepEqual(store.snapshot(), before, name);
}
