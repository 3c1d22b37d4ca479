import assert from "node:assert/strict";
import { FakeKernelFiles } from "../../../tests/fakes/kernel_files.ts";
import type { ModuleFiles } from "./modules.ts";
import { checkMultipath, checkTimeouts, checkTransport } from "./nvme.ts";

const folder = { kind: "directory" } as const;
const unseen: ModuleFiles = { read: () => Promise.resolve(undefined) };
const listing = (dep: string, builtin = ""): ModuleFiles => ({
  read: (name) => Promise.resolve(name === "modules.dep" ? dep : builtin),
});
const dep = "kernel/drivers/nvme/host/nvme-tcp.ko.xz: kernel/drivers/nvme/host/nvme-core.ko.xz\n";

const transports: readonly (readonly [
  what: string,
  nodes: readonly string[],
  texts: Readonly<Record<string, string>>,
  modules: ModuleFiles,
  state: string,
  found: RegExp,
])[] = [
  [
    "loaded",
    ["/sys/module/nvme_tcp", "/dev/nvme-fabrics"],
    {},
    unseen,
    "ok",
    /^nvme_tcp is loaded/,
  ],
  [
    "built in, as /proc/modules does not say but the folder does",
    ["/sys/module/nvme_tcp", "/sys/module/nvme_fabrics", "/dev/nvme-fabrics"],
    { "/proc/modules": "" },
    listing(""),
    "ok",
    /loaded/,
  ],
  [
    "loaded by /proc/modules alone",
    ["/dev/nvme-fabrics"],
    { "/proc/modules": "nvme_fabrics 1 1 nvme_tcp, Live 0x0\nnvme_tcp 1 0 - Live 0x0" },
    unseen,
    "ok",
    /loaded/,
  ],
  [
    "there but for /dev, which is a container's own",
    ["/sys/module/nvme_tcp", "/sys/module/nvme_fabrics"],
    {},
    unseen,
    "problem",
    /not here: \/dev is not the host's$/,
  ],
  [
    "loadable at the first connection",
    ["/sys/module/nvme_fabrics", "/dev/nvme-fabrics"],
    { "/proc/sys/kernel/modules_disabled": "0" },
    unseen,
    "warning",
    /loads it with the first connection/,
  ],
  [
    "never loaded again",
    ["/sys/module/nvme_fabrics", "/dev/nvme-fabrics"],
    { "/proc/sys/kernel/modules_disabled": "1" },
    listing(dep),
    "problem",
    /no longer loads modules/,
  ],
  ["loadable", [], {}, listing(dep), "problem", /^nvme_tcp is not loaded; it can be loaded$/],
  ["unknown", [], {}, unseen, "problem", /cannot see whether it can be loaded$/],
  [
    "not there at all",
    [],
    { "/proc/sys/kernel/osrelease": "6.1.0-x" },
    listing("kernel/drivers/nvme/host/nvme-core.ko:\n"),
    "problem",
    /kernel 6\.1\.0-x has no such module$/,
  ],
];

for (const [what, nodes, texts, modules, state, found] of transports) {
  Deno.test(`checkTransport() says ${state} where the transport is ${what}`, async () => {
    const files = new FakeKernelFiles();
    for (const path of nodes) files.nodes.set(path, folder);
    for (const [path, text] of Object.entries(texts)) files.texts.set(path, text);
    const finding = await checkTransport(files, modules);
    assert.equal(finding.state, state);
    assert.match(finding.found, found);
    assert.equal(finding.fix === undefined, state === "ok");
  });
}

Deno.test("checkMultipath() distinguishes on from off, and from a kernel without it", () => {
  const files = new FakeKernelFiles();
  assert.equal(checkMultipath(files).state, "skipped");
  for (const [value, wording] of [["Y", /is on/], ["N", /is off/]] as const) {
    files.texts.set("/sys/module/nvme_core/parameters/multipath", value);
    assert.match(checkMultipath(files).found, wording);
  }
});

Deno.test("checkTimeouts() warns of a connection that gives up early or never, and ignores other drivers'", () => {
  const files = new FakeKernelFiles();
  const nqn = "nqn.2000-02.com.mikrotik";
  const controller = (name: string, subsystem: string, ctrlLossTmo: string) => {
    files.folders.set("/sys/class/nvme", [...files.list("/sys/class/nvme") ?? [], name]);
    files.texts.set(`/sys/class/nvme/${name}/subsysnqn`, subsystem);
    files.texts.set(`/sys/class/nvme/${name}/ctrl_loss_tmo`, ctrlLossTmo);
    files.texts.set(`/sys/class/nvme/${name}/reconnect_delay`, "5");
  };
  assert.match(checkTimeouts(files, nqn).found, /^no connection/);
  controller("nvme1", `${nqn}:pvc-1:1-0a0b0c0d`, "1800");
  controller("nvme0", "nqn.1994-11.com.samsung:nvme:980", "off");
  assert.deepEqual(checkTimeouts(files, nqn), {
    check: "nvme-timeouts",
    state: "ok",
    found: "nvme1 ctrl_loss_tmo=1800 reconnect_delay=5 fast_io_fail_tmo=?",
  });
  controller("nvme2", `${nqn}:pvc-2:1-0a0b0c0d`, "off");
  assert.equal(checkTimeouts(files, nqn).state, "warning");
  files.texts.set("/sys/class/nvme/nvme2/ctrl_loss_tmo", "600");
  assert.equal(checkTimeouts(files, nqn).state, "warning");
});
