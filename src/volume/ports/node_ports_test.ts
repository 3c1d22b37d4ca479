import assert from "node:assert/strict";
import type { DeviceMaps } from "./device_maps.ts";
import type { BlockDevices, Filesystems, FoundDevice, Mounts, ProvenDevice } from "./node_ports.ts";

/** Whether the compiler refuses a found device where a proven one is required. */
type Refuses<Method extends (device: never, ...rest: never[]) => unknown> = FoundDevice extends
  Parameters<Method>[0] ? false : ProvenDevice extends Parameters<Method>[0] ? true : false;

/** What tells who uses a device, and how it is. */
type OnlyReads =
  | "partitions"
  | "layers"
  | "openBy"
  | "hiddenUsers"
  | "hold"
  | "isUnclaimed"
  | "hasFilesystem"
  | "filesystemErrors"
  | "refusesReads";

/** Every operation on a device, or that trusts its content. The compiler checks every `true`. */
const provenOnly: {
  readonly filesystems: Readonly<
    { [Name in Exclude<keyof Filesystems, "stats">]: Refuses<Filesystems[Name]> }
  >;
  readonly mounts: Readonly<
    { [Name in Exclude<keyof Mounts, "table" | "thaw" | "unmount" | "whoKeeps">]: Refuses<Mounts[Name]> }
  >;
  /** The device below a map. */
  readonly maps: Readonly<
    { [Name in "make" | "reload"]: Refuses<(below: Parameters<DeviceMaps[Name]>[1]) => void> }
  >;
  readonly devices: Readonly<
    {
      [Name in Exclude<keyof BlockDevices, OnlyReads>]: Refuses<BlockDevices[Name]>;
    }
  >;
} = {
  filesystems: {
    probe: true,
    isComplete: true,
    logState: true,
    eraseEnds: true,
    format: true,
    check: true,
    grow: true,
    trim: true,
  },
  mounts: { mountDevice: true, bindFolder: true, bindDevice: true },
  maps: { make: true, reload: true },
  devices: { setReadOnly: true, isReadOnly: true, forgetReads: true },
};

/** Never called. It compiles only because the compiler refuses to make a proven device without the proof. */
export function withoutProof(found: FoundDevice): ProvenDevice {
  // @ts-expect-error -- found, not proven
  return { ...found };
}

Deno.test("no operation on a device accepts one that was only found", () => {
  const answers = Object.values(provenOnly).flatMap((methods) => Object.values(methods));
  assert.deepEqual(new Set(answers), new Set([true]));
});
