import assert from "node:assert/strict";
import { FakeKubelet } from "../../../tests/fakes/kubelet.ts";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import { systemClock } from "../../host/clock.ts";
import { createLogger } from "../../telemetry/log.ts";
import { VolumeError } from "../../volume/errors.ts";
import { guardClientSessions } from "./http2_guard.ts";
import { loadRegistration } from "./proto.ts";
import { registrationSocket, serveRegistration } from "./registration.ts";
import { serverTest } from "../../../tests/support/csi_server.ts";

/** Both ways of serving a unix socket; both are the same where this Deno needs the fallback. */
const WAYS = [["", Deno.version.deno], [" of an old Deno", "2.7.11"]] as const;

const csiSocket = "/var/lib/kubelet/plugins/rds.test/csi.sock";

/** A kubelet with its folder, and its calls to the driver. */
class Bench implements AsyncDisposable {
  readonly path: string;
  readonly kubelet: FakeKubelet;
  readonly notes: (string | undefined)[] = [];
  readonly calls: string[] = [];
  // One for all listeners: a listener that closes late removes its temporary name, which must not be the next one's.
  readonly #random = new SeededRandom();
  readonly #folder: string;
  readonly #closers: (() => Promise<void>)[] = [];

  constructor() {
    guardClientSessions();
    this.#folder = Deno.makeTempDirSync({ prefix: "rds-csi-test-" });
    this.kubelet = new FakeKubelet(this.#folder);
    this.path = registrationSocket(this.#folder, "rds.test");
  }

  async serve(denoVersion: string) {
    const served = await serveRegistration({
      path: this.path,
      driver: { driverName: "rds.test", socketPath: csiSocket },
      registration: loadRegistration(),
      clock: systemClock,
      random: this.#random,
      log: createLogger({ clock: systemClock, sink: () => {} }),
      observe: ({ path, code }) => void this.calls.push(`${path} ${code}`),
      notified: (failure) => void this.notes.push(failure),
      denoVersion,
    });
    this.#closers.push(() => served.close());
    return served;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#closers) await close();
    await Deno.remove(this.#folder, { recursive: true });
  }
}

for (const [way, version] of WAYS) {
  serverTest(`serveRegistration() on a unix socket${way} describes the driver to the kubelet`, async () => {
    await using bench = new Bench();
    await bench.serve(version);
    assert.deepEqual(await bench.kubelet.check(), [
      { type: "CSIPlugin", name: "rds.test", endpoint: csiSocket, supportedVersions: ["1.0.0"] },
    ]);
    assert.deepEqual(bench.notes, [undefined]);
    assert.deepEqual(bench.calls, [
      "/pluginregistration.Registration/GetInfo OK",
      "/pluginregistration.Registration/NotifyRegistrationStatus OK",
    ]);
  });

  serverTest(`serveRegistration() on a unix socket${way} receives why the kubelet refused`, async () => {
    await using bench = new Bench();
    await bench.serve(version);
    bench.kubelet.refusal = "NodeGetInfo failed";
    await bench.kubelet.check();
    assert.deepEqual(bench.notes, ["NodeGetInfo failed"]);
  });

  serverTest(`close() removes the registration socket${way}, and nothing but its own`, async () => {
    await using bench = new Bench();
    const first = await bench.serve(version);
    assert.equal(await first.isInPlace(), true);
    await first.close();
    assert.deepEqual([...Deno.readDirSync(bench.kubelet.folder)], []);
    const second = await bench.serve(version);
    await Deno.remove(bench.path);
    assert.equal(await second.isInPlace(), false);
    await Deno.writeTextFile(bench.path, "somebody else's");
    await second.close();
    assert.equal(await Deno.readTextFile(bench.path), "somebody else's");
  });
}

serverTest("serveRegistration() leaves another process alone that registers the driver already", async () => {
  await using bench = new Bench();
  const first = await bench.serve(Deno.version.deno);
  await assert.rejects(bench.serve(Deno.version.deno), (error) => VolumeError.is(error, "precondition"));
  assert.equal(await first.isInPlace(), true);
  assert.equal((await bench.kubelet.check()).length, 1);
});

serverTest(
  "serveRegistration() throws when the kubelet's folder is missing, and does not create it",
  async () => {
    await using bench = new Bench();
    await Deno.remove(bench.kubelet.folder);
    await assert.rejects(bench.serve(Deno.version.deno));
    assert.throws(() => Deno.statSync(bench.kubelet.folder), Deno.errors.NotFound);
  },
);
