import { decodeHandle, encodeHandle } from "../../volume/model/ids/handles.ts";

const ending = ".json";

/** The name of a volume's file in a state folder. No two volumes share one, and the id can be read from it. */
export function stateFileName(volumeId: string): string {
  return `${encodeHandle(volumeId)}${ending}`;
}

/** The volumes of the files of a state folder. */
export function idsOf(names: readonly string[]): string[] {
  return names.filter((name) => name.endsWith(ending)).map((name) =>
    decodeHandle(name.slice(0, -ending.length))
  );
}
