// Ending a connection: what is flushed, what is deleted, and what is left alone.
import assert from "node:assert/strict";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { VolumeError } from "../../volume/errors.ts";
import { Deps, host, prefix } from "../../../tests/support/kernel_connector.ts";

const nqn = `${prefix}:pvc-1:1-0a0b0c0d`;
const other = `${prefix}:pvc-2:1-00000000`;
const [A, B] = ["10.0.0.1", "10.0.0.2"] as const;
const ours = { nqn, address: A, ...host };

function deleting(name: string): string {
  const path = `/held/sys/class/nvme/${name}/delete_controller`;
  return `dd of=${path} bs=4096 count=1 iflag=fullblock conv=nocreat,notrunc status=none`;
}

Deno.test("disconnect() flushes, disconnects, and ends when nothing is left", async () => {
  const deps = new Deps();
  const { name } = deps.add(ours);
  const { path } = (await deps.connector.find(nqn))!;
  const before: (readonly string[])[] = [];
  deps.files.onFlush = () => {
    before.push(deps.processes.lines.slice());
    return true;
  };
  await deps.connector.disconnect(nqn, deps.call);
  assert.deepEqual([deps.files.flushed, before], [[path], [[]]]);
  assert.deepEqual(deps.processes.lines, [deleting(name)]);
  assert.deepEqual([deps.processes.runs[0]?.options.input, deps.held], ["1\n", 0]);
  assert.deepEqual(await deps.connector.connections(nqn), []);
  await deps.connector.disconnect(nqn, deps.call);
  assert.deepEqual([deps.processes.lines.length, deps.files.flushed.length], [1, 1]);
});

Deno.test("disconnect() does not flush to a target that is away, and forceDisconnect() never", async () => {
  const deps = new Deps();
  const away = deps.add({ ...ours, state: "connecting" });
  const cut = deps.add({ ...ours, nqn: other });
  await deps.connector.disconnect(nqn, deps.call);
  await deps.connector.forceDisconnect(other, deps.call);
  assert.deepEqual(deps.processes.lines, [deleting(away.name), deleting(cut.name)]);
  assert.deepEqual(deps.files.flushed, []);
});

Deno.test("disconnect() removes every path of the subsystem, and none of another one", async () => {
  const deps = new Deps();
  const paths = [deps.add({ ...ours, state: "connecting" }), deps.add({ ...ours, address: B })];
  deps.add({ ...ours, nqn: other });
  await deps.connector.forceDisconnect(nqn, deps.call);
  assert.deepEqual(deps.processes.lines, paths.map(({ name }) => deleting(name)));
  assert.deepEqual(deps.controllers.map((controller) => controller.nqn), [other]);
});

Deno.test("disconnect() leaves a controller alone whose name belongs to another subsystem now", async () => {
  const deps = new Deps();
  const { name } = deps.add({ ...ours, state: "connecting" });
  deps.onHold = () => {
    deps.remove(nqn);
    deps.add({ ...ours, name, nqn: other });
  };
  await deps.connector.forceDisconnect(nqn, deps.call);
  assert.deepEqual([deps.processes.lines, deps.held], [[], 0]);
  assert.deepEqual(deps.controllers.map((controller) => controller.nqn), [other]);
});

Deno.test("disconnect() goes on when the flush fails", async () => {
  const deps = new Deps();
  deps.add(ours);
  deps.files.onFlush = () => false;
  await deps.connector.disconnect(nqn, deps.call);
  assert.deepEqual(deps.controllers, []);
  assert.match(deps.warnings.join(), /cannot flush.*see the node's kernel log/);
});

for (const state of ["live", "new"]) {
  const kept = state === "live";
  Deno.test(`disconnect() ${kept ? "leaves" : "goes on with"} a controller that is ${state} after its flush did not end`, async () => {
    const deps = new Deps();
    const controller = deps.add(ours);
    deps.files.onFlush = () => {
      deps.set(controller, state);
      throw new VolumeError("unavailable", "Cannot flush the device because it takes too long");
    };
    const disconnecting = deps.connector.disconnect(nqn, deps.call);
    if (kept) {
      await assert.rejects(
        disconnecting,
        refusal("unavailable", /still takes what was written.*takes too long/),
      );
    } else await disconnecting;
    assert.deepEqual(deps.controllers, kept ? [controller] : []);
  });
}

Deno.test("disconnect() gives up a flush after ten seconds, and leaves a controller that is live", async () => {
  const deps = new Deps();
  const controller = deps.add(ours);
  const late = new VolumeError("unavailable", "Cannot flush the device because it takes too long");
  deps.files.onFlush = (_path, signal) =>
    new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(late)));
  let outcome: unknown;
  void deps.connector.disconnect(nqn, deps.call).catch((error) => outcome = error);
  await deps.clock.advance(9_999);
  assert.equal(outcome, undefined);
  await deps.clock.advance(1);
  assert.match(String(outcome), /still takes what was written/);
  assert.deepEqual([deps.controllers, deps.processes.lines], [[controller], []]);
});

Deno.test("disconnect() throws unavailable while the kernel keeps it, whatever the tool reports", async () => {
  const deps = new Deps(true, 5_000);
  const controller = deps.add(ours);
  deps.script = ({ tool }) => tool === "dd" ? 0 : undefined;
  const refused = refusal("unavailable", new RegExp(`controllers=${controller.name}:live`));
  await assert.rejects(deps.inTime(deps.connector.disconnect(nqn, deps.call)), refused);
});

Deno.test("disconnect() ends as its tool does when that cannot be run at all", async () => {
  const deps = new Deps();
  deps.add(ours);
  deps.script = ({ tool }) => {
    if (tool === "dd") throw new VolumeError("precondition", "Cannot run the tool because it is missing");
    return 0;
  };
  await assert.rejects(
    deps.inTime(deps.connector.disconnect(nqn, deps.call)),
    refusal("precondition", /is missing/),
  );
});

Deno.test("disconnect() waits for an earlier attempt that hangs in the kernel", async () => {
  const deps = new Deps();
  deps.add({ ...ours, state: "deleting" });
  deps.script = () => {
    throw new VolumeError("unavailable", "Cannot begin nvme because an earlier attempt still hangs");
  };
  const disconnecting = deps.connector.disconnect(nqn, deps.call);
  await deps.clock.advance(5_000);
  deps.remove(nqn);
  await deps.inTime(disconnecting);
  assert.deepEqual(await deps.connector.connected(), []);
});
