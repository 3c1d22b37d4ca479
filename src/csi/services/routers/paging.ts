import { VolumeError } from "../../../volume/errors.ts";
import type { VolumeIdPrefix } from "../../../volume/model/ids/handles.ts";
import { cutPage } from "../../../volume/model/paging.ts";
import type { Router, Routers } from "./routers.ts";

/** The page that a request asks for. */
export interface PageAsked {
  readonly startingToken: string;
  readonly maxEntries: number;
}

/** What is listed, and how clients are shown it. */
export interface Listing<Item extends { readonly id: string }, Entry> {
  /** Reads all items of a router, ordered by id. */
  read(router: Router): Promise<readonly Item[]>;
  describe(ids: VolumeIdPrefix, item: Item): Entry;
  /** Encoded size of one item, in bytes. */
  sizeOf(item: Item): number;
  /** Whether a text has the form of an item's id. @default {that of a volume} */
  readonly isId?: (id: string) => boolean;
}

/** A page with so many entries is returned before the next router is read, so that it stays small on the wire. */
const enough = 2_000;

/**
 * One page of a list over all routers, one router after the other; the token names the next router and the position
 * there. A router that cannot be asked fails the page: without its volumes the list would say that they are gone, and
 * an attacher would take them for detached.
 *
 * @throws {VolumeError} bad-token for a token that was never issued; any error of a router
 */
export async function listPage<Item extends { readonly id: string }, Entry>(
  routers: Routers,
  asked: PageAsked,
  { read, describe, sizeOf, isId }: Listing<Item, Entry>,
): Promise<{ entries: Entry[]; nextToken: string }> {
  const { all } = routers;
  let { index, token } = parseToken(all, asked.startingToken);
  const entries: Entry[] = [];
  for (;;) {
    const router = all[index]!;
    const maxEntries = asked.maxEntries <= 0 ? asked.maxEntries : asked.maxEntries - entries.length;
    const page = await routers.on(router, async () => {
      const request = { token, maxEntries };
      cutPage([], request, sizeOf, isId); // A wrong token or number is refused without a router.
      return cutPage(await read(router), request, sizeOf, isId);
    });
    entries.push(...page.items.map((item) => describe(router.ids, item)));
    if (page.nextToken !== "") return { entries, nextToken: router.ids.text + page.nextToken };
    const next = all[++index];
    if (next === undefined) return { entries, nextToken: "" };
    token = "";
    const isFull = entries.length >= (asked.maxEntries > 0 ? Math.min(asked.maxEntries, enough) : enough);
    if (isFull) return { entries, nextToken: next.ids.text };
  }
}

/** The text before the router's own token is its prefix. */
function parseToken(all: readonly Router[], given: string): { index: number; token: string } {
  if (given === "") return { index: 0, token: "" };
  const at = given.indexOf("/") + 1;
  const index = all.findIndex(({ ids }) => ids.text === given.slice(0, at));
  if (index >= 0) return { index, token: given.slice(at) };
  throw new VolumeError(
    "bad-token",
    "Cannot continue the list because the token does not come from this driver: " +
      `token=${JSON.stringify(given.slice(0, 64))}; begin again without one`,
  );
}
