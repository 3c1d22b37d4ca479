import { proveDevice } from "../../src/node/connections/device.ts";
import type { FoundDevice, ProvenDevice } from "../../src/volume/ports/node_ports.ts";

/** A proven device, for tests of operations that only accept those. */
export function provenDevice(change: Partial<FoundDevice> = {}): ProvenDevice {
  const found: FoundDevice = {
    path: "/dev/loop0",
    deviceNumber: "7:0",
    sizeBytes: 1073741824n,
    nqn: "nqn.2000-02.com.mikrotik:pvc-1:1-0a0b0c0d",
    nsid: 1,
    uniqueId: "",
    ...change,
  };
  return proveDevice(found, { kind: "block", deviceNumber: found.deviceNumber }, {
    nqn: found.nqn,
    sizeBytes: found.sizeBytes,
    uniqueId: found.uniqueId,
  });
}
