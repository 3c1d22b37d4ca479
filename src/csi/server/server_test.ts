import assert from "node:assert/strict";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { status } from "@grpc/grpc-js";
import { systemClock } from "../../host/clock.ts";
import { VolumeError, type VolumeErrorKind } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { timeLeftMs } from "../../async/deadline.ts";
import { method } from "./call.ts";
import type { DeleteVolumeRequest, GetPluginInfoResponse } from "../generated/csi.ts";
import type { CsiServices, ServerOptions } from "./server.ts";
import { openSockets, probeOnly, serverTest, TestBench } from "../../../tests/support/csi_server.ts";
import { GRPC_CODES, wireStatus } from "./grpc_status.ts";
import { eventually } from "../../../tests/support/eventually.ts";

type Delete = (request: DeleteVolumeRequest, context: CallContext) => Promise<Record<string, never>>;

function withDelete(handler: Delete): CsiServices {
  return {
    ...probeOnly(),
    controller: {
      DeleteVolume: method({ changing: true, lockKey: (request) => request.volumeId, handler }),
    },
  };
}

/** Every way of serving: the last two are the same where this Deno needs the fallback anyway. */
const TRANSPORTS: readonly [string, (bench: TestBench) => Partial<ServerOptions>][] = [
  ["TCP", () => ({ endpoint: "tcp://127.0.0.1:0" })],
  ["a unix socket", (bench) => ({ endpoint: `unix://${bench.socketPath}` })],
  [
    "a unix socket of an old Deno",
    (bench) => ({ endpoint: `unix://${bench.socketPath}`, denoVersion: "2.7.11" }),
  ],
];

serverTest("startServer() never logs a secret that came over the wire", async () => {
  await using bench = await TestBench.make();
  const server = await bench.start({
    endpoint: "tcp://127.0.0.1:0",
    services: withDelete(() => Promise.reject(new VolumeError("unavailable", "Cannot delete"))),
  });
  const request = { volumeId: "pvc-1", secrets: { "s3cret-name": "s3cret-value" } };
  assert.equal((await bench.clients(server).call("Controller/DeleteVolume", request)).code, "UNAVAILABLE");
  assert.doesNotMatch(JSON.stringify(bench.lines), /s3cret/);
  assert.match(JSON.stringify(bench.lines), /"volumeId":"pvc-1"/);
});

Deno.test("GRPC_CODES are the codes of grpc-js", () => {
  for (const [name, code] of Object.entries(GRPC_CODES)) assert.equal(status[code], name);
});

