import type { ControllerConfig } from "../config.ts";
import type { MethodsOf } from "../csi/call.ts";
import { controllerMethods } from "../csi/controller.ts";
import type { ControllerHandlers } from "../csi/generated/csi/v1/Controller.ts";
import type { ControllerEvents } from "../volume/controller_events.ts";
import type { CallContext } from "../volume/ports.ts";
import { openRouter, type RouterSeams } from "./router.ts";
import { controllerWorld } from "./world.ts";

/** A controller that is ready to be served. */
export interface Controller {
  readonly methods: MethodsOf<ControllerHandlers>;
  /** Whether the router can be asked and is fit for this driver, see `VolumeStore.probe()`. */
  ready(context: CallContext): Promise<void>;
  /** Ends what outlived its call, and the connection to the router. */
  close(): Promise<void>;
}

/**
 * The controller of a configuration. Nothing is dialled before the first command.
 *
 * @throws {VolumeError} invalid when a file of credentials cannot be used
 */
export async function openController(
  config: ControllerConfig,
  seams: RouterSeams & { readonly events: ControllerEvents },
): Promise<Controller> {
  const router = await openRouter(config.router, seams, { allowUnfenced: config.settings.allowUnfenced });
  const world = controllerWorld(config, router, seams, seams.log, seams.events);
  return {
    methods: controllerMethods(world),
    ready: (context) => router.probe(context),
    async close() {
      await world.copies.close();
      router.close();
    },
  };
}
