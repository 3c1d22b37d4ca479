import { VolumeError } from "../../../volume/errors.ts";
import type { ControllerWorld } from "../../../controller/deps.ts";
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
  readonly world: ControllerWorld;
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
      ? "it has no prefix, and no router of --config is the default one"
      : this.#byName(name) !== undefined
      ? "ids of the default router have no prefix"
      : "no router of that name is in --config";
    throw new VolumeError(
      "precondition",
      `Cannot tell which router the id is about as ${reason}: id=${handle.slice(0, 128)} ${this.names}`,
    );
  }

  /** The router of that name. @throws {VolumeError} invalid when there is none */
  named(name: string): Router {
    const found = this.#byName(name);
    if (found !== undefined) return found;
    throw new VolumeError(
      "invalid",
      `Cannot use the parameter: backend=${
        JSON.stringify(name.slice(0, 64))
      }; allowed is one of ${this.names}`,
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
        `Cannot use the volume context as it is another router's than the id: backend=${said.slice(0, 64)} ` +
          `router=${router.name}`,
      );
    }
    return { ...context, backend: router.name };
  }

  #byName(name: string): Router | undefined {
    return this.all.find((router) => router.name === name);
  }
}
