import type { Flag, FlagTable } from "../flags.ts";

/** Why this driver needs no flags for the legacy driver's search for orphans and its attachments. */
const noOrphans = "this driver deletes only what it is asked to delete";
const noAttachments =
  "the router records the holders of a volume; --reconcile sets how the driver compares them with the cluster";

/** Flags of the legacy driver's logging library. */
const logFlags: readonly (readonly [name: string, form: Flag["form"]])[] = [
  ...["v", "stderrthreshold", "vmodule", "log_backtrace_at", "log_dir", "log_file", "log_file_max_size"]
    .map((name) => [name, "text"] as const),
  ...["logtostderr", "alsologtostderr", "add_dir_header", "one_output", "skip_headers", "skip_log_headers"]
    .map((name) => [name, "switch"] as const),
];

/**
 * Flags of the legacy driver for the same hardware that this one ignores, so that its manifests can be kept with this
 * image. Such a flag produces a warning that explains it.
 */
export const legacyFlags: FlagTable = {
  ...ignored(noOrphans, {
    "enable-orphan-reconciler": "switch",
    "orphan-check-interval": "text",
    "orphan-grace-period": "text",
    "orphan-dry-run": "switch",
  }),
  ...ignored(`${noAttachments}; --unexport-grace is how long an export may linger`, {
    "attachment-grace-period": "text",
  }),
  ...ignored(noAttachments, { "attachment-reconcile-interval": "text" }),
  ...ignored("calls for one volume always run one after another", {
    "enable-vmi-serialization": "switch",
    "vmi-cache-ttl": "text",
  }),
  ...ignored(
    "--log-level sets the level, and the log always goes to standard error",
    Object.fromEntries(logFlags),
  ),
};

function ignored(reason: string, forms: Readonly<Record<string, Flag["form"]>>): FlagTable {
  return Object.fromEntries(
    Object.entries(forms).map(([name, form]) => [
      name,
      { form, ignored: reason, help: `Of the legacy driver, without effect: ${reason}.` },
    ]),
  );
}
