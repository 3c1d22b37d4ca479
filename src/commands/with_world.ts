import type { ControllerConfig } from "../config.ts";
import type { ControllerWorld } from "../controller/world.ts";
import { createLogger } from "../telemetry/log.ts";
import { stderrSink } from "../telemetry/log_stderr.ts";
import type { CallContext, Clock, Random } from "../volume/ports.ts";
import type { CommandIo } from "./io.ts";
import { openRouter } from "./router.ts";
import { withinTime } from "./within_time.ts";
import { controllerWorld } from "./world.ts";

/** A command that does once what a controller could do. */
export interface WorldRun {
  /** Stands in the log in place of a request's id. */
  readonly name: string;
  readonly config: ControllerConfig;
  /** How long it may take, in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Lends a controller's world to a command, and ends the connection to the router afterwards.
 *
 * @throws {VolumeError} deadline when the time is up, cancelled when it was stopped; whatever `work` rejects with
 */
export async function withControllerWorld<T>(
  { name, config, timeoutMs }: WorldRun,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  io: CommandIo,
  work: (world: ControllerWorld, context: CallContext) => Promise<T>,
): Promise<T> {
  const log = createLogger({ clock, sink: stderrSink(), level: "warn" });
  const { allowUnfenced } = config.settings;
  const seams = { clock, random, log, readText: Deno.readTextFile };
  const router = await openRouter(config.router, seams, { allowUnfenced });
  const world = controllerWorld(config, router, seams, log);
  try {
    return await withinTime(name, { io, clock, timeoutMs }, (context) => work(world, context));
  } finally {
    await world.copies.close();
    router.close();
  }
}
