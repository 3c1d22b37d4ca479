// How `rds-csi doctor --probe` limits its effect on the router and its users: sessions, other hosts, room and time.
import assert from "node:assert/strict";
import type { SshConnection, SshTransport } from "../../src/routeros/ssh/transport.ts";
import { withProbeBench } from "./_probe_bench.ts";

const sixMinutesMs = 6 * 60_000;

Deno.test("the probe opens one session at a time, and asks for no more", async () => {
  await withProbeBench({}, async ({ router, probe, transport }) => {
    let [open, most] = [0, 0];
    const counted: SshTransport = {
      target: transport.target,
      async connect(signal) {
        const connection = await transport.connect(signal);
        most = Math.max(most, ++open);
        void connection.closed.then(() => open--);
        return connection;
      },
    };
    await probe({ transport: counted });
    assert.equal(most, 1);
    assert.deepEqual(router.violations.list(), []);
  });
});

Deno.test("every export of a scratch disk is for a host that does not exist, and no other", async () => {
  await withProbeBench({}, async ({ router, probe }) => {
    const seen = new Set<string>();
    const { exports } = router.model;
    const look = () => {
      for (const nqn of exports.list()) {
        const { hosts } = exports.accessOf(nqn)!;
        assert.ok(hosts !== undefined && hosts.length > 0, `${nqn} lets everybody in`);
        for (const host of hosts) assert.match(host, /:uuid:[0-9a-f]{8}-0000-4000-8000-00000000000[12]$/);
        seen.add(nqn);
      }
    };
    const follow = exports.follow.bind(exports);
    exports.follow = (before, after) => {
      follow(before, after);
      look();
    };
    await probe();
    assert.ok(seen.size >= 4, [...seen].join(", "));
  });
});

Deno.test("the probe says what it will do before it changes anything", async () => {
  await withProbeBench({}, async ({ probe, state }) => {
    const before = state();
    let said = 0;
    await probe({
      onProgress(line) {
        if (
          !/makes scratch disks.*one of 2 GiB|exports some at port 4420|opens 1 SSH session.*6 minutes/.test(
            line,
          )
        ) return;
        assert.deepEqual(state(), before, line);
        said++;
      },
    });
    assert.equal(said, 3);
  });
});

Deno.test("a whole probe takes at most 6 minutes at a router's own pace", async () => {
  const options = { timingScale: 1, behaviours: { unexport: 50_000, allocation: "full" } } as const;
  await withProbeBench(options, async ({ router, probe }) => {
    const { clock } = router.model;
    const startedMs = clock.monotonicMs();
    const { unanswered } = await probe({ beginMs: 240_000 });
    const tookMs = clock.monotonicMs() - startedMs;
    assert.ok(tookMs <= sixMinutesMs, `${tookMs} ms`);
    assert.deepEqual(Object.values(unanswered).filter((reason) => /took 4 minutes/.test(reason)), []);
  }, 15);
});

Deno.test("a probe of a router that is slow leaves questions out, and ends", async () => {
  await withProbeBench({}, async ({ router, probe, transport, state }) => {
    const { clock } = router.model;
    const slow: SshTransport = {
      target: transport.target,
      async connect(signal) {
        const connection = await transport.connect(signal);
        const exec: SshConnection["exec"] = async (command, own) => {
          await clock.sleep(2500);
          return await connection.exec(command, own);
        };
        return { closed: connection.closed, exec, close: () => connection.close() };
      },
    };
    const before = state();
    const startedMs = clock.monotonicMs();
    const { unanswered } = await probe({ transport: slow, beginMs: 240_000 });
    const tookMs = clock.monotonicMs() - startedMs;
    assert.ok(Object.values(unanswered).some((reason) => /took 4 minutes/.test(reason)));
    assert.ok(tookMs <= sixMinutesMs + 60_000, `${tookMs} ms`);
    assert.deepEqual(state(), before);
  }, 40);
});
