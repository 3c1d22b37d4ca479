import assert from "node:assert/strict";
import { allTools } from "../../src/host/tools.ts";
import type { Finding } from "../../src/volume/model/finding.ts";
import { ensureImageRoot } from "../../tools/image/root.ts";
import { BINARY, isBuilt, type Outcome } from "./binary.ts";

/** Longest that the executable may run in the image. */
const limitMs = 60_000;

const needed = ["apt-get", "dpkg-deb", "tar", "unshare", "chroot"];
const lacking = [
  ...needed.filter((name) =>
    !new Deno.Command("which", { args: [name], stdout: "null" }).outputSync().success
  ),
  ...(Deno.uid() === 0 ? [] : ["root"]),
];
if (lacking.length > 0) {
  const note = `ignored: the tests in the image's root file system need ${lacking.join(", ")}\n`;
  Deno.stderr.writeSync(new TextEncoder().encode(note));
}
const ignore = !isBuilt || lacking.length > 0;

/** The script that runs in a separate mount namespace, so that it leaves nothing: set up like a node's container. */
const inside = `
set -e
root=$1; binary=$2; user=$3; shift 3
mount --make-rprivate /
# Copies of other tests' mounts would keep those busy.
awk '$5 ~ "^/tmp/rds-csi-" { print $5 }' /proc/self/mountinfo | sort -r | xargs -r umount -l
mount --bind "$root" "$root"
mount --bind "$binary" "$root/usr/bin/rds-csi"
mount --rbind /proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs kubelet "$root/var/lib/kubelet"
mount -t tmpfs scratch "$root/tmp"
mount -t tmpfs -o mode=0770,uid=65532,gid=65532 socket "$root/csi"
mount -t tmpfs -o mode=0750,gid=65532 credentials "$root/etc/rds-csi"
echo word >"$root/etc/rds-csi/password"
chmod 0640 "$root/etc/rds-csi/password"
chown 0:65532 "$root/etc/rds-csi/password"
mount -o remount,bind,ro "$root"
exec timeout --signal=TERM --preserve-status "$LIMIT" chroot --userspec="$user" "$root" /usr/bin/rds-csi "$@"
`;

/** How long the executable runs before SIGTERM, in seconds: when it serves, and for all other commands. */
const seconds = { serving: "5", other: "50" };

/** Runs the executable in the image, whose root file system is read-only. */
async function runInImage(user: "0:0" | "65532:65532", ...args: string[]): Promise<Outcome> {
  const root = await ensureImageRoot(Deno.build.arch === "aarch64" ? "arm64" : "amd64");
  const { code, stdout, stderr } = await new Deno.Command("unshare", {
    args: ["--mount", "sh", "-c", inside, "sh", root, BINARY, user, ...args],
    clearEnv: true,
    env: {
      PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
      LIMIT: args[0] === "serve" ? seconds.serving : seconds.other,
    },
    stdin: "null",
    signal: AbortSignal.timeout(limitMs),
  }).output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

Deno.test({
  name: "the executable runs in the image as the controller's user",
  ignore,
  async fn() {
    const { code, stdout, stderr } = await runInImage("65532:65532", "version");
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^rds-csi \d+\.\d+\.\d+ /);
  },
});

Deno.test({
  name:
    "a controller serves in the image as nobody who may write its socket's folder alone, and ends in order",
  ignore,
  async fn() {
    const { code, stderr } = await runInImage("65532:65532", ...[
      ...[
        "serve",
        "--mode=controller",
        "--kubernetes=off",
        "--cluster-id=c",
        "--metrics-address=127.0.0.1:0",
      ],
      ...["--endpoint=unix:///csi/csi.sock", "--rds-address=127.0.0.1", "--rds-port=1"],
      ...["--rds-password-file=/etc/rds-csi/password", "--rds-insecure-skip-verify"],
    ]);
    assert.equal(code, 0, stderr);
    for (const message of ["serving", "serving metrics", "stopping", "stopped"]) {
      assert.ok(stderr.includes(`"message":"${message}"`), `${message} is missing:\n${stderr}`);
    }
  },
});

Deno.test({
  name: "the demo takes volumes through their lives in the image",
  ignore,
  async fn() {
    const { code, stdout, stderr } = await runInImage("0:0", "demo");
    assert.equal(code, 0, stdout + stderr);
    assert.match(stdout, /^demo: ok$/m);
  },
});

Deno.test({
  name: "the doctor finds every tool in the image",
  ignore,
  async fn() {
    const { stdout, stderr } = await runInImage("0:0", "doctor", "--json", "--node-id", "node-1");
    const findings: readonly Finding[] = JSON.parse(stdout || assert.fail(stderr));
    const tools = findings.filter(({ check }) => check === "tools");
    for (const { state, found } of tools) assert.equal(state, "ok", found);
    // Neither a simulated router nor shared directories are what a node is asked about.
    const unasked = ["losetup", "mount.nfs4"];
    const names = tools.flatMap(({ found }) => found.split(": ")[1]?.split(", ") ?? []);
    assert.deepEqual(names.toSorted(), allTools.filter((tool) => !unasked.includes(tool)).toSorted());
    assert.equal(findings.find(({ check }) => check === "dev")?.state, "ok");
  },
});

Deno.test({
  name: "a node service starts in the image, and refuses without a node's id",
  ignore,
  async fn() {
    const { code, stderr } = await runInImage("0:0", "serve", "--mode=node");
    assert.equal(code, 2);
    assert.match(stderr, /--node-id is required/);
  },
});
