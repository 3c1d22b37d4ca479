import type { Content, Intent, StagingState } from "./state.ts";

/** Whether the next stage of an epoch that allows a format must know it: something was begun, made or used. */
export function isToBeKept({ used, filesystem, header }: Content): boolean {
  return used || filesystem !== "none" || header !== "none";
}

/**
 * What is known of a volume that is wanted in that way. Where the device is handed out raw, the knowledge of the file system
 * ends: from then on its content is data, and no unfinished file system. That it was used stays.
 */
export function contentFor({ kind, map }: Intent, content: Content): Content {
  const { begunOn, ...all } = content;
  const { filesystemUuid: _filesystemUuid, ...raw } = all;
  const header = map === "crypt" ? content.header : "none";
  const known: Content = kind === "block"
    ? { ...raw, header, filesystem: "none", rootOpened: false }
    : { ...all, header };
  const isUnfinished = header === "started" || known.filesystem === "started";
  return begunOn === undefined || !isUnfinished ? known : { ...known, begunOn };
}

/**
 * The staging state for another kind of staging of a volume of which only the record is left: what is wanted, with all that
 * is known of the device and of what lies on it.
 */
export function beginAnew({ intent, content, here, ...rest }: StagingState, wanted: Intent): StagingState {
  const [earlier, now] = [intent.namespaceBytes, wanted.namespaceBytes];
  const mayFormat = intent.mayFormat || wanted.mayFormat;
  const { device, mountedAs } = here;
  return {
    ...rest,
    intent: { ...wanted, mayFormat, namespaceBytes: earlier > now ? earlier : now },
    content: contentFor(wanted, content),
    here: {
      ...device === undefined ? {} : { device },
      ...wanted.kind === "block" || mountedAs === undefined ? {} : { mountedAs },
      staged: false,
      published: [],
    },
  };
}
