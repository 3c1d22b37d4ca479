import assert from "node:assert/strict";
import { apart, nodeTest, run } from "./harness.ts";

const script = decodeURIComponent(new URL("./_propagation.ts", import.meta.url).pathname);

/**
 * How the kubelet's folder is mounted (bound over itself, beneath a mount that is shared), and how many mounts the kernel then
 * counts at a target, including hidden copies.
 */
const kubelets = { plain: 1, shared: 1, twice: 2, beneath: 2 } as const;

for (const dev of ["private", "shared"]) {
  for (const [kubelet, count] of Object.entries(kubelets)) {
    nodeTest(
      `with /dev ${dev} and the kubelet's folder ${kubelet}, publishing again and again multiplies nothing`,
      async (node) => {
        const program = [Deno.execPath(), "run", "-A", "--quiet", script, node.folder, dev, kubelet];
        const [command, ...text] = apart(node.folder, 'exec "$@"', ...program);
        const output = await run(command!, ...text);
        const each = { most: [count, count], left: [0, 0], staged: 0, devices: [] };
        assert.deepEqual(JSON.parse(output.trim().split("\n").at(-1)!), [each, each]);
      },
    );
  }
}
