import type { OwnMarks } from "./report.ts";

/** What stands for a value that is not recorded. */
export const hidden = "…";

/** What stands for the pool's names and for the base path, in each report alike. */
export const standIn = {
  mountPoint: "pool",
  label: "pool-fs",
  folder: "scratch",
  basePath: "/pool/scratch",
} as const;

/** The names of the owner that a run has to use, and its own ones. */
export interface Names extends OwnMarks {
  /** The pool's slot, mount point and label. */
  readonly slot: string;
  readonly mountPoint: string;
  readonly label: string;
  /** With one leading slash, below the mount point. */
  readonly basePath: string;
}

/** The names of a transcript that was recorded: those of its owner are replaced already. */
export function recordedNames(own: OwnMarks): Names {
  const { mountPoint, label, basePath } = standIn;
  return { ...own, slot: mountPoint, mountPoint, label, basePath };
}

/** Words of RouterOS and of its refusals: they belong to nobody. */
export const publicWords: ReadonlySet<string> = new Set(
  ("a accepted action active active-idle add admin already an and any argument arguments array as at auto bad be been before btrfs busy by " +
    "call can cancelled cannot changed characters clean closing column command complete contains contents copy could crypto degraded " +
    "denied destination device device-mode directory disabled disk disks does dos drive empty end enough error exist " +
    "existing exists expected export ext4 ext3 ext2 exfat fat fat32 failed failure fe file filesystem files first for format full has have " +
    "hardware id idle in input integer interface internal invalid is item items it key label large left length less limit line " +
    "long longer many match max maximum memory menu message messages minimum missing mode mount mounted must name names negative new no not nothing ntfs " +
    "number numbers of off on only or other out parameter part partition path perform permissions permitted pool present " +
    "property raid range read read-auto read-only reason recovering remove removed repair required reserved resize resource resync " +
    "running script set shown sized size slot small smaller snapshot space static stop storage string subvolume such sync " +
    "swap syntax system table terminated than that the there this to too trailing transfer type unable unexpected unknown " +
    "unmount unsupported use used using valid value values volume was while with word write write-pending wrong xfs yes you " +
    "true false stable testing development long-term temperature spare-space reliability-degraded volatile-backup-failed faulty")
    .split(" "),
);

/** Properties whose numbers say what a run has asked for; of other numbers the type alone is recorded. */
export const ownNumbers: ReadonlySet<string> = new Set([
  ...["size", "file-size", "file-offset", "sector-size", "nvme-tcp-server-port"],
]);

/** Properties that name an object: a row in which none of them is the run's own or the pool's is not recorded. */
export const namingProperties = ["slot", "name", "fullname", "file-path", "mount-point"] as const;

/** Properties whose values are words of RouterOS. */
export const wordProperties: ReadonlySet<string> = new Set(["type", "fs", "state", "status", "raid-type"]);

const versionForm =
  /^\d{1,2}\.\d{1,3}(?:\.\d{1,3})?(?:(?:beta|rc)\d{1,3})?(?: \((?:stable|testing|development|long-term)\))?$/;
const boardForm = /^(?:RDS|CCR|CRS|RB|CHR|L|hEX|hAP|x86)[0-9A-Z+-]{0,24}(?=$|[ (])/;

/** A version of RouterOS as a router spells it; hidden in another form. */
export function publicVersion(text: string): string {
  return versionForm.test(text) ? text : hidden;
}

/** The model of a router, without what follows its name; "" for one of another form. */
export function publicBoard(text: string): string {
  return boardForm.exec(text)?.[0] ?? "";
}
