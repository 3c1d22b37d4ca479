/** Specifications of the upstream tests that cannot run on this rig, and why. */
export interface Exclusion {
  /** Matches their full names. */
  readonly specs: RegExp;
  /** As it is read after a number of specifications. */
  readonly why: string;
}

/** What upstream's own tests say when they skip themselves, and what that means here. */
export interface Scope {
  readonly message: RegExp;
  /** Which specifications may say so; all when it is not given. */
  readonly specs?: RegExp;
  readonly why: string;
}

/** Everything that is left out. A specification that is not in this list and does not pass is a failure. */
export const exclusions: readonly Exclusion[] = [
  {
    specs: /Dynamic PV \(default fs\)\] subPath .*while kubelet is down/,
    why: "stop a kubelet by SSH and systemd, which nodes of this rig have not: suite drain kills kubelets",
  },
  {
    specs: /Dynamic PV \(default fs\)\] provisioning .*with any volume data source/,
    why: "run a volume populator and its validator, whose images only a registry has",
  },
  {
    specs:
      /Dynamic PV \((filesystem volmode|ext4|xfs)\)\] .*multiVolume .*the single volume from pods on different node/,
    why:
      "want a file system that two nodes write to, which the driver refuses: upstream knows RWX for both kinds or none",
  },
];

/** Reasons for which upstream's specifications skip themselves, in its words. Any other one is a failure. */
export const outOfScope: readonly Scope[] = [
  {
    message: /support volume type "?(InlineVolume|PreprovisionedPV)/,
    why: "about volumes of drivers inside Kubernetes",
  },
  { message: /does(n't| not) support "?ntfs/, why: "about Windows" },
  { message: /doesn't support ext3/, why: "about ext3, which the driver does not make" },
  {
    message: new RegExp(
      "^(Block volumes do not support mount options|skipping multiple PV mount test for block mode|" +
        "Test is not valid for Block volume mode|Test for Block volumes is not implemented)",
    ),
    why: "written for file systems only, by themselves skipped for block volumes",
  },
  {
    message: /^Filesystem volume case should be covered by block volume case/,
    why: "of both volume modes at once, by themselves skipped for all but one",
  },
  {
    message: /^Driver "[^"]+" does not support snapshots/,
    specs: /Dynamic PV \(filesystem volmode\)\] multiVolume /,
    why: "of snapshots and of a pattern for which upstream has none",
  },
  {
    message: /^volume type "\w+" is (not )?ephemeral/,
    why: "written for either persistent or ephemeral volumes, by themselves skipped for the others",
  },
];

/** The same for the driver of shared directories. */
export const directoryScopes: readonly Scope[] = [
  {
    message: /doesn't support Block -- skipping$|does not provide raw block - skipping$/,
    why: "about raw block volumes, of which a directory is none",
  },
  { message: /doesn't support (ext4|xfs) -- skipping$/, why: "about a file system of the volume's own" },
  {
    message:
      /does not support (populating data from snapshot|volume snapshots|snapshots|cloning|volume clone)/,
    why: "about snapshots and clones, which directories do not have",
  },
];
