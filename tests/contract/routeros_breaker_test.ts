// What the RouterOS adapter does about a router that cannot be reached for a while: it says so at once, with the reason,
// lets nothing pile up, and notices by itself when the router is back.
import assert from "node:assert/strict";
import { createServer, type Socket } from "node:net";
import { systemClock } from "../../src/host/clock.ts";
import { systemRandom } from "../../src/host/random.ts";
import { Session } from "../../src/routeros/ssh/session.ts";
import { Ssh2Transport } from "../../src/routeros/ssh/ssh_transport.ts";
import { RouterVolumeStore } from "../../src/routeros/store/volume_store.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import { fakeCall } from "../fakes/contexts.ts";
import { addOne, type Bench, contractTest, rejectsWith, slot, stem, truth } from "./_routeros_bench.ts";
import { makeSshKeys } from "../fakes/ssh_keys.ts";

const nextTry = /in a row|failed once/;

async function reboot({ router }: Bench, downMs: number): Promise<void> {
  const response = await fetch(`${router.controlUrl}/reboot`, {
    method: "POST",
    body: JSON.stringify({ downMs }),
  });
  await response.body?.cancel();
}

async function timed(run: () => Promise<unknown>): Promise<number> {
  const startedMs = systemClock.monotonicMs();
  await run();
  return systemClock.monotonicMs() - startedMs;
}

contractTest(
  "a router that is down is UNAVAILABLE at once after three attempts, and used again once up",
  async (bench) => {
    const { store, call, router, cost } = bench;
    await addOne(bench);
    await reboot(bench, 2500);
    await rejectsWith(
      store.view(slot, stem, call()),
      "unavailable",
      /3 times in a row, and the next try is not before/,
    );
    cost();
    const ms = await timed(() =>
      Promise.all(
        Array.from(
          { length: 500 },
          (_, i) => rejectsWith(store.view(`pvc-${i}`, stem, call()), "unavailable", nextTry),
        ),
      )
    );
    assert.ok(ms < 1000, `${ms} ms for 500 refusals`);
    assert.equal(cost().execs, 0);
    for (let attempt = 0;; attempt++) {
      try {
        const { volume } = await store.view(slot, stem, call());
        assert.deepEqual(volume, truth(router, slot));
        break;
      } catch (error) {
        if (!VolumeError.is(error, "unavailable") || attempt > 200) throw error;
        await systemClock.sleep(50);
      }
    }
    assert.equal(cost().execs, 1);
  },
);

contractTest(
  "a change whose end is unknown is still settled by reading, through an open breaker",
  async (bench) => {
    const { store, call, router } = bench;
    await addOne(bench);
    const { comment } = truth(router, slot)!;
    router.faults.arm({ match: "/disk set", nth: 1, times: 1, action: "hang", value: "after" });
    const changing = store.change(slot, comment, { comment: "changed" }, call(15_000));
    await systemClock.sleep(50);
    await reboot(bench, 2000);
    await systemClock.sleep(1200);
    await rejectsWith(store.view("pvc-other", stem, call()), "unavailable", nextTry);
    assert.deepEqual((await changing).after.volume, truth(router, slot));
    assert.equal(truth(router, slot)?.comment, "changed");
  },
);

contractTest(
  "a refused login and another host key open the breaker with the first attempt",
  async (bench) => {
    const key = makeSshKeys();
    const strangers = [
      bench.another({ authentication: { privateKey: key.private } }),
      bench.another({ hostKey: key.public }),
    ];
    for (const stranger of strangers) {
      await rejectsWith(
        stranger.inventory(bench.call()),
        "unavailable",
        /that failed once, and the next try/,
      );
      const ms = await timed(() =>
        rejectsWith(stranger.inventory(bench.call()), "unavailable", /failed once/)
      );
      assert.ok(ms < 100, `${ms} ms`);
    }
  },
);

Deno.test("a router that takes TCP connections and says nothing keeps at most the queue's bound waiting", async () => {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  const clock = systemClock, random = systemRandom;
  const transport = new Ssh2Transport({
    host: "127.0.0.1",
    port: address.port,
    user: "admin",
    authentication: { password: "admin" },
    hostKeys: "insecure",
    warning: () => {},
  });
  const session = new Session({ transport, clock, random, connectTimeoutMs: 200, maxQueued: 20 });
  const store = new RouterVolumeStore({ session, clock, random });
  try {
    const ends: number[] = [];
    const startedMs = clock.monotonicMs();
    const calls = Array.from({ length: 60 }, async (_, i) => {
      const short = i < 10;
      const call = store.view(`pvc-${i}`, stem, fakeCall(clock, short ? 100 : 10_000));
      await rejectsWith(call, short ? "deadline" : "unavailable", /time is up|already wait|within 0.2 s/);
      ends.push(clock.monotonicMs() - startedMs);
    });
    await Promise.all(calls);
    assert.ok(ends[39]! < 500, `40 are refused at once: ${ends[39]} ms`);
    assert.ok(ends[40]! >= 95 && ends[49]! < 600, `10 end with their deadline: ${ends[40]}, ${ends[49]} ms`);
    assert.ok(ends[59]! < 5000, `10 end when the breaker opens: ${ends[59]} ms`);
    const ms = await timed(() =>
      rejectsWith(store.inventory(fakeCall(clock, 10_000)), "unavailable", /3 times in a row/)
    );
    assert.ok(ms < 100, `${ms} ms`);
    assert.equal(sockets.size, 3);
  } finally {
    store.close();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
});
