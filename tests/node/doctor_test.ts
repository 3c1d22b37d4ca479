// The findings of `rds-csi doctor` on this very machine, as a node, compared with other tools' output.
import assert from "node:assert/strict";
import { examine, nodeCheckAdapters } from "../../src/cli/doctor/doctor.ts";
import { readDoctorHalves } from "../../src/cli/doctor/options.ts";
import { exitCodes } from "../../src/cli/io.ts";
import { systemNodeParts } from "../../src/cli/serve/node.ts";
import { systemClock } from "../../src/host/clock.ts";
import type { Libc } from "../../src/host/libc.ts";
import { systemNetwork } from "../../src/host/network.ts";
import { startQuickly } from "../support/simulated_router.ts";
import type { Finding } from "../../src/volume/model/finding.ts";
import { nodeTest, type RealNode, run, TestVolume } from "./harness.ts";

interface Examined {
  readonly code: number;
  readonly findings: readonly Finding[];
}

/** Lets the doctor check the node, with the real kernel and tools. */
async function reading(node: RealNode, ...more: string[]): Promise<Examined> {
  const parts = systemNodeParts(systemClock, { warn: () => {} });
  const args = [
    "--json",
    "--node-id",
    "node-1",
    "--state-dir",
    node.state,
    "--kubelet-dir",
    node.kubelet,
    ...more,
  ];
  const printed: string[] = [];
  const io = {
    out: (line: string) => void printed.push(line),
    err: assert.fail,
    env: () => undefined,
    signal: new AbortController().signal,
  };
  const network = systemNetwork(systemClock);
  const none = () => assert.fail("no router here");
  const router = { clock: systemClock, random: { bytes: none, fraction: none }, network, readText: none };
  try {
    const halves = readDoctorHalves(args, io.env, parts.files);
    const adapters = {
      router,
      node: (options: Parameters<typeof nodeCheckAdapters>[0]) => nodeCheckAdapters(options, parts, network),
    };
    return { code: await examine(halves, adapters, io), findings: JSON.parse(printed.join("\n")) };
  } finally {
    (parts.files as Libc).close();
  }
}

function of({ findings }: Examined, check: string): Finding {
  const [finding, ...more] = findings.filter((each) => each.check === check);
  assert.ok(finding !== undefined && more.length === 0, JSON.stringify(findings, null, 1));
  return finding;
}

const loop = (node: RealNode) => ["--connector", "loop", "--loop-backing", node.backing];

nodeTest("doctor agrees with this machine's own tools", async (node) => {
  const examined = await reading(node);
  const hasTransport = await Deno.stat("/sys/module/nvme_tcp").then(() => true, () => false);
  const hasControl = await Deno.stat("/dev/nvme-fabrics").then(() => true, () => false);
  assert.equal(of(examined, "nvme-transport").state === "ok", hasTransport && hasControl);
  const propagation = (await run("findmnt", "-n", "-o", "PROPAGATION", "-T", node.kubelet)).trim();
  assert.equal(of(examined, "kubelet").state, propagation.includes("shared") ? "ok" : "problem");
  const dev = (await run("findmnt", "-n", "-o", "FSTYPE", "/dev")).trim().split("\n").at(-1);
  assert.equal(of(examined, "dev").state, dev === "devtmpfs" ? "ok" : "problem");
  const tools = examined.findings.filter(({ check }) => check === "tools");
  const mount = (await run("mount", "-V")).split(" ")[3];
  assert.ok(tools.some(({ found }) => found.startsWith(`util-linux ${mount}: `)), JSON.stringify(tools));
  assert.equal(of(examined, "state-dir").state, "ok");
  assert.deepEqual([...Deno.readDirSync(node.state)], [], "the proof of writing is taken away");
  assert.equal(of(examined, "nvme-target").state, "skipped");
  assert.equal(of(examined, "router").state, "skipped");
  const hasProblem = examined.findings.some(({ state }) => state === "problem");
  assert.equal(examined.code, hasProblem ? exitCodes.failed : exitCodes.ok);
});

nodeTest("doctor finds a state folder in memory, and a kubelet folder that is shared", async (node) => {
  await run("mount", "-t", "tmpfs", "none", node.state);
  await run("mount", "--bind", node.kubelet, node.kubelet);
  try {
    await run("mount", "--make-private", node.kubelet);
    const closed = await reading(node);
    assert.match(of(closed, "kubelet").found, new RegExp(`mount ${node.kubelet}, which is private`));
    assert.equal(closed.code, exitCodes.failed);
    await run("mount", "--make-shared", node.kubelet);
    const examined = await reading(node);
    assert.equal(of(examined, "kubelet").state, "ok");
    assert.match(of(examined, "state-dir").found, /is on a tmpfs/);
    assert.equal(of(examined, "state-dir").state, "problem");
  } finally {
    await run("umount", node.kubelet);
    await run("umount", node.state);
  }
});

nodeTest("doctor finds what is staged and no longer connected, and what is damaged", async (node) => {
  const volume = new TestVolume(node, "pvc-1");
  await node.stage(volume);
  const volumes = async () => {
    const { findings } = await reading(node, ...loop(node));
    const ofVolumes = findings.filter(({ check }) => check === "volumes");
    return ofVolumes.map(({ state, found }) => `${state} ${found}`);
  };
  assert.match((await volumes()).join(), /^ok 1 staged here/);
  await run("umount", node.staging(volume.id));
  await run("losetup", "-d", await node.device(volume));
  assert.match((await volumes())[0]!, /^problem pvc-1: NotConnected: /);
  Deno.writeTextFileSync(`${node.state}/volumes/pvc-1.json`, "{");
  const [damaged, ...more] = await volumes();
  assert.match(damaged!, /^problem pvc-1: StateDamaged: /);
  assert.deepEqual(more, []);
});

nodeTest("doctor reads a target's discovery log without the kernel's transport", async (node) => {
  await using router = await startQuickly({ exporter: "tcp", clock: systemClock });
  const { nvmePort = 0 } = router;
  const at = ["--nvme-address", "127.0.0.1", "--nvme-port"];
  const finding = of(await reading(node, ...at, String(nvmePort)), "nvme-target");
  assert.equal(finding.state, "ok");
  assert.match(finding.found, /offers this host 0 of this driver's exports$/);
  const nobody = of(await reading(node, ...at, String(router.sshPort)), "nvme-target");
  assert.match(nobody.found, /answers, but its discovery log cannot be read/);
});
