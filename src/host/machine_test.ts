import assert from "node:assert/strict";
import { FakeKernelFiles } from "../../tests/fakes/kernel_files.ts";
import { VolumeError } from "../volume/errors.ts";
import { machineHash } from "../volume/model/host/machine.ts";
import { thisMachine } from "./machine.ts";

const id = "0123456789abcdef0123456789abcdef";
const uuid = "4c4c4544-0042-3510-8057-b4c04f4a4e32";
const hash = machineHash(id, uuid)!;
const another = machineHash(id, uuid.replace("4c", "4d"))!;

type Texts = Readonly<Record<string, string>>;

/** Files of a process' root. */
function filesOf(roots: Readonly<Record<string, Texts>>): FakeKernelFiles {
  const files = new FakeKernelFiles();
  for (const [pid, texts] of Object.entries(roots)) {
    for (const [path, text] of Object.entries(texts)) files.texts.set(`/proc/${pid}/root${path}`, text);
  }
  return files;
}

/** Files of a host whose kubelet is one of its own processes. */
function filesOfHost(texts: Texts, kubelet = "kubelet"): FakeKernelFiles {
  const files = filesOf({ 1: texts, 77: texts });
  files.folders.set("/proc", ["1", "77", "self"]);
  files.texts.set("/proc/1/comm", "systemd");
  files.texts.set("/proc/77/comm", kubelet);
  return files;
}

const dmi = "/sys/class/dmi/id/product_uuid";

Deno.test("thisMachine() recognises itself by what the host's first process sees", () => {
  const machine = thisMachine(filesOfHost({ "/etc/machine-id": id, [dmi]: uuid }));
  assert.equal(machine.is(hash), true);
  assert.equal(machine.is(another), false);
});

Deno.test("thisMachine() distinguishes another machine with kubelets of any distribution", () => {
  for (const kubelet of ["kubelet", "kubelite", "k3s", "k3s-server", "k3s-agent"]) {
    const machine = thisMachine(filesOfHost({ "/etc/machine-id": id, [dmi]: uuid }, kubelet));
    assert.deepEqual([machine.is(hash), machine.is(another)], [true, false], kubelet);
  }
});

Deno.test("thisMachine() reads a k3s that runs in its own container beside the host's processes", () => {
  for (const kubelet of ["k3s-server", "k3s-agent", "kubelite"]) {
    const files = filesOfHost(
      { "/etc/machine-id": "ffffffffffffffffffffffffffffffff", [dmi]: uuid },
      kubelet,
    );
    files.texts.set("/proc/77/root/etc/machine-id", id);
    assert.deepEqual([thisMachine(files).is(hash), thisMachine(files).is(another)], [true, false], kubelet);
  }
});

Deno.test("thisMachine() is unknown without a visible kubelet, or when the kubelet itself has no machine id", () => {
  // Without the host's processes the first process is this container's own, and its image has a machine id.
  assert.equal(
    thisMachine(filesOfHost({ "/etc/machine-id": id, [dmi]: uuid }, "rds-csi")).is(another),
    undefined,
  );
  const files = filesOfHost({ "/etc/machine-id": "ffffffffffffffffffffffffffffffff", [dmi]: uuid });
  files.texts.delete("/proc/77/root/etc/machine-id");
  assert.equal(thisMachine(files).is(hash), undefined);
});

Deno.test("thisMachine() reads the machine id and the UUID wherever a kubelet does", () => {
  const places: readonly Readonly<Record<string, string>>[] = [
    { "/etc/machine-id": "", "/var/lib/dbus/machine-id": id, [dmi]: uuid.toUpperCase() },
    { "/etc/machine-id": id, "/proc/device-tree/vm,uuid": `${uuid}\0` },
    { "/etc/machine-id": id, "/proc/device-tree/system-id": uuid },
  ];
  for (const files of places) assert.equal(thisMachine(filesOf({ 1: files })).is(hash), true);
});

Deno.test("thisMachine() recognises itself when the firmware has no UUID, so that the kubelet reports the machine id as one", () => {
  const machine = thisMachine(filesOfHost({ "/etc/machine-id": `${id}\n` }));
  assert.equal(machine.is(machineHash(id, id)!), true);
  assert.equal(machine.is(hash), false);
});

Deno.test("thisMachine() recognises itself when a kernel or firmware has begun to report the UUID's bytes in the other order", () => {
  const machine = thisMachine(
    filesOfHost({ "/etc/machine-id": id, [dmi]: "44454C4C-4200-1035-8057-B4C04F4A4E32\n" }),
  );
  assert.equal(machine.is(hash), true);
  assert.equal(machine.is(another), false);
});

Deno.test("thisMachine() recognises itself by the machine id alone when the kubelet reports no UUID", () => {
  const machine = thisMachine(filesOf({ 1: { "/etc/machine-id": id, [dmi]: uuid } }));
  assert.equal(machine.is(machineHash(id, "")!), true);
});

Deno.test("thisMachine() reads a kubelet that runs in its own container", () => {
  const files = filesOf({
    1: { "/etc/machine-id": "ffffffffffffffffffffffffffffffff", [dmi]: uuid },
    77: { "/etc/machine-id": id, [dmi]: uuid },
  });
  files.folders.set("/proc", ["1", "77", "self", "78"]);
  files.texts.set("/proc/77/comm", "containerd");
  assert.equal(thisMachine(files).is(hash), undefined);
  files.texts.set("/proc/77/comm", "kubelet");
  assert.equal(thisMachine(files).is(hash), true);
});

Deno.test("thisMachine() is unknown without a machine id, and when a file cannot be read", () => {
  assert.equal(thisMachine(new FakeKernelFiles()).is(hash), undefined);
  assert.equal(thisMachine(filesOf({ 1: { [dmi]: uuid } })).is(hash), undefined);
  const refusing = filesOf({ 1: { "/etc/machine-id": id } });
  const readText = refusing.readText.bind(refusing);
  refusing.readText = (path) => {
    if (path.endsWith(dmi)) throw new VolumeError("unavailable", "Cannot read: EACCES");
    return readText(path);
  };
  assert.equal(thisMachine(refusing).is(hash), undefined);
});

Deno.test("thisMachine() ignores a process without a readable name, and is unknown when a kubelet's files cannot be read", () => {
  const files = filesOf({
    1: { "/etc/machine-id": "ffffffffffffffffffffffffffffffff", [dmi]: uuid },
    77: { "/etc/machine-id": id, [dmi]: uuid },
  });
  files.folders.set("/proc", ["1", "33", "77"]);
  files.texts.set("/proc/77/comm", "kubelet");
  let unreadable = "/proc/33/comm";
  const readText = files.readText.bind(files);
  files.readText = (path) => {
    if (path.startsWith(unreadable)) throw new VolumeError("unavailable", "Cannot read: ESRCH");
    return readText(path);
  };
  assert.equal(thisMachine(files).is(hash), true);
  assert.equal(thisMachine(files).is(another), false);
  unreadable = "/proc/77/root";
  assert.equal(thisMachine(files).is(hash), undefined);
});
