import type { Simulation } from "../simulation.ts";

/** Answers one kind of request. `name` is what follows the route's path, decoded; "" when nothing does. */
export type Handler = (
  request: Request,
  simulation: Simulation,
  name: string,
) => Response | Promise<Response>;

/** A method and a path, and who answers. */
export interface Route {
  readonly method: string;
  /** First segment of the path. */
  readonly path: string;
  /** Whether something follows the first segment. */
  readonly named: boolean;
  /** What it does, as a sentence for people. */
  readonly what: string;
  readonly handle: Handler;
}
