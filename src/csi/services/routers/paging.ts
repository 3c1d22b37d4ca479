import { VolumeError } from "../../../volume/errors.ts";
import type { Router, Routers } from "./routers.ts";

/** The page that a request asks for. */
export interface PageAsked {
  readonly startingToken: string;
  readonly maxEntries: number;
}

/** A page of one router. */
export interface RouterPage<Entry> {
  readonly entries: readonly Entry[];
  readonly nextToken: string;
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
export async function listPage<Entry>(
  routers: Routers,
  asked: PageAsked,
  list: (router: Router, page: PageAsked) => Promise<RouterPage<Entry>>,
): Promise<{ entries: Entry[]; nextToken: string }> {
  const { all } = routers;
  let { index, token } = parseToken(all, asked.startingToken);
  const entries: Entry[] = [];
  for (;;) {
    const router = all[index]!;
    const maxEntries = asked.maxEntries <= 0 ? asked.maxEntries : asked.maxEntries - entries.length;
    const page = await routers.on(router, () => list(router, { startingToken: token, maxEntries }));
    entries.push(...page.entries);
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
    `Cannot continue the list because the token does not come from this driver: token=${
      JSON.stringify(given.slice(0, 64))
    }; begin again without one`,
  );
}