for (const [transport, options] of TRANSPORTS) {
  serverTest(`startServer() on ${transport} maps every kind of error to its code, with details`, async () => {
    await using bench = await TestBench.make();
    const server = await bench.start({
      ...options(bench),
      services: withDelete(({ volumeId }) => {
        throw new VolumeError(volumeId as VolumeErrorKind, `Cannot: 100% "${volumeId}"\nümlaut`);
      }),
    });
    const clients = bench.clients(server);
    const kinds: VolumeErrorKind[] = [
      "invalid",
      "not-found",
      "exists-incompatible",
      "in-use",
      "published-elsewhere",
      "node-unknown",
      "exhausted",
      "out-of-range",
      "busy",
      "unavailable",
      "identity-mismatch",
      "precondition",
      "unsupported",
      "deadline",
      "cancelled",
      "bad-token",
      "internal",
    ];
    for (const kind of kinds) {
      const result = await clients.call("Controller/DeleteVolume", { volumeId: kind });
      assert.equal(result.code, wireStatus(new VolumeError(kind, ""), "").code, kind);
      assert.equal(result.details, `Cannot: 100% "${kind}"\nümlaut`, kind);
    }
  });

  serverTest(
    `startServer() on ${transport} answers an unexpected error INTERNAL without its message`,
    async () => {
      await using bench = await TestBench.make();
      const server = await bench.start({
        ...options(bench),
        services: withDelete(() => Promise.reject(new Error("s3cret"))),
      });
      const result = await bench.clients(server).call("Controller/DeleteVolume", { volumeId: "v" });
      assert.equal(result.code, "INTERNAL");
      const line = bench.lines.find((line) => line.message === "call");
      assert.ok(result.details.includes(String(line?.requestId)));
      assert.doesNotMatch(result.details, /s3cret|at /);
      assert.equal((line?.error as { message: string }).message, "s3cret");
    },
  );

  serverTest(`startServer() on ${transport} passes the client's deadline on as a signal`, async () => {
    await using bench = await TestBench.make();
    const seen = Promise.withResolvers<unknown>();
    const server = await bench.start({
      ...options(bench),
      services: withDelete((_request, context) => {
        const { signal } = context;
        const leftMs = timeLeftMs(context, systemClock);
        assert.ok(leftMs > 0 && leftMs <= 300, `left: ${leftMs}`);
        return new Promise((_, reject) =>
          signal.addEventListener("abort", () => {
            seen.resolve(signal.reason);
            reject(signal.reason);
          })
        );
      }),
    });
    const result = await bench.clients(server).call("Controller/DeleteVolume", { volumeId: "v" }, {
      timeoutMs: 300,
    });
    assert.equal(result.code, "DEADLINE_EXCEEDED");
    assert.ok(VolumeError.is(await seen.promise, "deadline"));
    await eventually(() =>
      bench.lines.some((line) => line.message === "call" && line.code === "DEADLINE_EXCEEDED")
    );
  });

  serverTest(
    `startServer() on ${transport} hands the client's cancellation down and keeps the lock`,
    async () => {
      await using bench = await TestBench.make();
      const started = Promise.withResolvers<void>();
      const seen = Promise.withResolvers<unknown>();
      const finish = Promise.withResolvers<void>();
      const server = await bench.start({
        ...options(bench),
        services: withDelete(async (_request, { signal }) => {
          started.resolve();
          signal.addEventListener("abort", () => seen.resolve(signal.reason));
          await finish.promise;
          return {};
        }),
      });
      const clients = bench.clients(server);
      const cancel = new AbortController();
      const first = clients.call("Controller/DeleteVolume", { volumeId: "v" }, { cancel: cancel.signal });
      await started.promise;
      cancel.abort();
      assert.equal((await first).code, "CANCELLED");
      assert.ok(VolumeError.is(await seen.promise, "cancelled"));
      assert.equal((await clients.call("Controller/DeleteVolume", { volumeId: "v" })).code, "ABORTED");
      finish.resolve();
      await eventually(() => server.running === 0);
      assert.equal((await clients.call("Controller/DeleteVolume", { volumeId: "v" })).code, "OK");
      assert.equal(
        bench.lines.filter((line) => line.message === "call" && line.code === "CANCELLED").length,
        1,
      );
    },
  );

  serverTest(
    `startServer() on ${transport} aborts the signal when the client's connection is cut`,
    async () => {
      await using bench = await TestBench.make();
      const started = Promise.withResolvers<void>();
      const seen = Promise.withResolvers<unknown>();
      const server = await bench.start({
        ...options(bench),
        services: withDelete((_request, { signal }) => {
          started.resolve();
          return new Promise((_, reject) =>
            signal.addEventListener("abort", () => {
              seen.resolve(signal.reason);
              reject(signal.reason);
            })
          );
        }),
      });
      const clients = bench.clients(server);
      const call = clients.call("Controller/DeleteVolume", { volumeId: "v" });
      await started.promise;
      clients.close();
      await bench.cutConnections();
      assert.ok(["CANCELLED", "UNAVAILABLE"].includes((await call).code));
      assert.ok(VolumeError.is(await seen.promise, "cancelled"));
    },
  );

  serverTest(`startServer() on ${transport} serves 1,000 calls at once`, async () => {
    await using bench = await TestBench.make();
    let most = 0;
    let now = 0;
    const server = await bench.start({
      ...options(bench),
      services: withDelete(async () => {
        most = Math.max(most, ++now);
        await systemClock.sleep(100);
        now--;
        return {};
      }),
    });
    const clients = bench.clients(server);
    const results = await Promise.all(
      Array.from({ length: 1000 }, (_, i) => clients.call("Controller/DeleteVolume", { volumeId: `v${i}` })),
    );
    assert.deepEqual([...new Set(results.map((result) => result.code))], ["OK"]);
    assert.ok(most > 100, `most at once: ${most}`);
    const lines = bench.lines.filter((line) => line.message === "call");
    assert.equal(new Set(lines.map((line) => line.volumeId)).size, 1000);
    assert.equal(lines.length, 1000);
  });

  serverTest(`startServer() on ${transport} serves client after client`, async () => {
    await using bench = await TestBench.make();
    const server = await bench.start(options(bench));
    const address = bench.dial(server);
    for (let i = 0; i < 50; i++) {
      const clients = bench.clientsAt(address);
      const result = await clients.call("Identity/Probe");
      assert.deepEqual(
        result.response,
        { ready: { value: true } },
        `client ${i}: ${result.code} ${result.details}`,
      );
      clients.close();
    }
  });

  serverTest(`startServer() on ${transport} receives and sends large messages`, async () => {
    await using bench = await TestBench.make();
    const sizes: number[] = [];
    const server = await bench.start({
      ...options(bench),
      services: {
        identity: {
          GetPluginInfo: method({
            changing: false,
            handler: () => Promise.resolve({ name: "n", manifest: { page: "x".repeat(16 * 1024 * 1024) } }),
          }),
        },
        controller: {
          DeleteVolume: method({
            changing: true,
            lockKey: () => undefined,
            handler: (request) => {
              sizes.push(request.volumeId.length);
              return Promise.resolve({});
            },
          }),
        },
      },
    });
    const clients = bench.clients(server);
    const volumeId = "x".repeat(7 * 1024 * 1024);
    assert.equal((await clients.call("Controller/DeleteVolume", { volumeId })).code, "OK");
    assert.deepEqual(sizes, [volumeId.length]);
    const tooLarge = await clients.call("Controller/DeleteVolume", { volumeId: volumeId + volumeId });
    assert.equal(tooLarge.code, "RESOURCE_EXHAUSTED");
    const { response } = await clients.call("Identity/GetPluginInfo");
    const { manifest } = response as GetPluginInfoResponse;
    assert.equal(manifest.page?.length, 16 * 1024 * 1024);
  });

  serverTest(
    `RunningServer.stop() on ${transport} lets running calls finish and takes no new ones`,
    async () => {
      await using bench = await TestBench.make();
      const started = Promise.withResolvers<void>();
      const finish = Promise.withResolvers<void>();
      const server = await bench.start({
        ...options(bench),
        services: withDelete(async () => {
          started.resolve();
          await finish.promise;
          return {};
        }),
      });
      const clients = bench.clients(server);
      const address = bench.dial(server);
      const running = clients.call("Controller/DeleteVolume", { volumeId: "v" });
      await started.promise;
      let stopped = false;
      const stopping = server.stop({ graceMs: 25_000 }).then(() => stopped = true);
      assert.equal((await clients.call("Identity/Probe", {}, { timeoutMs: 5_000 })).code, "UNAVAILABLE");
      const late = bench.clientsAt(address);
      // INTERNAL when the bridge cuts the connection after the client has sent its call.
      const { code } = await late.call("Identity/Probe", {}, { timeoutMs: 5_000 });
      assert.match(code, /^(?:UNAVAILABLE|INTERNAL)$/);
      assert.equal(stopped, false);
      finish.resolve();
      const result = await running;
      assert.equal(result.code, "OK", result.details);
      const startMs = systemClock.monotonicMs();
      await stopping;
      assert.ok(systemClock.monotonicMs() - startMs < 2_000);
    },
  );

  serverTest(`RunningServer.stop() on ${transport} aborts running calls after its grace`, async () => {
    await using bench = await TestBench.make();
    const started = Promise.withResolvers<void>();
    const seen = Promise.withResolvers<unknown>();
    const server = await bench.start({
      ...options(bench),
      services: withDelete((_request, { signal }) => {
        started.resolve();
        return new Promise((_, reject) =>
          signal.addEventListener("abort", () => {
            seen.resolve(signal.reason);
            reject(signal.reason);
          })
        );
      }),
    });
    const running = bench.clients(server).call("Controller/DeleteVolume", { volumeId: "v" });
    await started.promise;
    const startMs = systemClock.monotonicMs();
    await server.stop({ graceMs: 300 });
    const tookMs = systemClock.monotonicMs() - startMs;
    assert.ok(tookMs >= 300 && tookMs < 3_000, `took ${tookMs} ms`);
    assert.ok(VolumeError.is(await seen.promise, "unavailable"));
    assert.equal((await running).code, "UNAVAILABLE");
    assert.equal(server.running, 0);
  });

  serverTest(
    `startServer() on ${transport} leaves no socket open, of calls that are cut included`,
    async () => {
      const endpoints: string[] = [];
      for (let i = 0; i < 5; i++) {
        await using bench = await TestBench.make();
        const server = await bench.start({
          ...options(bench),
          services: withDelete((_request, { signal }) =>
            new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)))
          ),
        });
        const endpoint = server.address.startsWith("tcp:") ? server.address : bench.folder;
        endpoints.push(endpoint);
        const clients = bench.clients(server);
        assert.equal((await clients.call("Identity/Probe")).code, "OK");
        assert.ok(openSockets(endpoint) > 0);
        const hanging = clients.call("Controller/DeleteVolume", { volumeId: "v" });
        await eventually(() => server.running === 1);
        if (i % 2 === 0) await bench.cutConnections();
        else await server.stop({ graceMs: 0 });
        await hanging;
      }
      await eventually(() => endpoints.every((endpoint) => openSockets(endpoint) === 0));
    },
  );

  serverTest(`RunningServer.stop() on ${transport} resolves soon with an idle client connected`, async () => {
    await using bench = await TestBench.make();
    const server = await bench.start(options(bench));
    const clients = bench.clients(server);
    assert.equal((await clients.call("Identity/Probe")).code, "OK");
    const startMs = systemClock.monotonicMs();
    await server.stop({ graceMs: 25_000 });
    await server.stop({ graceMs: 25_000 });
    assert.ok(systemClock.monotonicMs() - startMs < 2_000);
  });
}

