// Tests that the fixes which `rds-csi doctor` prints for a node resolve their findings, and change nothing else. They
// run in their own mount namespace.
import assert from "node:assert/strict";
import { nodeFixes } from "../../src/doctor/node/fixes.ts";
import { judgeKubelet } from "../../src/doctor/node/machine.ts";
import { parseMountinfo } from "../../src/filesystem/mountinfo.ts";
import { parsePropagation } from "../../src/filesystem/propagation.ts";
import { formatFix } from "../../src/volume/model/finding.ts";
import { hostOutput } from "../../tools/host_command.ts";

const isRoot = Deno.uid() === 0;
if (!isRoot) {
  Deno.stderr.writeSync(new TextEncoder().encode("ignored: a mount namespace needs root\n"));
}

/** Runs lines in a mount namespace whose mounts are all private; their mounts disappear with it. */
function inNamespace(...lines: readonly string[]): Promise<string> {
  return hostOutput("sh", ["-ec", `unshare --mount --propagation private sh -ec '${lines.join("\n")}'`]);
}

function kubelet(mountinfo: string) {
  const [table, propagation] = [parseMountinfo(mountinfo), parsePropagation(mountinfo)];
  return judgeKubelet({ path: "/var/lib/kubelet", exists: true, table, propagation });
}

Deno.test({
  name: "the fix propagation makes mounts in the kubelet's folder visible outside",
  ignore: !isRoot,
  async fn() {
    const fix = nodeFixes.propagation();
    // In one namespace: other tests mount and unmount meanwhile, which a second one would have copied.
    const show = "cat /proc/self/mountinfo";
    const shown = await inNamespace(show, "echo", ...fix.commands, show);
    const [before, after] = shown.split("\n\n") as [string, string];
    assert.equal(kubelet(before).fix, formatFix(fix));
    assert.equal(kubelet(after).state, "ok");
    const points = (text: string) => parseMountinfo(text).map(({ mountPoint }) => mountPoint);
    assert.deepEqual(points(after), points(before), "nothing is mounted or unmounted");
  },
});

Deno.test({
  name: "the fix loadTransport loads the module, now and at the next boot",
  ignore: !isRoot,
  async fn() {
    const fix = nodeFixes.loadTransport();
    // The test must not load modules of this machine: modprobe only prints what it was called for.
    const printed = await inNamespace(
      "mkdir -p /etc/modules-load.d; mount -t tmpfs none /etc/modules-load.d; echo other >/etc/modules-load.d/other.conf",
      'mount -t tmpfs none /mnt; printf "#!/bin/sh\\necho loaded \\$*\\n" >/mnt/modprobe; chmod +x /mnt/modprobe',
      "PATH=/mnt:$PATH",
      ...fix.commands,
      "cd /etc/modules-load.d; grep . *",
    );
    assert.equal(printed, "loaded nvme-tcp\nnvme-tcp.conf:nvme-tcp\nother.conf:other\n");
  },
});
