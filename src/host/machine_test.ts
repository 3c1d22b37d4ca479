import assert from "node:assert/strict";
import { FakeKernelFiles } from "../../tests/fakes/kernel_files.ts";
import { VolumeError } from "../volume/errors.ts";
import { machineHash } from "../volume/model/machine.ts";
import { thisMachine } from "./machine.ts";

const id = "0123456789abcdef0123456789abcdef";
const uuid = "4c4c4544-0042-3510-8057-b4c04f4a4e32";
const hash = machineHash(id, uuid)!;
const another = machineHash(id, uuid.replace("4c", "4d"))!;

/** Files of a process' root. */
function filesOf(roots: Readonly<Record<string, Readonly<Record<string, string>>>>): FakeKernelFiles {
  const files = new FakeKernelFiles();
  for (const [pid, texts] of Object.entries(roots)) {
    for (const [path, text] of Object.entries(texts)) files.texts.set(`/proc/${pid}/root${path}`, text);
  }
  return files;
}

const dmi = "/sys/class/dmi/id/product_uuid";

Deno.test("thisMachine() knows itself by what the host's first process sees", () => {
  const machine = thisMachine(filesOf({ 1: { "/etc/machine-id": id, [dmi]: uuid } }));
  assert.equal(machine.is(hash), true);
  assert.equal(machine.is(another), false);
});

Deno.test("thisMachine() reads the machine id and the UUID wherever a kubelet does", () => {
  const places: readonly Readonly<Record<string, string>>[] = [
    { "/etc/machine-id": "", "/var/lib/dbus/machine-id": id, [dmi]: uuid.toUpperCase() },
    { "/etc/machine-id": id, "/proc/device-tree/vm,uuid": `${uuid}\0` },
    { "/etc/machine-id": id, "/proc/device-tree/system-id": uuid },
  ];
  for (const files of places) assert.equal(thisMachine(filesOf({ 1: files })).is(hash), true);
});

Deno.test("thisMachine() knows itself by the machine id alone where the kubelet reports no UUID", () => {
  const machine = thisMachine(filesOf({ 1: { "/etc/machine-id": id, [dmi]: uuid } }));
  assert.equal(machine.is(machineHash(id, "")!), true);
});

Deno.test("thisMachine() looks into a kubelet that runs in a container of its own", () => {
  const files = filesOf({
    1: { "/etc/machine-id": "ffffffffffffffffffffffffffffffff", [dmi]: uuid },
    77: { "/etc/machine-id": id, [dmi]: uuid },
  });
  files.folders.set("/proc", ["1", "77", "self", "78"]);
  files.texts.set("/proc/77/comm", "containerd");
  assert.equal(thisMachine(files).is(hash), false);
  files.texts.set("/proc/77/comm", "kubelet");
  assert.equal(thisMachine(files).is(hash), true);
});

Deno.test("thisMachine() cannot tell without a machine id, nor where a file cannot be read", () => {
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
