/** One of upstream's suites of storage tests. */
export interface UpstreamSuite {
  /** How it is called in names of specifications. */
  readonly name: string;
  /** The test patterns of it that are run together, where all at once would take long. */
  readonly part?: string;
  /** Whether its volumes are of a file system that is grown here: not everywhere can a mounted ext4 be. */
  readonly grows?: true;
  /** Whether it looks below /var/lib/kubelet, where only one node's pods can be found. */
  readonly isBelowKubelet?: true;
  /** A specification that runs a pod with a volume, or more, and passes wherever the suite counts as passed. */
  readonly mustPass: RegExp;
}

/** The suites that are run, in the order in which they are started: the longest first, but for the one that is alone. */
export const upstreamSuites: readonly UpstreamSuite[] = [
  {
    name: "volumeMode",
    isBelowKubelet: true,
    mustPass: /should not mount \/ map unused volumes in a pod/,
  },
  { name: "multiVolume", part: "block volmode", mustPass: onAnotherNode() },
  { name: "multiVolume", part: "filesystem volmode", mustPass: onAnotherNode() },
  { name: "multiVolume", part: "ext4", mustPass: onAnotherNode() },
  { name: "multiVolume", part: "xfs|ntfs", mustPass: onAnotherNode() },
  { name: "provisioning", grows: true, mustPass: /should provision storage with pvc data source$/ },
  { name: "subPath", mustPass: /should support existing directory$/ },
  { name: "snapshottable", mustPass: /check restore correctly works after modifying source data/ },
  {
    name: "volume-expand",
    grows: true,
    mustPass: /should resize volume when PVC is edited while pod is using it/,
  },
  { name: "volumes", mustPass: /should store data$/ },
  { name: "read-write-once-pod", mustPass: /should block a second pod/ },
];

function onAnotherNode(): RegExp {
  return /access to two volumes with the same volume mode .* on different node/;
}

/** What Ginkgo is to look for in names, and how a report's names are told to belong to the suite. */
export function suitePattern({ name, part }: UpstreamSuite): RegExp {
  const patterns = part === undefined ? "" : `\\((${part})\\)`;
  return new RegExp(`External Storage .*${patterns}\\](?: \\[\\S+\\])* ${name} `);
}

/** A suite's name, with the part of it, as one word. */
export function titleOf({ name, part }: UpstreamSuite): string {
  return part === undefined ? name : `${name}-${part.split(/\W/)[0]}`;
}

/** Specifications of these suites that none of their parts has, of all whose names are given. */
export function uncovered(suites: readonly UpstreamSuite[], names: readonly string[]): readonly string[] {
  const patterns = suites.map(suitePattern);
  const whole = suites.map(({ name }) => suitePattern({ name, mustPass: /./ }));
  return names.filter((name) =>
    whole.some((one) => one.test(name)) && !patterns.some((one) => one.test(name))
  );
}
