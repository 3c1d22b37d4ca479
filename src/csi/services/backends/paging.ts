import { VolumeError } from "../../../volume/errors.ts";
import type { Backend, Backends } from "./backend.ts";

/** A page as a request asks for it. */
export interface PageAsked {
  readonly startingToken: string;
  readonly maxEntries: number;
}

/** A page of one router. */
export interface BackendPage<Entry> {
  readonly entries: readonly Entry[];
  readonly nextToken: string;
}

/** A page that has so many entries is given out before the next router is asked, so that it stays small on the wire. */
const enough = 2_000;

/**
 * One page of a list over all routers, one after the other; the token says which is next, and from where on. A router that
 * cannot be asked fails the page: a list without its volumes would say that they are gone, and whoever attaches by it would
 * take them for detached.
 *
 * @throws {VolumeError} bad-token for a token that was never given out; what asking a router throws
 */
export async function listPage<Entry>(
  backends: Backends,
  asked: PageAsked,
  list: (backend: Backend, page: PageAsked) => Promise<BackendPage<Entry>>,
): Promise<BackendPage<Entry>> {
  const { all } = backends;
  let { index, token } = parseToken(all, asked.startingToken);
  const entries: Entry[] = [];
  for (;;) {
    const backend = all[index]!;
    const maxEntries = asked.maxEntries <= 0 ? asked.maxEntries : asked.maxEntries - entries.length;
    const page = await list(backend, { startingToken: token, maxEntries });
    entries.push(...page.entries);
    if (page.nextToken !== "") return { entries, nextToken: backend.border.prefix + page.nextToken };
    const next = all[++index];
    if (next === undefined) return { entries, nextToken: "" };
    token = "";
    const isFull = entries.length >= (asked.maxEntries > 0 ? Math.min(asked.maxEntries, enough) : enough);
    if (isFull) return { entries, nextToken: next.border.prefix };
  }
}

/** What stands before the router's own token is its prefix. */
function parseToken(all: readonly Backend[], given: string): { index: number; token: string } {
  if (given === "") return { index: 0, token: "" };
  const at = given.indexOf("/") + 1;
  const index = all.findIndex(({ border }) => border.prefix === given.slice(0, at));
  if (index >= 0) return { index, token: given.slice(at) };
  throw new VolumeError(
    "bad-token",
    `Cannot go on listing as the token is not one of this driver's: token=${
      JSON.stringify(given.slice(0, 64))
    }; begin again without one`,
  );
}
