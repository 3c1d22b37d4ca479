import { type Finding, fine, type Fix, problem, warning } from "../../volume/model/finding.ts";
import type { StagingState } from "../../volume/model/staging/state.ts";
import { wantsReadOnlyDevice } from "../../volume/model/staging/intent.ts";
import { nodeFixes } from "./fixes.ts";
import type { VolumeView } from "./volume_view.ts";

/** Whether this node's records, devices and mounts agree, of all its volumes: what each is, and what is wrong. */
export function judgeVolumes(views: readonly VolumeView[]): readonly Finding[] {
  const findings = views.flatMap((view) =>
    judgeVolume(view).map((finding) => ({
      ...finding,
      check,
      found: `${view.id}: ${finding.check}: ${finding.found}`,
    }))
  );
  if (findings.length > 0) return findings;
  const staged = views.filter(({ stagingState }) => stagingState?.here.staged === true).length;
  return [fine(check, `${staged} staged here, each with its state file and its connection`)];
}

const check = "volumes";

/**
 * The problems of a volume on this node; none when it is healthy. Besides the node service's rule, whose every reason
 * is a problem, this reports what concerns only a person.
 */
export function judgeVolume(view: VolumeView): readonly Finding[] {
  const { stagingState, damaged } = view;
  if (damaged !== undefined) {
    return [problem("StateDamaged", damaged, nodeFixes.stateDamaged(view.id, view.stateFile))];
  }
  if (stagingState === undefined) {
    const [nqn, ...more] = view.connected.map(({ nqn }) => nqn);
    if (nqn === undefined) {
      const maps = view.others.map(({ path }) => path).join(", ");
      const left = view.deviceUnclear ?? `a map is left of it: ${maps}`;
      return [warning("NoState", `there is no state file and no connection: ${left}`)];
    }
    const found =
      `there is no state file: the volume was attached by hand, left behind, or belongs to another driver: ` +
      `nqn=${[nqn, ...more].join(", ")}`;
    return [warning("NoState", found, nodeFixes.connectionUnowned(view.id, nqn))];
  }
  return [
    ...view.health.map(({ reason, message }) => problem(reason, message, fixes[reason]?.(view.id))),
    ...judgeConnected(view, stagingState),
    ...judgeUse(view, stagingState),
  ];
}

/** What a person can do about a reason, where that is known. */
const fixes: Readonly<Record<string, (id: string) => Fix>> = {
  NotConnected: nodeFixes.notConnected,
  ConnectionLost: nodeFixes.wayToRouter,
  PathLost: nodeFixes.wayToRouter,
  NotMounted: nodeFixes.nextPod,
  TargetMissing: nodeFixes.nextPod,
  TargetMismatch: nodeFixes.nextPod,
  DeviceMissing: nodeFixes.nextPod,
  DeviceWaiting: nodeFixes.deviceRefused,
  DeviceMismatch: nodeFixes.nextPod,
  FilesystemErrors: nodeFixes.kernelLog,
  FilesystemReadOnly: nodeFixes.kernelLog,
  FilesystemShutDown: nodeFixes.kernelLog,
  NotStaged: nodeFixes.stagingUnfinished,
};

function judgeConnected({ id, connected }: VolumeView, stagingState: StagingState): readonly Finding[] {
  const foreign = connected.map(({ nqn }) => nqn).filter((nqn) => nqn !== stagingState.intent.nqn);
  if (foreign.length === 0) return [];
  const found = `it is connected under another epoch than is staged: nqn=${foreign.join(",")} ` +
    `staged=${stagingState.intent.nqn}`;
  return [problem("OtherEpoch", found, nodeFixes.otherName(id))];
}

function judgeUse({ device, users }: VolumeView, stagingState: StagingState): readonly Finding[] {
  const elsewhere = users.flatMap((user) => user.by === "mount" || user.by === "bind" ? [user.at] : []);
  const refusesWrites = device?.readOnly === true &&
    !wantsReadOnlyDevice(stagingState);
  return [
    ...elsewhere.map((path) =>
      warning("MountedElsewhere", `it is mounted or bound where the kubelet did not ask for it: ${path}`)
    ),
    ...refusesWrites
      ? [warning("WritesRefused", "the kernel refuses writes to its device, and the volume is not read-only")]
      : [],
    ...stagingState.content.header === "started"
      ? [warning("HeaderUnfinished", "writing its encryption header began and did not finish")]
      : [],
    ...stagingState.content.filesystem === "started"
      ? [warning("MkfsUnfinished", "mkfs on its device began and did not finish")]
      : [],
  ];
}
