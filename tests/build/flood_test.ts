import assert from "node:assert/strict";
import { dial } from "../../src/csi/server/client.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { systemClock } from "../../src/host/clock.ts";
import { print } from "../../tools/print.ts";
import { type Running, withStack } from "../bench/stack.ts";
import { isBuilt } from "./binary.ts";
import type { Target } from "./flood.ts";
import { limitMemory } from "./memory_limit.ts";

/** The chart's limit of a controller's memory. */
const limitBytes = 384 * 2 ** 20;
/** How much more than before the attack it may take, in bytes. */
const growthBytes = 64 * 2 ** 20;
const { connections, seconds } = Deno.env.get("TEST_LONG") === "1"
  ? { connections: 10_000, seconds: 300 }
  : { connections: 2_000, seconds: 4 };

Deno.test({
  name:
    "the executable serves a volume each second, and probes, while thousands hold connections to its metrics",
  ignore: !isBuilt,
  sanitizeOps: false,
  sanitizeResources: false,
  fn: () => withStack("binary", { mode: "controller" }, survive),
});

async function survive({ address, driver, metricsUrl }: Running): Promise<void> {
  await using undo = new AsyncDisposableStack();
  const limit = limitMemory(driver, limitBytes);
  undo.defer(async () => {
    assert.deepEqual(await driver.stop(), []);
    limit?.remove();
  });
  const before = await driver.residentBytes();
  const { hostname: host, port } = new URL(metricsUrl);
  const flood = new Worker(new URL("./flood.ts", import.meta.url), { type: "module" });
  undo.defer(() => flood.terminate());
  let made = 0;
  flood.onmessage = ({ data }) => made = data;
  flood.postMessage({ host, port: Number(port), connections } satisfies Target);
  // A busy machine may take longer to make them than the attack lasts.
  const readyMs = performance.now() + 60_000;
  while (made <= connections / 2 && performance.now() < readyMs) await systemClock.sleep(100);
  let [most, slowestMs, slowestProbeMs, served, probed] = [before, 0, 0, 0, 0];
  const endMs = performance.now() + seconds * 1000;
  await Promise.all([
    eachSecond(endMs, async () => {
      slowestMs = Math.max(slowestMs, await took(() => serveVolume(address, served++)));
      most = Math.max(most, await driver.residentBytes());
    }),
    eachSecond(endMs, async () => {
      slowestProbeMs = Math.max(slowestProbeMs, await took(() => probe(metricsUrl)));
      probed++;
    }),
  ]);
  const peak = limit === undefined
    ? "no cgroup can be written"
    : `${limit.kind} ${mib(limit.peakBytes())} of ${mib(limitBytes)}`;
  print(
    `${connections} connections for ${seconds} s, ${made} made; resident before ${mib(before)}, at most ${
      mib(most)
    }; ` +
      `${peak}; ${served} volumes, the slowest in ${slowestMs} ms; ${probed} probes, the slowest in ${slowestProbeMs} ms`,
  );
  assert.ok(made > connections / 2, `${made} connections were made`);
  assert.ok(most - before < growthBytes, `it grew by ${mib(most - before)}`);
}

/** A volume's whole life. */
async function serveVolume(address: string, number: number): Promise<void> {
  const clients = dial(loadCsi(), address, systemClock);
  const call: typeof clients.controller.call = (method, request) =>
    clients.controller.call(method, request, 30_000);
  const volumeCapability = { mount: { fsType: "ext4" }, accessMode: { mode: "SINGLE_NODE_WRITER" as const } };
  try {
    const { volume } = await call("CreateVolume", {
      name: `flood-${number}`,
      capacityRange: { requiredBytes: String(1 << 30) },
      volumeCapabilities: [volumeCapability],
    });
    const { volumeId, volumeContext } = volume!;
    const nodeId = "bench-node";
    await call("ControllerPublishVolume", { volumeId, volumeContext, nodeId, volumeCapability });
    await call("ControllerUnpublishVolume", { volumeId, nodeId });
    await call("DeleteVolume", { volumeId });
  } finally {
    clients.close();
  }
}

/** As the kubelet asks, with its time limit, and as often as it asks before it restarts the container. */
async function probe(metricsUrl: string): Promise<void> {
  for (const path of ["/healthz", "/readyz"]) {
    for (let attempt = 1;; attempt++) {
      try {
        const response = await fetch(new URL(path, metricsUrl), { signal: AbortSignal.timeout(5_000) });
        assert.deepEqual([response.status, await response.text()], [200, "ok\n"], path);
        break;
      } catch (error) {
        if (attempt === 4) throw error;
      }
    }
  }
}

/** Does it once a second, or as often as it can be done. */
async function eachSecond(endMs: number, work: () => Promise<void>): Promise<void> {
  for (let nowMs = performance.now(); nowMs < endMs; nowMs = performance.now()) {
    await work();
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, nowMs + 1000 - performance.now())));
  }
}

async function took(work: () => Promise<void>): Promise<number> {
  const startMs = performance.now();
  await work();
  return Math.round(performance.now() - startMs);
}

function mib(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20)} MiB`;
}
