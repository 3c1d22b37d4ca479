import { VolumeError } from "../../../volume/errors.ts";
import type { ControllerDeps } from "../../../controller/deps.ts";
import { isHandle, splitHandle, type VolumeIdPrefix } from "../../../volume/model/ids/handles.ts";
import type { CallContext } from "../../../volume/ports/system.ts";
import type { UnaryHandler } from "../../server/call.ts";

/** A router whose volumes the Controller service serves. Its controller knows nothing of the other routers. */
export interface Router {
  readonly name: string;
  /** Translates between the ids of its controller and those of clients. */
  readonly ids: VolumeIdPrefix;
  /** Whether it is the router of requests that name none. */
  readonly isDefault: boolean;
  /** Topology segments that can reach it; empty where no topology is configured. */
  readonly topology: Readonly<Record<string, string>>;
  readonly deps: ControllerDeps;
}

/** The router of an id, and the id on that router. */
export interface Located {
  readonly router: Router;
  readonly id: string;
}

/** Serves a call on its router, with the router's own id. */
export type RouterHandler<Req, Res> = (at: Located, request: Req, context: CallContext) => Promise<Res>;

/** All routers of a driver; the one without a prefix first. */
export class Routers {
  readonly all: readonly Router[];

  /** @param all at least one; an only router must not have a name in its ids, see `VolumeIdPrefix.none` */
  constructor(all: readonly Router[]) {
    this.all = all.toSorted((a, b) => a.ids.text < b.ids.text ? -1 : a.ids.text > b.ids.text ? 1 : 0);
  }

  /** Whether the routers have names from --config; an only router from flags serves every request. */
  get areNamed(): boolean {
    return this.all[0]!.ids.isOfSeveral;
  }

  /**
   * The router of an id. An empty id may go to any router: each refuses it.
   *
   * @throws {VolumeError} precondition when the id belongs to no router: its router may be added to the file again
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

  /** This router alone. */
  only(router: Router): Routers {
    return new Routers([router]);
  }

  /** The names of the routers, for messages. */
  get names(): string {
    return `routers=${this.all.map(({ name }) => name).join(",")}`;
  }

  /**
   * The lock key of an id; throws for an id of no router, so that nothing is locked for it. @throws as {@linkcode
   * Routers.locate}
   */
  lockKey(handle: string): string {
    this.locate(handle);
    return handle;
  }

  /** Makes a handler that serves each call on its volume's router. */
  byVolume<Req extends { readonly volumeId: string }, Res>(
    handler: RouterHandler<Req, Res>,
  ): UnaryHandler<Req, Res> {
    return this.byId(({ volumeId }) => volumeId, handler);
  }

  /**
   * Like {@linkcode Routers.byVolume}, for a call that takes a volume down. An id of a form that no volume of any router
   * has is done at once: otherwise its object, which a person has made, could never be deleted.
   */
  teardown<Req extends { readonly volumeId: string }, Res>(
    handler: RouterHandler<Req, Res>,
    done: Res,
  ): { readonly lockKey: (request: Req) => string; readonly handler: UnaryHandler<Req, Res> } {
    const isNone = ({ volumeId }: Req) => volumeId !== "" && !isHandle(volumeId);
    const served = this.byVolume(handler);
    return {
      lockKey: (request) => isNone(request) ? request.volumeId : this.lockKey(request.volumeId),
      handler: async (request, context) => isNone(request) ? done : await served(request, context),
    };
  }

  /** Like {@linkcode Routers.byVolume}, with another field of the request. */
  byId<Req, Res>(idOf: (request: Req) => string, handler: RouterHandler<Req, Res>): UnaryHandler<Req, Res> {
    return async (request, context) => {
      const at = this.locate(idOf(request));
      return await this.on(at.router, () => handler(at, request, context));
    };
  }

  /** Runs work on one router. Its errors get the router's name, because ids in their text have no prefix. */
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
   * A volume context for the router of its volume. The id names the router. A context that was made before there was a
   * file may have another name, but not that of another router.
   *
   * @throws {VolumeError} invalid when it names another router
   */
  contextFor(router: Router, context: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    const { backend: said = router.name } = context;
    if (!this.areNamed || said === router.name) return context;
    if (!router.isDefault || this.#byName(said) !== undefined) {
      throw new VolumeError(
        "invalid",
        "Cannot use the volume context because its router differs from the id's: " +
          `backend=${said.slice(0, 64)} router=${router.name}`,
      );
    }
    return { ...context, backend: router.name };
  }

  #byName(name: string): Router | undefined {
    return this.all.find((router) => router.name === name);
  }
}

/** Where a request wants a new volume. */
interface Wanted {
  readonly parameters: Readonly<Record<string, string>>;
  /** Handle of its source; undefined for an empty volume. */
  readonly source: string | undefined;
  /**
   * Topology segments of which at least one has to reach the volume, in order of preference; empty for no requirement.
   */
  readonly locations: readonly Readonly<Record<string, string>>[];
}

/**
 * The router for a new volume: the one that the StorageClass names, or its source's, or the first one that the wanted
 * topology reaches, or the default one. The same request always leads to the same router.
 *
 * @throws {VolumeError} invalid when none is named, or the source is another router's; exhausted when the topology does
 *   not reach it; precondition when the source is no router's
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

/** Whether one of the segments reaches the router; all do if no topology is configured for it. */
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
  // If one segment reaches several routers, the default one comes first, then by name.
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
