import { VolumeError } from "../errors.ts";
import { isVolumeId } from "./ids/ids.ts";

/** The largest page in bytes, well under the 4 MiB that gRPC clients accept by default. */
export const maxPageBytes = 3 << 20;

const tokenPrefix = "after:";

/** One page of a listing that is ordered by id. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** Empty on the last page. */
  readonly nextToken: string;
}

/** The page that a client requests. */
export interface PageRequest {
  /** The token that a client sent back; empty for the first page. */
  readonly token: string;
  /** 0 for as many as fit. */
  readonly maxEntries: number;
}

/**
 * Cuts a page out of items ordered by id. A token names the last id of the page before, so that pages stay correct
 * while items come and go: no item appears twice, and none that stays is missed.
 *
 * @param sizeOf encoded size of one item, in bytes
 * @param isId whether a text has the form of an item's id
 * @throws {VolumeError} bad-token for a token that was never issued, invalid for a negative number of entries
 */
export function cutPage<Item extends { readonly id: string }>(
  items: readonly Item[],
  request: PageRequest,
  sizeOf: (item: Item) => number,
  isId: (id: string) => boolean = isVolumeId,
): Page<Item> {
  if (request.maxEntries < 0) {
    throw new VolumeError(
      "invalid",
      `Cannot list a negative number of entries: max_entries=${request.maxEntries}`,
    );
  }
  const after = parseToken(request.token, isId);
  const rest = after === undefined ? items : items.filter((item) => item.id > after);
  let bytes = 0;
  let count = 0;
  for (const item of rest) {
    if (request.maxEntries > 0 && count === request.maxEntries) break;
    bytes += sizeOf(item);
    if (bytes > maxPageBytes && count > 0) break;
    count++;
  }
  const page = rest.slice(0, count);
  return { items: page, nextToken: count < rest.length ? tokenPrefix + page[count - 1]!.id : "" };
}

function parseToken(token: string, isId: (id: string) => boolean): string | undefined {
  if (token === "") return undefined;
  const id = token.startsWith(tokenPrefix) ? token.slice(tokenPrefix.length) : "";
  if (isId(id)) return id;
  throw new VolumeError(
    "bad-token",
    "Cannot continue the list because the token does not come from this driver: " +
      `token=${JSON.stringify(token.slice(0, 64))}; start again without a token`,
  );
}
