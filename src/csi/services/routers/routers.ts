import { VolumeError } from "../../../volume/errors.ts";
import type { ControllerDeps } from "../../../controller/deps.ts";
import { splitHandle, type VolumeIdPrefix } from "../../../volume/model/ids.ts";
import type { CallContext } from "../../../volume/ports/system.ts";
import type { UnaryHandler } from "../../server/call.ts";

/** A router whose volumes the Controller service serves. Its controller knows nothing of the other routers. */
export interface Router {
  readonly name: string;
  /** Translates between the ids of its controller and those that clients know. */
  readonly ids: VolumeIdPrefix;
  /** Whether it is meant where no router is named. */
  readonly isDefault: boolean;
  /** Segments that reach it; empty where no topology is configured. */
  readonly topology: Readonly<Record<string, string>>;
  readonly deps: ControllerDeps;
}

/** The router that an id is about, and the id that it has there. */
export interface Located {
  readonly router: Router;
  readonly id: string;
}

/** Serves a call on its router: by the id that the router knows. */
export type RouterHandler<Req, Res> = (at: Located, request: Req, context: CallContext) => Promise<Res>;

/** All routers of a driver; the one without a prefix first. */
export class Routers {
  readonly all: readonly Router[];

  /** @param all at least one; the only one may have no name that ids carry, see `VolumeIdPrefix.none` */
  constructor(all: readonly Router[]) {
    this.all = all.toSorted((a, b) => a.ids.text < b.ids.text ? -1 : a.ids.text > b.ids.text ? 1 : 0);
  }

  /** Whether the routers have names in --config; the only router of the flags is always meant. */
  get areNamed(): boolean {
    return this.all[0]!.ids.isOfSeveral;
  }

  /**
   * The router that an id is about. An empty one is anybody's: each refuses it.
   *
   * @throws {VolumeError} precondition when it is no router's: whoever took its router out of the file may put it back
   */
  locate(handle: string): Located {
    if (handle === "") return { router: this.all[0]!, id: "" };
    for (const router of this.all) {
      const id = router.ids.strip(handle);
      if (id !== undefined) return { router, id };
    }
    const { backend: name } = splitHandle(handle);
    const reason = name === ""
      ? "it has no prefix, and --config has no default router"
      : this.#byName(name) !== undefined
      ? "ids of the default router have no prefix"
      : "no router of that name is in --config";
    throw new VolumeError(
      "precondition",
      `Cannot find the router of the id because ${reason}: id=${handle.slice(0, 128)} ${this.names}`,
    );
  }

  /** The router of that name. @throws {VolumeError} invalid when there is none */
  named(name: string): Router {
    const found = this.#byName(name);
    if (found !== undefined) return found;
    throw new VolumeError(
      "invalid",
      `Cannot use the parameter: backend=${JSON.stringify(name.slice(0, 64))}; use one of ${this.names}`,
    );
  }

  /** One of them alone. */
  only(router: Router): Routers {
    return new Routers([router]);
  }

  /** Their names, for messages. */
  get names(): string {
    return `routers=${this.all.map(({ name }) => name).join(",")}`;
  }

  /** What a call about an id locks, so that nothing is locked for an id of no router. @throws as {@linkcode Routers.locate} */
  lockKey(handle: string): string {
    this.locate(handle);
    return handle;
  }

  /** Makes a handler of one that serves a call on the router of a volume. */
  byVolume<Req extends { readonly volumeId: string }, Res>(
    handler: RouterHandler<Req, Res>,
  ): UnaryHandler<Req, Res> {
    return this.byId(({ volumeId }) => volumeId, handler);
  }

  /** As {@linkcode Routers.byVolume}, by another field of the request. */
  byId<Req, Res>(idOf: (request: Req) => string, handler: RouterHandler<Req, Res>): UnaryHandler<Req, Res> {
    return async (request, context) => {
      const at = this.locate(idOf(request));
      return await this.on(at.router, () => handler(at, request, context));
    };
  }

  /** Asks one router. What it refuses is reported with its name, because ids in the text have no prefix. */
  async on<T>(router: Router, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      // A fault of this driver keeps its stack for the log.
      if (!this.areNamed || !VolumeError.is(error) || error.kind === "internal") throw error;
      throw new VolumeError(error.kind, `${error.message} (router ${router.name})`, { cause: error.cause });
    }
  }

  /**
   * A volume context as the router of its volume takes it. The id says which router it is; one that was made before there
   * was a file may say another name, but not that of another router.
   *
   * @throws {VolumeError} invalid when it says another router
   */
  contextFor(router: Router, context: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    const { backend: said = router.name } = context;
    if (!this.areNamed || said === router.name) return context;
    if (!router.isDefault || this.#byName(said) !== undefined) {
      throw new VolumeError(
        "invalid",
        `Cannot use the volume context because its router differs from the id's: backend=${
          said.slice(0, 64)
        } ` +
          `router=${router.name}`,
      );
    }
    return { ...context, backend: router.name };
  }

  #byName(name: string): Router | undefined {
    return this.all.find((router) => router.name === name);
  }
}

/** What a request says of where a volume may be. */
interface Wanted {
  readonly parameters: Readonly<Record<string, string>>;
  /** Handle of what it is to be made from; undefined for an empty one. */
  readonly source: string | undefined;
  /** Segments of places from which it has to be reachable, at least one of them, the better first; empty for anywhere. */
  readonly locations: readonly Readonly<Record<string, string>>[];
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
      `Cannot make a volume from a source on another router: backend=${chosen?.name} source=${wanted.source} is on ${source.name}`,
    );
  }
  const found = chosen ?? byPlaces(routers, wanted.locations) ?? fallback(routers);
  if (reaches(found, wanted.locations)) return found;
  throw new VolumeError(
    "exhausted",
    `Cannot create the volume because its router is outside of the requested topology: backend=${found.name} ` +
      `topology=${JSON.stringify(found.topology)} wanted=${JSON.stringify(wanted.locations).slice(0, 400)}`,
  );
}

/** Whether one of the places reaches the router; any does that is configured for none. */
export function reaches(
  { topology }: Router,
  locations: readonly Readonly<Record<string, string>>[],
): boolean {
  const segments = Object.entries(topology);
  if (locations.length === 0 || segments.length === 0) return true;
  return locations.some((location) => segments.every(([key, value]) => location[key] === value));
}

function byPlaces(routers: Routers, locations: Wanted["locations"]): Router | undefined {
  const withTopology = routers.all.filter(({ topology }) => Object.keys(topology).length > 0);
  // Of several that one place reaches the default one, then by name.
  const inOrder = withTopology.toSorted((a, b) => Number(b.isDefault) - Number(a.isDefault));
  for (const location of locations) {
    const found = inOrder.find((router) => reaches(router, [location]));
    if (found !== undefined) return found;
  }
  return undefined;
}

function fallback(routers: Routers): Router {
  const found = routers.all.length === 1 ? routers.all[0] : routers.all.find(({ isDefault }) => isDefault);
  if (found !== undefined) return found;
  throw new VolumeError(
    "invalid",
    `Cannot choose a router for the volume: set backend in the StorageClass to name it, or make one router the ` +
      `default in --config: ${routers.names}`,
  );
}
