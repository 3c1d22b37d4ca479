import assert from "node:assert/strict";
import { parseMountinfo } from "../../filesystem/mountinfo.ts";
import { parsePropagation } from "../../filesystem/propagation.ts";
import { checkTools, coveringMount, judgeDev, judgeKubelet, judgeStateFolder } from "./machine.ts";
import { FakeProcesses } from "../../../tests/fakes/processes.ts";
import { call } from "../../../tests/fakes/node_deps.ts";
import { allTools } from "../../host/tools.ts";
import { VolumeError } from "../../volume/errors.ts";

const root = "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw";
const kubelet = "/var/lib/kubelet";

Deno.test("coveringMount() returns the deepest mount, and the last one of several at one path", () => {
  const table = parseMountinfo([
    root,
    "28 27 0:5 / /var/lib rw - xfs a rw",
    "29 28 0:6 / /var/lib rw - xfs b rw",
    "30 27 0:7 / /var/libs rw - xfs c rw",
  ].join("\n"));
  assert.equal(coveringMount(table, kubelet)?.mountId, 29);
  assert.equal(coveringMount(table, "/var/libs")?.mountId, 30);
  assert.equal(coveringMount(table, "/etc")?.mountId, 27);
  assert.equal(coveringMount([], "/etc"), undefined);
});

