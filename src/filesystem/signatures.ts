import { complaint, type Processes } from "../host/processes.ts";
import type { CallContext, DeviceProbe, ProvenDevice } from "../volume/ports/ports.ts";

/**
 * What blkid finds on the device when it reads it, without its cache.
 *
 * Exit codes of `blkid -p` (blkid(8)): 0 found, 2 nothing found *or* not readable, 8 several contradictory ones. That
 * the device can be read has to be known from elsewhere.
 */
export async function findSignature(
  device: ProvenDevice,
  processes: Processes,
  context: CallContext,
): Promise<DeviceProbe["signature"]> {
  const result = await processes.run("blkid", {
    args: ["-p", "-o", "export", "--", device.path],
    signal: context.signal,
    subject: device.path,
    timeoutMs: 30_000,
  });
  switch (result.code) {
    case 0:
      return { state: "found", type: signatureType(result.stdout) };
    case 2:
      return { state: "none" };
    case 8:
      return { state: "found", type: "several contradictory signatures" };
    default:
      return { state: "unknown", reason: `blkid ${complaint(result)}` };
  }
}

function signatureType(output: string): string {
  const values = new Map(
    output.split("\n").map((line) => {
      const at = line.indexOf("=");
      return [line.slice(0, at), line.slice(at + 1)] as const;
    }),
  );
  const type = values.get("TYPE");
  if (type !== undefined) return type;
  const table = values.get("PTTYPE");
  return table === undefined ? "a signature without a type" : `a ${table} partition table`;
}
