import type { KernelFiles } from "../../host/kernel_files.ts";
import type { NodeDeps } from "../../node/deps.ts";
import { readChain } from "../../node/chain/chain.ts";
import { type Finding, fine, skipped } from "../../volume/model/finding.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { NodeVolume } from "./volumes.ts";

const check = "discards";

/**
 * Checks whether the devices of this node's volumes take discards, according to the kernel (Linux,
 * Documentation/ABI/stable/sysfs-block: `queue/discard_max_bytes`, 0 where a device takes none). Only a probe of
 * the router shows what the router does with them.
 *
 * @throws {VolumeError} unavailable when the connections cannot be read
 */
export async function checkDiscards(
  deps: NodeDeps,
  files: Pick<KernelFiles, "readText">,
  volumes: readonly NodeVolume[],
  context: CallContext,
): Promise<Finding> {
  const most = (number: string) => files.readText(`/sys/dev/block/${number}/queue/discard_max_bytes`)?.trim();
  const devices = await Promise.all(
    volumes.flatMap(({ id, connected }) =>
      connected.map(async ({ nqn }) => ({
        id,
        number: (await readChain(deps, nqn, context)).used?.deviceNumber,
      }))
    ),
  );
  const known = devices.flatMap(({ id, number }) => {
    const bytes = number === undefined ? undefined : most(number);
    return bytes === undefined ? [] : [{ id, takesNone: bytes === "0" }];
  });
  if (known.length === 0) return skipped(check, "no volume is connected here");
  const without = known.filter(({ takesNone }) => takesNone).map(({ id }) => id);
  if (without.length === 0) {
    return fine(
      check,
      `${known.length} of ${known.length} devices take them; whether the router then frees room is the answer discard of ` +
        "rds-csi doctor --probe",
    );
  }
  return fine(
    check,
    `${known.length - without.length} of ${known.length} devices take them, so a trim frees nothing of ` +
      without.join(", "),
  );
}
