import { type Stash, wantsReadOnlyDevice } from "../../volume/model/staging_state.ts";
import { type Finding, problem, warning } from "../../volume/model/finding.ts";
import type { VolumeView } from "./view.ts";

/**
 * What is wrong with a volume on this node; nothing when it is healthy. Beside the node service's rule, of which every
 * reason is a problem, this tells what concerns a person only.
 */
export function judgeView(view: VolumeView): readonly Finding[] {
  const { stash, damaged } = view;
  if (damaged !== undefined) return [problem("StateDamaged", damaged)];
  if (stash === undefined) {
    const found = "there is no state file: attached by hand, left behind, or another driver's";
    return [warning("NoState", found, `if nobody uses it: rds-csi detach ${view.id}`)];
  }
  return [
    ...view.health.map(({ reason, message }) => problem(reason, message, fixes[reason])),
    ...judgeConnected(view, stash),
    ...judgeUse(view, stash),
  ];
}

const router = "rds-csi doctor --node looks at the way to the router";
const restart = "the pod has to be started anew, so that the kubelet stages and publishes the volume again";

/** What a person can do, where that is known. */
const fixes: Readonly<Record<string, string>> = {
  NotConnected: router,
  ConnectionLost: router,
  PathLost: router,
  NotMounted: restart,
  TargetMissing: restart,
  TargetMismatch: restart,
  DeviceMismatch: restart,
  FilesystemReadOnly: "see the kernel's log (dmesg); once that is resolved, the pod has to be started anew",
  FilesystemShutDown: "see the kernel's log (dmesg); once that is resolved, the pod has to be started anew",
  NotStaged: "the kubelet goes on with it",
};

function judgeConnected({ connected }: VolumeView, stash: Stash): readonly Finding[] {
  const foreign = connected.map(({ nqn }) => nqn).filter((nqn) => nqn !== stash.nqn);
  if (foreign.length === 0) return [];
  return [
    problem("OtherEpoch", `it is connected under another epoch than is staged: nqn=${foreign.join(",")}`),
  ];
}

function judgeUse({ device, mounts }: VolumeView, stash: Stash): readonly Finding[] {
  const elsewhere = mounts.filter(({ role }) => role === "elsewhere").map(({ path }) => path);
  const refusesWrites = device?.readOnly === true && !wantsReadOnlyDevice(stash);
  return [
    ...elsewhere.map((path) =>
      warning("MountedElsewhere", `it is mounted or bound where the kubelet did not ask for it: ${path}`)
    ),
    ...refusesWrites
      ? [warning("WritesRefused", "the kernel refuses writes to its device, and the volume is not read-only")]
      : [],
    ...stash.mkfs === "started"
      ? [warning("MkfsUnfinished", "making its file system began and did not end")]
      : [],
  ];
}
