import type { Content, Here, Intent, StagingState } from "../../src/volume/model/staging/state.ts";

/** A staging state without its parts: no two of them have a field of one name. */
export type FlatState = { readonly volumeId: string } & Intent & Content & Here;

const content = new Set<string>(
  [
    "header",
    "filesystem",
    "rootOpened",
    "begunOn",
    "seenOn",
    "used",
    "filesystemUuid",
  ] satisfies (keyof Content)[],
);
const here = new Set<string>(
  [
    ...["device", "mountedAs", "staged", "replaying", "published", "notGrown", "missed"] as const,
  ] satisfies (keyof Here)[],
);

/** The fields of a staging state. */
export function flatten({ volumeId, intent, content, here }: StagingState): FlatState {
  return { volumeId, ...intent, ...content, ...here };
}

/** What a state file holds, with other fields; sizes are texts. */
export function changed(file: Readonly<Record<string, object>>, change: Partial<FlatState>): object {
  const { intent, content, here, ...rest } = inParts(change);
  return {
    ...file,
    ...rest,
    intent: { ...file.intent, ...intent },
    content: { ...file.content, ...content },
    here: { ...file.here, ...here },
  };
}

function inParts({ volumeId, ...fields }: Partial<FlatState>) {
  const pick = (isMeant: (name: string) => boolean) =>
    Object.fromEntries(
      Object.entries(fields).filter(([name, value]) => isMeant(name) && value !== undefined),
    );
  return {
    ...volumeId === undefined ? {} : { volumeId },
    intent: pick((name) => !content.has(name) && !here.has(name)),
    content: pick((name) => content.has(name)),
    here: pick((name) => here.has(name)),
  };
}

/** The staging state of those fields. */
export function aStagingState(fields: FlatState): StagingState {
  return inParts(fields) as unknown as StagingState;
}