serverTest("startServer() answers UNIMPLEMENTED for what is not registered", async () => {
  await using bench = await TestBench.make();
  const server = await bench.start({
    endpoint: "tcp://127.0.0.1:0",
    services: withDelete(() => Promise.resolve({})),
  });
  const clients = bench.clients(server);
  for (
    const path of [
      "Controller/CreateVolume",
      "Node/NodeGetInfo",
      "GroupController/GroupControllerGetCapabilities",
    ]
  ) {
    assert.equal((await clients.call(path)).code, "UNIMPLEMENTED", path);
  }
});

serverTest("startServer() locks a volume separately for each service", async () => {
  await using bench = await TestBench.make();
  const started = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  const server = await bench.start({
    endpoint: "tcp://127.0.0.1:0",
    services: {
      ...withDelete(() => Promise.resolve({})),
      node: {
        NodeUnstageVolume: method({
          changing: true,
          lockKey: (request) => request.volumeId,
          handler: async () => {
            started.resolve();
            await finish.promise;
            return {};
          },
        }),
      },
    },
  });
  const clients = bench.clients(server);
  const unstage = clients.call("Node/NodeUnstageVolume", { volumeId: "v" });
  await started.promise;
  assert.equal((await clients.call("Controller/DeleteVolume", { volumeId: "v" })).code, "OK");
  finish.resolve();
  assert.equal((await unstage).code, "OK");
});

