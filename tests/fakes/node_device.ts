import type { DeviceProbe, FoundDevice, MountEntry } from "../../src/volume/ports/node_ports.ts";
import type { FilesystemType } from "../../src/volume/model/capabilities.ts";
import type { FakeLuks } from "./cryptsetup.ts";

/** A device of the fake node. */
export interface FakeDevice {
  path: string;
  deviceNumber: string;
  sizeBytes: bigint;
  uniqueId: string;
  nsid: number;
  /** Its content. */
  content: "blank" | "garbage" | FilesystemType | "btrfs" | "luks";
  /** The header of an encrypted device, with `content` "luks". */
  luks?: FakeLuks;
  /** UUID of its file system. */
  filesystemUuid?: string;
  /** What the kernel has read of it before, and answers until it is told to read it again. */
  readAs?: "blank" | undefined;
  complete: boolean;
  /** Whether its file system's log has to be replayed. */
  dirty: boolean;
  readOnly: boolean;
  /** How many errors the kernel has found in its file system. @default {0} */
  errors?: number;
  /** Whether it answers a read with an error; undefined when it does not answer. */
  refusesReads?: boolean | undefined;
  /** Whether its file system is frozen: it outlives its last mount. */
  frozen?: boolean;
  connected: boolean;
  exported: boolean;
  /** What tools take the device for because of what a pod wrote to it. */
  planted?: string;
}

/** The device as a connector finds it; undefined while it is not connected. */
export function found(nqn: string, device: FakeDevice | undefined): FoundDevice | undefined {
  if (!device?.connected) return undefined;
  const { path, deviceNumber, sizeBytes, nsid, uniqueId } = device;
  return { path, deviceNumber, sizeBytes, nqn, nsid, uniqueId };
}

/** The devices as a connector finds them, by NQN. */
export function foundIn(devices: ReadonlyMap<string, FakeDevice>): ReadonlyMap<string, FoundDevice> {
  return new Map([...devices].flatMap(([nqn, device]) => {
    const one = found(nqn, device);
    return one === undefined ? [] : [[nqn, one] as const];
  }));
}

/** What a probe shows of the device. */
export function probeOf({ content, luks, filesystemUuid: uuid, planted }: FakeDevice): DeviceProbe {
  if (content === "luks") {
    return { blank: false, signature: { state: "found", type: "crypto_LUKS", label: luks!.label } };
  }
  if (planted !== undefined) {
    const filesystem = { type: content, ...(uuid === undefined ? {} : { uuid }) };
    return { blank: false, signature: { state: "found", type: planted, filesystem } };
  }
  const bare = content === "blank" || content === "garbage";
  return {
    blank: content === "blank",
    signature: bare
      ? { state: "none" }
      : { state: "found", type: content, ...(uuid === undefined ? {} : { uuid }) },
  };
}

/** A device that is exported, and on which nothing was written. */
export const newDevice = {
  path: "/dev/loop3",
  deviceNumber: "7:3",
  uniqueId: "",
  nsid: 1,
  content: "blank",
  complete: true,
  dirty: false,
  readOnly: false,
  connected: false,
  exported: true,
} as const;

/** Whether the file system of that device is frozen. */
export function isFrozen(devices: ReadonlyMap<string, FakeDevice>, deviceNumber: string): boolean {
  return devices.values().some((device) => device.deviceNumber === deviceNumber && device.frozen === true);
}

/** Thaws what is mounted there, and returns whether it was frozen. */
export function thaw(
  devices: ReadonlyMap<string, FakeDevice>,
  table: readonly MountEntry[],
  mountPoint: string,
): boolean {
  const number = table.findLast((entry) => entry.mountPoint === mountPoint)?.deviceNumber;
  const device = devices.values().find(({ deviceNumber, frozen }) => deviceNumber === number && frozen);
  if (device !== undefined) device.frozen = false;
  return device !== undefined;
}
