import assert from "node:assert/strict";
import type { Finding } from "../../volume/model/finding.ts";
import type { NodeReading } from "./check.ts";
import { examineNode } from "./node_checks.ts";

/** What the checks say on a machine of which nothing can be read. */
async function found(kind: "block" | "directory", connector: "nvme-tcp" | "loop"): Promise<Finding[]> {
  const nothing = new Proxy({}, { get: () => () => undefined });
  const reading = {
    ...{ files: nothing, processes: nothing, paths: nothing, network: nothing, deps: "nothing is here" },
    discover: () => Promise.reject(new Error("not asked")),
    context: { signal: new AbortController().signal },
    options: {
      ...{ kind, kubeletPath: "/var/lib/kubelet", nodeIdGuessed: false, nvmeAddress: "", nvmePort: 4420 },
      config: { nodeId: "n", connector, nqnPrefix: "nqn.2000-02.com.mikrotik", stateDirectory: "/state" },
    },
  } as unknown as NodeReading;
  const findings: Finding[] = [];
  await examineNode(reading, (finding) => void findings.push(finding));
  return findings;
}

const unused = (findings: readonly Finding[]) =>
  findings.filter(({ found }) => found.startsWith("not used by")).map(({ check }) => check);

Deno.test("examineNode() asks a node of directories for nothing of NVMe", async () => {
  const ofDirectories = await found("directory", "nvme-tcp");
  assert.deepEqual(unused(ofDirectories), [
    ...["nvme-transport", "nvme-multipath", "device-layer", "encryption", "nvme-timeouts", "nvme-target"],
  ]);
  assert.deepEqual(unused(await found("block", "nvme-tcp")), []);
  assert.deepEqual(unused(await found("block", "loop")), [
    ...["nvme-transport", "device-layer", "encryption", "nvme-target"],
  ]);
});