serverTest("startServer() logs a response that cannot be encoded", async () => {
  await using bench = await TestBench.make();
  const server = await bench.start({
    endpoint: "tcp://127.0.0.1:0",
    services: {
      identity: {
        GetPluginCapabilities: method({
          changing: false,
          handler: () => Promise.resolve({ capabilities: "none" as never }),
        }),
      },
    },
  });
  assert.equal((await bench.clients(server).call("Identity/GetPluginCapabilities")).code, "INTERNAL");
  const line = bench.lines.find((line) => line.message === "cannot encode a response");
  assert.equal(line?.method, "/csi.v1.Identity/GetPluginCapabilities");
});

serverTest("startServer() reports the real port of tcp://127.0.0.1:0", async () => {
  await using bench = await TestBench.make();
  const server = await bench.start({ endpoint: "tcp://127.0.0.1:0" });
  assert.match(server.address, /^tcp:\/\/127\.0\.0\.1:[1-9]\d*$/);
});

serverTest("startServer() throws unavailable when the TCP port is taken", async () => {
  await using bench = await TestBench.make();
  const first = await bench.start({ endpoint: "tcp://127.0.0.1:0" });
  await assert.rejects(bench.start({ endpoint: first.address }), refusal("unavailable"));
});

serverTest("startServer() throws invalid for an endpoint that is not allowed", async () => {
  await using bench = await TestBench.make();
  await assert.rejects(bench.start({ endpoint: "tcp://0.0.0.0:0" }), refusal("invalid"));
});

serverTest("startServer() refuses a method that the service does not have", async () => {
  await using bench = await TestBench.make();
  const services = { identity: { Prove: method({ changing: false, handler: () => Promise.resolve({}) }) } };
  await assert.rejects(
    bench.start({ endpoint: "tcp://127.0.0.1:0", services: services as CsiServices }),
    /no such method/,
  );
});

serverTest("two servers in one process share nothing", async () => {
  await using bench = await TestBench.make();
  const finish = Promise.withResolvers<void>();
  const started = Promise.withResolvers<void>();
  const endpoint = "tcp://127.0.0.1:0";
  const a = await bench.start({
    endpoint,
    services: withDelete(async () => {
      started.resolve();
      await finish.promise;
      return {};
    }),
  });
  const b = await bench.start({ endpoint, services: withDelete(() => Promise.resolve({})) });
  const slow = bench.clients(a).call("Controller/DeleteVolume", { volumeId: "v" });
  await started.promise;
  assert.equal((await bench.clients(b).call("Controller/DeleteVolume", { volumeId: "v" })).code, "OK");
  await b.stop({ graceMs: 0 });
  finish.resolve();
  assert.equal((await slow).code, "OK");
});
