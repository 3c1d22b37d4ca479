import { stashName } from "../../node/stage/staging_store.ts";
import { type Finding, fine, problem, warning } from "../../volume/model/finding.ts";
import { type NodeVolume, stashOf } from "./node_volumes.ts";

const check = "volumes";

/** Whether what this node remembers and what it is connected to agree. */
export function judgeVolumes(volumes: readonly NodeVolume[], statePath: string): readonly Finding[] {
  const findings = volumes.flatMap((volume) => judgeVolume(volume, statePath));
  if (findings.length > 0) return findings;
  const staged = volumes.filter((volume) => stashOf(volume)?.staged === true).length;
  return [fine(check, `${staged} staged here, each with its state file and its connection`)];
}

function judgeVolume(volume: NodeVolume, statePath: string): readonly Finding[] {
  const { id, stash, connected } = volume;
  const nqns = connected.map(({ nqn }) => nqn);
  const look = `rds-csi describe ${id}`;
  if (stash === undefined) {
    const found =
      `${id} is connected without a state file: attached by hand, left behind, or another driver's: ` +
      `nqn=${nqns.join(", ")}`;
    return [warning(check, found, `${look}; if nobody uses it: rds-csi detach ${nqns[0]}`)];
  }
  if ("damaged" in stash) {
    return [problem(check, stash.damaged, `${look}; file=${statePath}/volumes/${stashName(id)}`)];
  }
  const others = nqns.filter((nqn) => nqn !== stash.nqn);
  if (others.length > 0) {
    const found = `${id} is connected under another NQN than its state file says: nqn=${others.join(", ")} ` +
      `file=${stash.nqn}`;
    return [problem(check, found, look)];
  }
  if (nqns.length > 0) return [];
  const found = stash.staged
    ? `${id} is staged by its state file, and not connected: the machine was booted, or the connection was given up`
    : `${id} has a state file of a staging that did not end, and is not connected`;
  return [warning(check, found, `${look}; the kubelet stages it again, or unstages it`)];
}
