import type { Attachment } from "../volume/ports/projection.ts";
import { annotationPrefix } from "./persistent_volumes.ts";

const names = ["attached-node", "attach-time", "readonly"].map((name) => annotationPrefix + name);

/** The annotations that show who holds a volume: every one of them, null where it is to be taken away. */
export function annotationsFor(attachment: Attachment | undefined): Readonly<Record<string, string | null>> {
  const [node, time, readOnly] = names as [string, string, string];
  if (attachment === undefined) return { [node]: null, [time]: null, [readOnly]: null };
  return {
    [node]: attachment.nodes.join(","),
    // RFC 3339, of whole seconds.
    [time]: new Date(attachment.sinceSeconds * 1000).toISOString().replace(/\.000Z$/, "Z"),
    [readOnly]: String(attachment.readOnly),
  };
}

/** Whether a volume's annotations are so already. */
export function areSo(
  annotations: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string | null>>,
): boolean {
  return Object.entries(wanted).every(([name, value]) => (annotations[name] ?? null) === value);
}
