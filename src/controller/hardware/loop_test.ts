import assert from "node:assert/strict";
import { testController } from "../../../tests/fakes/controller_deps.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { HardwareDisk } from "../../volume/model/health/hardware.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { HardwareLoop } from "./loop.ts";
import { freshMs } from "./memory.ts";

const minute = 60_000;
const drive: HardwareDisk = { slot: "nvme1", serial: "S1", mountPoint: "pool", ioErrors: 1 };
const failed = { ...drive, memberFailed: true };

/** A loop that reads every 15 minutes what the test says. */
function scene(intervalMs = 15 * minute) {
  const { deps, clock, events, notes } = testController();
  const asked: number[] = [];
  const stop = new AbortController();
  const router = {
    disks: [drive] as readonly HardwareDisk[] | undefined,
    upMs: 86_400_000 as number | undefined,
    answer: (_context: CallContext): Promise<void> => Promise.resolve(),
    filesystems: (_context: CallContext): Promise<undefined> => Promise.resolve(undefined),
  };
  const started = clock.now();
  const reader = {
    async drives(context: CallContext) {
      asked.push((clock.now() - started) / minute);
      await router.answer(context);
      return { disks: router.disks, upMs: router.upMs };
    },
    filesystems: (_disks: unknown, context: CallContext) => router.filesystems(context),
  };
  const over = new HardwareLoop(deps, reader, intervalMs).run(stop.signal);
  return {
    ...{ deps, clock, notes, asked, router },
    found: () =>
      events.map((event) =>
        event.kind === "hardware-read" && event.read?.findings.map(({ reason }) => reason).join()
      ),
    faults: () => deps.hardware.faultsBelow("pool").map(({ reason }) => reason),
    async stop() {
      stop.abort(new Error("the lead is lost"));
      await over;
    },
  };
}

Deno.test("HardwareLoop reads when its lead has settled in, and every interval from then on", async () => {
  const { clock, asked, stop } = scene();
  await clock.advance(45 * minute);
  await stop();
  const [first = 0, ...rest] = asked;
  assert.ok(first >= 1 && first <= 2, String(first));
  assert.deepEqual(rest.map((at) => Math.round(at - first)), [15, 30]);
});

Deno.test("HardwareLoop never reads with an interval of 0", async () => {
  const { clock, asked, stop } = scene(0);
  await clock.advance(120 * minute);
  await stop();
  assert.deepEqual(asked, []);
});

Deno.test("HardwareLoop tells each reading with its faults, and at its end that nothing is known", async () => {
  const { clock, router, found, faults, stop } = scene();
  await clock.advance(2 * minute);
  router.disks = [{ ...failed, ioErrors: 4 }];
  await clock.advance(15 * minute);
  assert.deepEqual([found(), faults()], [["", "MemberFailed,ErrorsRose"], ["MemberFailed"]]);
  await stop();
  assert.deepEqual([found().at(-1), faults()], [undefined, []]);
});

Deno.test("HardwareLoop neither begins nor ends a fault by what the router refuses to report", async () => {
  const { clock, router, faults, found, stop } = scene();
  router.disks = [failed];
  await clock.advance(2 * minute);
  assert.deepEqual(faults(), ["MemberFailed"]);
  router.disks = undefined;
  router.upMs = undefined;
  await clock.advance(15 * minute);
  assert.deepEqual([faults(), found()], [["MemberFailed"], ["MemberFailed", "MemberFailed"]]);
  router.disks = [{ ...drive, memberFailed: false }];
  await clock.advance(15 * minute);
  assert.deepEqual(faults(), []);
  await stop();
});

Deno.test("HardwareLoop keeps what it read while the router cannot be asked, and only for as long as that is fresh", async () => {
  const { clock, router, faults, asked, notes, stop } = scene();
  router.disks = [failed];
  await clock.advance(2 * minute);
  router.answer = () => Promise.reject(new VolumeError("unavailable", "it is away"));
  await clock.advance(31 * minute);
  assert.deepEqual([faults(), asked.length], [["MemberFailed"], 3]);
  assert.deepEqual(notes, Array(2).fill("cannot read the health of drives; retrying"));
  await clock.advance(freshMs);
  assert.deepEqual(faults(), []);
  await stop();
});

Deno.test("HardwareLoop forgets no fault by a single lost answer, however rarely it reads", async () => {
  const { clock, deps, router, faults, stop } = scene(60 * minute);
  router.disks = [failed];
  await clock.advance(2 * minute);
  router.answer = () => Promise.reject(new VolumeError("unavailable", "the answer was lost"));
  await clock.advance(60 * minute);
  router.answer = () => clock.sleep(10_000);
  for (let step = 0; step < 12 * 120; step++) {
    await clock.advance(minute / 12);
    assert.deepEqual([deps.hardware.isKnown, faults()], [true, ["MemberFailed"]], String(step));
  }
  await stop();
});

Deno.test("HardwareLoop asks hourly after a reading that was not answered in time", async () => {
  const { clock, router, asked, stop } = scene();
  router.answer = ({ signal }) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  await clock.advance(3 * minute);
  router.answer = () => Promise.resolve();
  await clock.advance(80 * minute);
  await stop();
  const [first = 0, ...rest] = asked;
  assert.deepEqual(rest.map((at) => Math.round(at - first)), [60, 75]);
});

Deno.test("HardwareLoop judges drives although nothing is said of Btrfs in time", async () => {
  const { clock, router, asked, faults, notes, stop } = scene();
  router.disks = [failed];
  router.filesystems = ({ signal }) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  await clock.advance(30 * minute);
  assert.deepEqual([faults(), asked.length, notes.length], [["MemberFailed"], 1, 1]);
  await stop();
});

Deno.test("HardwareLoop does not judge a router that may still be assembling its arrays", async () => {
  const { clock, router, asked, found, stop } = scene();
  router.disks = [failed];
  router.upMs = 30_000;
  await clock.advance(2 * minute);
  assert.deepEqual([found(), asked.length], [[], 1]);
  router.upMs = 86_400_000;
  await clock.advance(2 * minute);
  assert.deepEqual(found(), ["MemberFailed"]);
  await stop();
});
