// The executable's permissions allow everything that the node commands need: no finding may be a refused permission.
import assert from "node:assert/strict";
import type { Finding } from "../../src/volume/model/finding.ts";
import { isBuilt, runBinary } from "./binary.ts";
import { makeScratch } from "../support/scratch.ts";

Deno.test({
  name: "the executable reads a node, and none of its findings is a refusal",
  ignore: !isBuilt,
  fn: async () => {
    await using scratch = await makeScratch();
    const folder = scratch.path;
    const where = ["--state-dir", folder, "--node-id", "n1"];
    const loop = ["--connector", "loop", "--loop-backing", folder];
    const doctor = ["doctor", "--json", "--nvme-address", "127.0.0.1", "--nvme-port", "9", ...where];
    for (const args of [doctor, [...doctor, ...loop]]) {
      const { stdout, stderr, code } = await runBinary(args);
      const findings: readonly Finding[] = JSON.parse(stdout);
      assert.equal(stderr, "");
      assert.equal(code, findings.some(({ state }) => state === "problem") ? 1 : 0);
      assert.deepEqual(findings.filter(({ found }) => /NotCapable|Requires .* access/.test(found)), []);
      const tools = findings.filter(({ check, state }) => check === "tools" && state === "ok");
      assert.ok(tools.some(({ found }) => found.startsWith("coreutils ")), stdout);
      assert.equal(findings.find(({ check }) => check === "state-dir")?.state === "ok", true, stdout);
    }
    const table = await runBinary(["describe", "--json", ...where, ...loop]);
    assert.deepEqual([table.code, table.stdout.trim()], [0, "[]"], table.stderr);
    assert.equal((await runBinary(["describe", "pvc-1", ...where, ...loop])).code, 3);
    assert.equal((await runBinary(["attach", "pvc-1", "--nvme-address", "a", ...where, ...loop])).code, 3);
    assert.equal((await runBinary(["detach", "pvc-1", ...where, ...loop])).code, 3);
    assert.equal((await runBinary(["attach", "nqn.2014-08.org.example:x", ...where, ...loop])).code, 2);
    assert.deepEqual([...Deno.readDirSync(folder)], []);
  },
});
