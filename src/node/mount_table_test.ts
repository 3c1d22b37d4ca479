import assert from "node:assert/strict";
import { FakeNode } from "../../tests/fakes/node_deps.ts";
import type { MountEntry } from "../volume/ports/node_ports.ts";
import { mountPointOf } from "./mount_table.ts";

const entry = (mountPoint: string, deviceNumber: string): MountEntry => ({
  ...{ mountId: 1, parentId: 0, deviceNumber, root: "/", mountPoint, mountOptions: [] },
  ...{ filesystem: "ext4", source: "/dev/sda", superOptions: [] },
});

/** Which operations read a path, when that is the mount table, and the result. */
async function asked(table: readonly MountEntry[], path: string): Promise<readonly string[]> {
  const deps = new FakeNode().deps;
  const reported: string[] = [];
  const paths = {
    ...deps.paths,
    realPath: (folder: string) => {
      reported.push(`thread ${folder}`);
      return Promise.resolve(folder === "/kubelet/missing" ? undefined : folder.replace("/link", "/real"));
    },
    mountPoint: (mountPath: string) => {
      reported.push(`child ${mountPath}`);
      return Promise.resolve(mountPath);
    },
  };
  const mounts = { ...deps.mounts, table: () => Promise.resolve(table) };
  const settings = { ...deps.settings, statePath: "/kubelet/plugins/state" };
  const mountPath = await mountPointOf({ ...deps, paths, mounts, settings }, path);
  return [mountPath, ...reported];
}

const root = entry("/", "8:1");
const cases: readonly [string, readonly MountEntry[], string, readonly string[]][] = [
  ["on the file system of the state", [root], "/kubelet/link/x", ["/kubelet/real/x", "thread /kubelet/link"]],
  ["below the mount of both", [root, entry("/kubelet", "8:2")], "/kubelet/a/x", [
    "/kubelet/a/x",
    "thread /kubelet/a",
  ]],
  ["below another mount", [root, entry("/kubelet/a", "0:50")], "/kubelet/a/b/x", [
    "/kubelet/a/b/x",
    "child /kubelet/a/b/x",
  ]],
  [
    "in a mount that covers another",
    [root, entry("/kubelet", "8:2"), entry("/kubelet/a", "8:2")],
    "/kubelet/a/x",
    [
      "/kubelet/a/x",
      "child /kubelet/a/x",
    ],
  ],
  ["in a folder that is missing", [root], "/kubelet/missing/x", [
    "/kubelet/missing/x",
    "thread /kubelet/missing",
    "child /kubelet/missing/x",
  ]],
  ["where no mount is known", [], "/kubelet/a/x", ["/kubelet/a/x", "child /kubelet/a/x"]],
];
for (const [name, table, path, expected] of cases) {
  Deno.test(`mountPointOf() of a path ${name} asks ${expected.slice(1).join(", then ")}`, async () => {
    assert.deepEqual(await asked(table, path), expected);
  });
}
