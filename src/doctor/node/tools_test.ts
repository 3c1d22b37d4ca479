import assert from "node:assert/strict";
import { FakeProcesses } from "../../../tests/fakes/processes.ts";
import { call } from "../../../tests/fakes/node_world.ts";
import { allTools } from "../../host/tools.ts";
import { VolumeError } from "../../volume/errors.ts";
import { checkTools } from "./tools.ts";

Deno.test("checkTools() names package, version and tools, and runs nothing that could change anything", async () => {
  const processes = new FakeProcesses();
  processes.script = () => ({ stdout: "tool from somewhere 2.38.1 (lib 2.38.1)\n" });
  const findings = await checkTools(processes, "loop", call());
  assert.ok(findings.every(({ state }) => state === "ok"), JSON.stringify(findings));
  assert.ok(
    findings.some(({ found }) => found === "util-linux 2.38.1: blkid, blockdev"),
    JSON.stringify(findings),
  );
  const words = new Set(processes.runs.map(({ options }) => options.args.join(" ")));
  assert.deepEqual([...words].filter((line) => !["-V", "--version", "version", ""].includes(line)), []);
  assert.deepEqual(
    processes.runs.filter(({ options }) => options.args.length === 0).map(({ tool }) => tool),
    [
      "resize2fs",
    ],
  );
});

Deno.test("checkTools() names the package of what is missing, and leaves out what the connector does not use", async () => {
  const processes = new FakeProcesses();
  processes.script = ({ tool }) => {
    if (tool !== "mkfs.xfs") return { stderr: `${tool} 1.47.0 (5-Feb-2023)\n`, code: 1 };
    throw new VolumeError("precondition", "Cannot run mkfs.xfs as it is not installed");
  };
  const findings = await checkTools(processes, "nvme-tcp", call());
  const [finding, ...others] = findings.filter(({ state }) => state !== "ok");
  assert.deepEqual(others, []);
  assert.equal(finding?.state, "problem");
  assert.match(finding.found, /^mkfs\.xfs of xfsprogs not installed/);
  assert.match(finding.fix ?? "", /^apt-get install xfsprogs;/);
  const run = processes.runs.map(({ tool }) => tool);
  assert.deepEqual(allTools.filter((tool) => !run.includes(tool)), ["losetup"]);
});

Deno.test("checkTools() does not take silence for a version, nor a hanging tool for a missing one", async () => {
  const processes = new FakeProcesses();
  processes.script = ({ tool }) => {
    if (tool === "e2fsck") throw new VolumeError("deadline", "Cannot wait for e2fsck any longer");
    return tool === "blkid" ? { stdout: "" } : { stdout: "1.2" };
  };
  const findings = await checkTools(processes, "loop", call());
  const warnings = findings.filter(({ state }) => state !== "ok").map(({ state, found }) =>
    `${state} ${found}`
  );
  assert.deepEqual(warnings, [
    "warning util-linux: blkid (it does not tell its version)",
    "warning e2fsprogs: e2fsck (Cannot wait for e2fsck any longer)",
  ]);
});
