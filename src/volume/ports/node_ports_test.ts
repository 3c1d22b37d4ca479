import assert from "node:assert/strict";
import type { BlockDevices, Filesystems, FoundDevice, Mounts, ProvenDevice } from "./node_ports.ts";
import type { CallContext } from "./system.ts";

/** Whether what is only found is refused where a proven device is wanted: by the compiler. */
type Refuses<Method extends (device: never, ...rest: never[]) => unknown> = FoundDevice extends
  Parameters<Method>[0] ? false : ProvenDevice extends Parameters<Method>[0] ? true : false;

/** Everything that is done to a device, or trusts what is on it. The compiler checks every `true`. */
const provenOnly: {
  readonly filesystems: Readonly<
    { [Name in Exclude<keyof Filesystems, "stats">]: Refuses<Filesystems[Name]> }
  >;
  readonly mounts: Readonly<{ [Name in Exclude<keyof Mounts, "table" | "unmount">]: Refuses<Mounts[Name]> }>;
  readonly devices: Readonly<
    { [Name in Exclude<keyof BlockDevices, "holder" | "isUnclaimed" | "hold">]: Refuses<BlockDevices[Name]> }
  >;
} = {
  filesystems: { probe: true, isComplete: true, eraseEnds: true, format: true, check: true, grow: true },
  mounts: { mountDevice: true, bindFolder: true, bindDevice: true },
  devices: { setReadOnly: true },
};

/** Never called: what it says is said to the compiler. */
export async function withoutProof(
  found: FoundDevice,
  filesystems: Filesystems,
  mounts: Mounts,
  devices: BlockDevices,
  context: CallContext,
): Promise<void> {
  const readOnly = { readOnly: false };
  // @ts-expect-error -- found, not proven
  await filesystems.probe(found, context);
  // @ts-expect-error -- found, not proven
  await filesystems.format(found, "ext4", { extra: [], lazy: true }, context);
  // @ts-expect-error -- found, not proven
  await filesystems.eraseEnds(found, context);
  // @ts-expect-error -- found, not proven
  await filesystems.check(found, "ext4", context);
  // @ts-expect-error -- found, not proven
  await filesystems.grow(found, "ext4", "/mount", context);
  // @ts-expect-error -- found, not proven
  await mounts.mountDevice(found, "/mount", "ext4", { readOnly: false, flags: [] }, context);
  // @ts-expect-error -- found, not proven
  await mounts.bindFolder(found, "/mount", "/target", readOnly, context);
  // @ts-expect-error -- found, not proven
  await mounts.bindDevice(found, "/target", readOnly, context);
  // @ts-expect-error -- found, not proven
  await devices.setReadOnly(found, true, context);
  // @ts-expect-error -- nobody but the proof makes one
  const made: ProvenDevice = { ...found };
  await filesystems.probe(made, context);
}

Deno.test("nothing that touches a device takes one that was only found", () => {
  const answers = Object.values(provenOnly).flatMap((methods) => Object.values(methods));
  assert.deepEqual(new Set(answers), new Set([true]));
});
