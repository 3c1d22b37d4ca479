import { VolumeError } from "../../../volume/errors.ts";
import { type HandleBorder, splitHandle } from "../../../volume/model/handles.ts";
import type { MethodsOf } from "../../server/call.ts";
import type { ControllerHandlers } from "../../generated/csi/v1/Controller.ts";

/** One of several routers, with a controller of its own that knows nothing of the others. */
export interface Backend {
  readonly name: string;
  /** Between its ids and the handles that clients know. */
  readonly border: HandleBorder;
  /** Whether it is meant where no router is named. */
  readonly isDefault: boolean;
  /** Segments that reach it; empty where no topology is configured. */
  readonly topology: Readonly<Record<string, string>>;
  /** The Controller service of this router alone, by bare ids. */
  readonly methods: MethodsOf<ControllerHandlers>;
}

/** A handle's router, and the id that it has there. */
export interface Located {
  readonly backend: Backend;
  readonly id: string;
}

/** All routers of a driver; the one without a prefix first. */
export class Backends {
  readonly all: readonly Backend[];

  /** @param all at least one */
  constructor(all: readonly Backend[]) {
    this.all = all.toSorted((a, b) =>
      a.border.prefix < b.border.prefix ? -1 : a.border.prefix > b.border.prefix ? 1 : 0
    );
  }

  /**
   * The router that a handle is about. An empty one is anybody's: each refuses it.
   *
   * @throws {VolumeError} precondition when it is no router's: whoever took its router out of the file may put it back
   */
  locate(handle: string): Located {
    if (handle === "") return { backend: this.all[0]!, id: "" };
    for (const backend of this.all) {
      const id = backend.border.idOf(handle);
      if (id !== undefined) return { backend, id };
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
  named(name: string): Backend {
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
  only(backend: Backend): Backends {
    return new Backends([backend]);
  }

  /** Their names, for messages. */
  get names(): string {
    return `routers=${this.all.map(({ name }) => name).join(",")}`;
  }

  /**
   * A volume context as the router of its volume takes it. The id says which router it is; one that was made before there
   * was a file may say another name, but not that of another router.
   *
   * @throws {VolumeError} invalid when it says another router
   */
  contextFor(backend: Backend, context: Readonly<Record<string, string>>): Record<string, string> {
    const { backend: said = backend.name } = context;
    if (said !== backend.name && (!backend.isDefault || this.#byName(said) !== undefined)) {
      throw new VolumeError(
        "invalid",
        `Cannot use the volume context as it is another router's than the id: backend=${said.slice(0, 64)} ` +
          `router=${backend.name}`,
      );
    }
    return "backend" in context ? { ...context, backend: backend.name } : { ...context };
  }

  #byName(name: string): Backend | undefined {
    return this.all.find((backend) => backend.name === name);
  }
}
