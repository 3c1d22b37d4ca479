import { resourceQuery } from "../../routeros/store/queries.ts";
import { isAtLeast, parseResource, type RouterInfo } from "../../routeros/console/router_info.ts";
import type { RouterCheck } from "./check.ts";
import { type Finding, fine, problem, warning } from "../../volume/model/finding.ts";

const check = "version";
const upgrade = "/system/package/update/install";

/** Whether the RouterOS is new enough, and for what it is not. */
export const versionCheck: RouterCheck = {
  name: check,
  essential: true,
  async run(router, { allowUnfenced }) {
    const { info } = parseResource(await router.read(check, resourceQuery));
    return [judgeVersion(info, allowUnfenced)];
  },
};

/**
 * What a version can and cannot do for this driver.
 *
 * @param allowUnfenced whether the operator lives with nodes that cannot be fenced
 */
export function judgeVersion(
  { version, board, supported, supportsNqn }: RouterInfo,
  allowUnfenced: boolean,
): Finding {
  const found = board === "" ? version : `${version} on ${board}`;
  if (!supported) return problem(check, `${found}: too old, as 7.17 is needed, and 7.21 to publish`, upgrade);
  const lacks = [
    ...(supportsNqn ? [] : [
      "an export has no NQN of its own (7.21), so that no node could be fenced: publishing is " +
      (allowUnfenced ? "allowed by --allow-unfenced" : "refused"),
    ]),
    ...(isAtLeast(version, 7, 18) ? [] : ["no Btrfs subvolumes (7.18): no snapshots by them"]),
    ...(isAtLeast(version, 7, 23) ? [] : ["no /file copy (7.23): no snapshots and clones but on Btrfs"]),
  ];
  if (lacks.length === 0) return fine(check, found);
  const text = `${found}: ${lacks.join("; ")}`;
  return supportsNqn || allowUnfenced ? warning(check, text, upgrade) : problem(check, text, upgrade);
}
