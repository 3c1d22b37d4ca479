import { VolumeError } from "../../../volume/errors.ts";
import type { Router, Routers } from "./routers.ts";

/** What a request says of where a volume may be. */
export interface Wanted {
  readonly parameters: Readonly<Record<string, string>>;
  /** Handle of what it is to be made from; undefined for an empty one. */
  readonly source: string | undefined;
  /** Segments of places from which it has to be reachable, at least one of them, the better first; empty for anywhere. */
  readonly places: readonly Readonly<Record<string, string>>[];
}

/**
 * The router that a new volume goes to: the one that the StorageClass names, or its source's, or the first one that the
 * wanted places reach, or the default one. The same request always leads to the same router.
 *
 * @throws {VolumeError} invalid when none is meant, or the source is another router's; exhausted when the places do not
 * reach it; precondition when the source is no router's
 */
export function chooseRouter(routers: Routers, wanted: Wanted): Router {
  if (!routers.areNamed) return routers.all[0]!;
  const named = wanted.parameters["backend"];
  const source = wanted.source === undefined ? undefined : routers.locate(wanted.source).router;
  const chosen = named === undefined ? source : routers.named(named);
  if (source !== undefined && chosen !== source) {
    throw new VolumeError(
      "invalid",
      `Cannot make a volume from one of another router: backend=${chosen?.name} source=${wanted.source} is on ${source.name}`,
    );
  }
  const found = chosen ?? byPlaces(routers, wanted.places) ?? fallback(routers);
  if (reaches(found, wanted.places)) return found;
  throw new VolumeError(
    "exhausted",
    `Cannot make the volume where it can be reached from the wanted places: backend=${found.name} ` +
      `topology=${JSON.stringify(found.topology)} wanted=${JSON.stringify(wanted.places).slice(0, 400)}`,
  );
}

/** Whether one of the places reaches the router; any does that is configured for none. */
export function reaches(
  { topology }: Router,
  places: readonly Readonly<Record<string, string>>[],
): boolean {
  const segments = Object.entries(topology);
  if (places.length === 0 || segments.length === 0) return true;
  return places.some((place) => segments.every(([key, value]) => place[key] === value));
}

function byPlaces(routers: Routers, places: Wanted["places"]): Router | undefined {
  const withTopology = routers.all.filter(({ topology }) => Object.keys(topology).length > 0);
  // Of several that one place reaches the default one, then by name.
  const inOrder = withTopology.toSorted((a, b) => Number(b.isDefault) - Number(a.isDefault));
  for (const place of places) {
    const found = inOrder.find((router) => reaches(router, [place]));
    if (found !== undefined) return found;
  }
  return undefined;
}

function fallback(routers: Routers): Router {
  const found = routers.all.length === 1 ? routers.all[0] : routers.all.find(({ isDefault }) => isDefault);
  if (found !== undefined) return found;
  throw new VolumeError(
    "invalid",
    `Cannot tell which router the volume is to be on: the StorageClass has to name it as backend, or one has to be the ` +
      `default one in --config: ${routers.names}`,
  );
}
