/**
 * Publishes in its own mount namespace, with `/dev` and the kubelet's folder shared or private; prints its findings as
 * JSON. To be run by `unshare --mount --propagation private`.
 */
import { block, ext4, RealNode, run, TestVolume } from "./harness.ts";
import { mountsUnder } from "../support/left_here.ts";

const [folder, dev, kubelet] = Deno.args as [string, string, string];
const node = new RealNode(folder);

/** The mounts at each target in the kernel's count, including hidden copies. */
function countAt(path: string): number {
  return mountsUnder(node.folder).filter((mountPoint) => mountPoint === path).length;
}

async function cycle(id: string, capability: typeof block | typeof ext4) {
  const volume = new TestVolume(node, id, 64n << 20n);
  await node.stage(volume, { capability });
  const targets = ["pod-1", "pod-2"].map((pod) => node.target(id, pod));
  for (let round = 0; round < 10; round++) {
    for (const targetPath of targets) await node.publish(volume, { capability, targetPath });
  }
  await node.stage(volume, { capability });
  const most = targets.map(countAt);
  for (const pod of ["pod-1", "pod-2"]) await node.unpublish(volume, pod);
  const left = targets.map(countAt);
  await node.unstage(volume);
  return {
    most,
    left,
    staged: countAt(node.staging(id)),
    devices: await node.deps.connector.connected(never),
  };
}

const never = { requestId: "t", signal: new AbortController().signal };

await run("mount", `--make-${dev}`, "/dev");
if (kubelet === "beneath") {
  await run("mount", "--bind", node.folder, node.folder);
  await run("mount", "--make-shared", node.folder);
}
if (kubelet !== "plain") {
  await run("mount", "--bind", node.kubelet, node.kubelet);
  await run("mount", "--make-shared", node.kubelet);
}
if (kubelet === "twice") await run("mount", "--bind", node.kubelet, node.kubelet);
const result = [await cycle("pvc-raw", block), await cycle("pvc-fs", ext4)];
node.libc.close();
await Deno.stdout.write(new TextEncoder().encode(JSON.stringify(result)));
