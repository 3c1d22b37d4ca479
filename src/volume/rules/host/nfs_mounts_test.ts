import assert from "node:assert/strict";
import type { MountEntry } from "../../ports/node_ports.ts";
import { serverPath, usersOf } from "./nfs_mounts.ts";

let lastId = 0;

function entry(mountPoint: string, source: string, change: Partial<MountEntry> = {}): MountEntry {
  return {
    mountId: ++lastId,
    parentId: 0,
    deviceNumber: "0:40",
    root: "/",
    mountPoint,
    mountOptions: ["rw"],
    filesystem: "nfs4",
    source,
    superOptions: ["rw", "vers=4.2", "hard"],
    ...change,
  };
}

Deno.test("serverPath() reads the folder's path from the source, also of an IPv6 address", () => {
  assert.equal(serverPath(entry("/m", "10.0.0.1:/pool/a b")), "/pool/a b");
  assert.equal(serverPath(entry("/m", "[fd00::1]:/pool")), "/pool");
  assert.equal(serverPath(entry("/m", "server:/")), "/");
});

Deno.test("usersOf() counts binds of the share, and not the share, its submounts or other file systems", () => {
  const table = [
    entry("/state/mounts/k", "s:/"),
    entry("/state/mounts/k/pool", "s:/pool", { deviceNumber: "0:41" }),
    entry("/state/mounts/other", "s:/"),
    entry("/pods/a", "s:/x"),
    entry("/pods/b", "s:/pool/b", { deviceNumber: "0:41" }),
    entry("/pods/c", "s:/pool/c", { deviceNumber: "0:41", filesystem: "ext4" }),
    entry("/pods/d", "t:/pool/d", { deviceNumber: "0:50" }),
  ];
  const users = usersOf(table, "/state/mounts/k", "/state/mounts").map(({ mountPoint }) => mountPoint);
  assert.deepEqual(users, ["/pods/a", "/pods/b"]);
});

Deno.test("usersOf() counts a folder on a file system that the kernel has unmounted below the share again", () => {
  const table = [
    entry("/state/mounts/k", "s:/"),
    entry("/pods/b", "s:/pool/b", { deviceNumber: "0:41" }),
    entry("/pods/c", "s:/pool/c", { deviceNumber: "0:42", superOptions: ["rw", "vers=4.1", "hard"] }),
  ];
  const users = usersOf(table, "/state/mounts/k", "/state/mounts").map(({ mountPoint }) => mountPoint);
  assert.deepEqual(users, ["/pods/b"], "the one with other options belongs to another mount");
});

Deno.test("usersOf() does not count a neighbour of the export whose name begins alike", () => {
  const table = [
    entry("/state/mounts/k", "s:/pool"),
    entry("/pods/b", "s:/pool2/b", { deviceNumber: "0:41" }),
  ];
  assert.deepEqual(usersOf(table, "/state/mounts/k", "/state/mounts"), []);
});
