import assert from "node:assert/strict";
import { dial } from "../../src/csi/server/client.ts";
import { guardClientSessions } from "../../src/csi/server/http2_guard.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { systemClock } from "../../src/host/clock.ts";
import { FakeKubelet } from "../fakes/kubelet.ts";
import { freePort, startPart, type Subject } from "./parts.ts";

/** How long the driver may take to notice that its socket is gone. */
const noticeLimitMs = 20_000;

/** What the driver logs each time when a kubelet has registered it. */
export const registeredMessage = "the kubelet has registered the driver";

async function until<T>(reading: () => Promise<T | undefined>): Promise<T> {
  const endMs = performance.now() + noticeLimitMs;
  for (;;) {
    const found = await reading();
    if (found !== undefined) return found;
    if (performance.now() > endMs) throw new Error("it did not happen in time");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/**
 * A node registers with its kubelet, with the next one, and again when the folder was cleared; it unregisters at its
 * end.
 */
export async function registerWithKubelets(subject: Subject): Promise<void> {
  guardClientSessions();
  const folder = await Deno.makeTempDir({ dir: "/tmp", prefix: "rds-csi-test-" });
  const kubelet = new FakeKubelet(`${folder}/kubelet`);
  const socket = `${folder}/kubelet/plugins/csi.sock`;
  await Deno.mkdir(`${folder}/kubelet/plugins`);
  const metrics = `127.0.0.1:${freePort()}`;
  const node = startPart(subject, "serve", folder, [
    ...[
      "--mode=node",
      "--node-id",
      "node-1",
      "--endpoint",
      `unix://${socket}`,
      "--metrics-address",
      metrics,
    ],
    ...["--connector", "loop", "--loop-backing", `${folder}/router`, "--state-dir", `${folder}/state`],
    ...["--register", "--kubelet-path", `${folder}/kubelet`],
  ]);
  const reading = async () => (await kubelet.check())[0];
  try {
    const info = await until(reading);
    assert.deepEqual([info.name, info.endpoint], ["rds.csi.srvlab.io", socket]);
    const clients = dial(loadCsi(), `unix://${info.endpoint}`, systemClock);
    try {
      assert.equal((await clients.node.call("NodeGetInfo", {})).nodeId, "node-1");
    } finally {
      clients.close();
    }
    const exposed = await (await fetch(`http://${metrics}/metrics`)).text();
    assert.ok(exposed.split("\n").includes("rds_csi_kubelet_registered 1"));

    kubelet.restart();
    assert.equal((await reading())?.endpoint, socket, "a new kubelet finds it");
    await Deno.remove(kubelet.folder, { recursive: true });
    await Deno.mkdir(kubelet.folder);
    assert.equal((await until(reading)).endpoint, socket);
    assert.equal((await node.printed()).split(registeredMessage).length - 1, 3);
  } finally {
    const problems = await node.stop();
    const left = [...Deno.readDirSync(kubelet.folder)].map(({ name }) => name);
    await Deno.remove(folder, { recursive: true });
    assert.deepEqual([problems, left], [[], []]);
  }
}
