import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { createLogger } from "../../telemetry/log.ts";
import { VolumeError } from "../../volume/errors.ts";
import { checkEveryMs, RegistrationKeeper, retryMs } from "./registration_keeper.ts";

/** A kubelet's folder with at most one socket in it, and the events there. */
class Scene {
  readonly clock = new FakeClock();
  readonly events: string[] = [];
  readonly lines: Record<string, unknown>[] = [];
  readonly keeper: RegistrationKeeper;
  /** Number of the socket in the folder; undefined for none. */
  there: number | undefined;
  /** Why no socket can be placed. */
  obstacle: string | undefined;
  /** Why the driver could serve no pods. */
  useless: string | undefined;
  report: (failure: string | undefined) => void = () => {};
  #served = 0;

  constructor() {
    this.keeper = new RegistrationKeeper({
      clock: this.clock,
      log: createLogger({ clock: this.clock, sink: (line) => void this.lines.push(JSON.parse(line)) }),
      observeState: (state) => void this.events.push(state),
      obstacle: () => Promise.resolve(this.useless),
      serve: (notified) => this.#serve(notified),
    });
  }

  #serve(notified: (failure: string | undefined) => void) {
    if (this.obstacle !== undefined) {
      return Promise.reject(new VolumeError("precondition", this.obstacle));
    }
    const own = ++this.#served;
    this.there = own;
    this.report = notified;
    this.events.push(`served ${own}`);
    return Promise.resolve({
      isInPlace: () => Promise.resolve(this.there === own),
      close: () => {
        if (this.there === own) this.there = undefined;
        this.events.push(`closed ${own}`);
        return Promise.resolve();
      },
    });
  }

  /** The events since the last call. */
  async after(ms: number): Promise<readonly string[]> {
    await this.clock.advance(ms);
    return this.events.splice(0);
  }

  complaints(): readonly unknown[] {
    return this.lines.filter((line) => line.level === "WARN").map((line) => line.reason ?? line.message);
  }
}

Deno.test("RegistrationKeeper offers the driver once, and withdraws it when it is stopped", async () => {
  const scene = new Scene();
  scene.keeper.start();
  assert.deepEqual(await scene.after(0), ["served 1"]);
  scene.report(undefined);
  assert.deepEqual(await scene.after(100 * checkEveryMs), ["registered"]);
  await scene.keeper.stop();
  assert.deepEqual(await scene.after(100 * checkEveryMs), ["closed 1"]);
  assert.equal(scene.clock.waiting, 0);
});

Deno.test("RegistrationKeeper makes the socket again when it is gone, as soon as there is a folder", async () => {
  const scene = new Scene();
  scene.keeper.start();
  await scene.after(0);
  scene.there = undefined;
  scene.obstacle = "there is no folder";
  assert.deepEqual(await scene.after(3 * checkEveryMs), ["lost", "closed 1"]);
  scene.obstacle = undefined;
  assert.deepEqual(await scene.after(checkEveryMs), ["served 2"]);
  assert.equal(scene.complaints().filter((reason) => reason === "there is no folder").length, 1);
  await scene.keeper.stop();
});

Deno.test("RegistrationKeeper waits for another process that serves there, and takes over when it is gone", async () => {
  const scene = new Scene();
  scene.obstacle = "another process answers there";
  scene.keeper.start();
  assert.deepEqual(await scene.after(20 * checkEveryMs), []);
  assert.deepEqual(scene.complaints(), ["another process answers there"]);
  scene.obstacle = undefined;
  assert.deepEqual(await scene.after(checkEveryMs), ["served 1"]);
  await scene.keeper.stop();
});

Deno.test("RegistrationKeeper retries a failed registration, after longer and longer waits", async () => {
  const scene = new Scene();
  scene.keeper.start();
  await scene.after(0);
  scene.report("NodeGetInfo failed");
  assert.deepEqual(await scene.after(retryMs - checkEveryMs), ["refused"]);
  assert.deepEqual(await scene.after(checkEveryMs), ["closed 1", "served 2"]);
  assert.ok(
    scene.lines.some((line) => line.level === "ERROR" && line.reason === "NodeGetInfo failed"),
    JSON.stringify(scene.lines),
  );
  scene.report("again");
  assert.deepEqual(await scene.after(2 * retryMs - checkEveryMs), ["refused"]);
  assert.deepEqual(await scene.after(checkEveryMs), ["closed 2", "served 3"]);
  for (let i = 0; i < 20; i++) {
    scene.report("again");
    await scene.after(300_000);
  }
  scene.events.splice(0);
  scene.report("again");
  assert.deepEqual((await scene.after(300_000)).length, 3);
  scene.report(undefined);
  scene.report("after a success the waits begin anew");
  assert.deepEqual((await scene.after(retryMs)).slice(0, 2), ["registered", "refused"]);
  assert.equal(scene.there, 25);
  await scene.keeper.stop();
});

Deno.test("RegistrationKeeper reports a failure of a kubelet that retries every second once, and still offers a new socket", async () => {
  const scene = new Scene();
  scene.keeper.start();
  await scene.after(0);
  for (let second = 0; second < retryMs / 1000; second++) {
    scene.report("NodeGetInfo failed");
    await scene.clock.advance(1000);
  }
  assert.deepEqual(scene.events.filter((event) => event !== "refused"), ["closed 1", "served 2"]);
  const errors = () => scene.lines.filter((line) => line.level === "ERROR").length;
  assert.equal(errors(), 1);
  scene.report("another reason");
  assert.equal(errors(), 2);
  scene.report(undefined);
  scene.report("another reason");
  assert.equal(errors(), 3);
  await scene.keeper.stop();
});

Deno.test("RegistrationKeeper stops although the socket could never be placed", async () => {
  const scene = new Scene();
  scene.obstacle = "no";
  scene.keeper.start();
  await scene.after(0);
  await scene.keeper.stop();
  assert.deepEqual(scene.events, []);
  assert.equal(scene.clock.waiting, 0);
});

Deno.test("RegistrationKeeper offers no driver that can serve no pods, says why once, and offers it when it can", async () => {
  const scene = new Scene();
  scene.useless = "the module nvme_tcp is not loaded";
  scene.keeper.start();
  assert.deepEqual(await scene.after(20 * checkEveryMs), []);
  assert.deepEqual(scene.complaints(), ["the module nvme_tcp is not loaded"]);
  scene.useless = undefined;
  assert.deepEqual(await scene.after(checkEveryMs), ["served 1"]);
  // Volumes are in use by then, so the driver stays offered.
  scene.useless = "gone again";
  assert.deepEqual(await scene.after(20 * checkEveryMs), []);
  await scene.keeper.stop();
});