const devs: readonly (readonly [line: string, state: string, found: RegExp])[] = [
  ["28 27 0:6 / /dev rw - devtmpfs udev rw", "ok", /writable/],
  ["28 27 0:6 / /dev ro - devtmpfs udev rw", "problem", /read-only/],
  ["28 27 0:6 / /dev rw - devtmpfs udev ro", "problem", /read-only/],
  ["28 27 0:6 / /dev rw - tmpfs tmpfs rw", "problem", /tmpfs of the container's own/],
  ["28 27 0:6 / /devices rw - devtmpfs udev rw", "problem", /nothing is mounted/],
];

for (const [line, state, found] of devs) {
  Deno.test(`judgeDev() says ${state} about ${line.slice(11)}`, () => {
    const finding = judgeDev(parseMountinfo(`${root}\n${line}`));
    assert.equal(finding.state, state);
    assert.match(finding.found, found);
  });
}

const kubelets:
  readonly (readonly [what: string, line: string, exists: boolean, state: string, found: RegExp])[] = [
    ["a shared mount", `28 27 0:6 / ${kubelet} rw shared:7 - ext4 a rw`, true, "ok", /which is shared$/],
    ["a folder on a shared root", root, true, "ok", /on the mount \/, which is shared$/],
    ["a private mount", `28 27 0:6 / ${kubelet} rw - ext4 a rw`, true, "problem", /is private: /],
    [
      "a mount from the host only",
      `28 27 0:6 / ${kubelet} rw master:7 - ext4 a rw`,
      true,
      "problem",
      /is slave: /,
    ],
    ["no folder", root, false, "problem", /there is no folder/],
  ];

for (const [what, line, exists, state, found] of kubelets) {
  Deno.test(`judgeKubelet() says ${state} about ${what}`, () => {
    const text = line === root ? root : `${root}\n${line}`;
    const [table, propagation] = [parseMountinfo(text), parsePropagation(text)];
    const finding = judgeKubelet({ path: kubelet, exists, table, propagation });
    assert.equal(finding.state, state);
    assert.match(finding.found, found);
  });
}

Deno.test("judgeStateFolder() requires a folder that can be written and survives a boot", () => {
  const path = `${kubelet}/state`;
  const disk = parseMountinfo(root);
  const memory = parseMountinfo(`${root}\n28 27 0:6 / ${kubelet} rw - tmpfs a rw`);
  const judge = (state: Parameters<typeof judgeStateFolder>[0]["state"], table = disk) =>
    judgeStateFolder({ path, state, table });
  assert.equal(judge("writable").state, "ok");
  assert.equal(judge("writable", memory).state, "problem");
  assert.equal(judge("absent", memory).state, "problem");
  assert.equal(judge("absent").state, "warning");
  assert.match(judge({ reason: "Requires write access" }).found, /cannot be written: Requires write access$/);
});

const inPod = { kind: "block", besideImage: false } as const;

Deno.test("checkTools() names package, version and tools, and runs nothing that could change anything", async () => {
  const processes = new FakeProcesses();
  processes.script = () => ({ stdout: "tool from somewhere 2.38.1 (lib 2.38.1)\n" });
  const findings = await checkTools(processes, { ...inPod, connector: "loop" }, call());
  assert.ok(findings.every(({ state }) => state === "ok"), JSON.stringify(findings));
  assert.ok(
    findings.some(({ found }) => found === "util-linux 2.38.1: blkid, blockdev, fsfreeze, fstrim"),
    JSON.stringify(findings),
  );
  const wording = new Set(processes.runs.map(({ options }) => options.args.join(" ")));
  assert.deepEqual([...wording].filter((line) => !["-V", "--version", "version", ""].includes(line)), []);
  assert.deepEqual(
    processes.runs.filter(({ options }) => options.args.length === 0).map(({ tool }) => tool),
    [
      "resize2fs",
    ],
  );
});

Deno.test("checkTools() names the packages of missing tools, and leaves out what the connector does not use", async () => {
  const processes = new FakeProcesses();
  processes.script = ({ tool }) => {
    if (tool !== "mkfs.xfs") return { stderr: `${tool} 1.47.0 (5-Feb-2023)\n`, code: 1 };
    throw new VolumeError("precondition", "Cannot run mkfs.xfs because it is not installed");
  };
  const findings = await checkTools(processes, { ...inPod, connector: "nvme-tcp" }, call());
  const [finding, ...others] = findings.filter(({ state }) => state !== "ok");
  assert.deepEqual(others, []);
  assert.equal(finding?.state, "problem");
  assert.match(finding.found, /^mkfs\.xfs of xfsprogs not installed/);
  assert.match(finding.fix ?? "", /^install the package xfsprogs;/);
  const run = processes.runs.map(({ tool }) => tool);
  assert.deepEqual(allTools.filter((tool) => !run.includes(tool)), ["mount.nfs4", "losetup"]);
});

for (
  const [kind, besideImage, states] of [
    ["block", false, "problem"],
    ["block", true, "skipped"],
    ["directory", false, "problem"],
    ["directory", true, "skipped"],
  ] as const
) {
  Deno.test(`checkTools() finds ${states} for ${kind} ${besideImage ? "on a host, whose driver has an image" : "in a pod"}`, async () => {
    const processes = new FakeProcesses();
    processes.script = ({ tool }) => {
      throw new VolumeError("precondition", `Cannot run ${tool} because it is not installed`);
    };
    const findings = await checkTools(processes, { connector: "nvme-tcp", kind, besideImage }, call());
    assert.deepEqual([...new Set(findings.map(({ state }) => state))], [states]);
    assert.equal(findings.some(({ found }) => found.includes("nfs-common")), kind === "directory");
    assert.equal(findings.some(({ fix }) => fix !== undefined), !besideImage);
  });
}

Deno.test("checkTools() mistakes neither silence for a version, nor a hanging tool for a missing one", async () => {
  const processes = new FakeProcesses();
  processes.script = ({ tool }) => {
    if (tool === "e2fsck") throw new VolumeError("deadline", "Cannot wait for e2fsck any longer");
    return tool === "blkid" ? { stdout: "" } : { stdout: "1.2" };
  };
  const findings = await checkTools(processes, { ...inPod, connector: "loop" }, call());
  const warnings = findings.filter(({ state }) => state !== "ok").map(({ state, found }) =>
    `${state} ${found}`
  );
  assert.deepEqual(warnings, [
    "warning util-linux: blkid (it prints no version)",
    "warning e2fsprogs: e2fsck (Cannot wait for e2fsck any longer)",
  ]);
});
