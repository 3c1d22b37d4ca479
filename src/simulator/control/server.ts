import { BadRequest, json, NotFound, type Routes, type Simulation } from "./request.ts";
import { editRoutes } from "./edit_routes.ts";
import { faultRoutes } from "./fault_routes.ts";
import { machineRoutes } from "./machine_routes.ts";
import { watchRoutes } from "./watch_routes.ts";

/** All routes of the control port. */
export const routes: Routes = {
  ...watchRoutes,
  ...editRoutes,
  ...machineRoutes,
  ...faultRoutes,
};

/** The HTTP port through which tests inspect and change a router. */
export class ControlServer {
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  constructor(simulation: Simulation, host: string, port: number) {
    this.#server = Deno.serve(
      { hostname: host, port, onListen() {} },
      (request) => answer(request, simulation),
    );
  }

  /** Without slash at the end. */
  get url(): string {
    const { hostname, port } = this.#server.addr;
    return `http://${hostname}:${port}`;
  }

  async close(): Promise<void> {
    await this.#server.shutdown();
  }
}

/**
 * Answers one request: 400 with a sentence for an invalid request, 404 for something missing, 500 for the simulator's
 * own faults.
 */
export async function answer(request: Request, simulation: Simulation): Promise<Response> {
  try {
    const [path = "", ...rest] = new URL(request.url).pathname.slice(1).split("/").map(decodeURIComponent);
    const name = rest.join("/");
    const place = ` /${path}${name === "" ? "" : "/…"}`;
    const here = Object.keys(routes).filter((key) => key.endsWith(place));
    if (here.length === 0) throw new NotFound(`There is nothing at /${path}.`);
    const key = request.method + place;
    if (here.includes(key)) return await routes[key]!.handle(request, simulation, name);
    const methods = here.map((other) => other.slice(0, -place.length)).join(", ");
    return json({ error: `/${path} takes ${methods}, not ${request.method}.` }, 405);
  } catch (error) {
    if (error instanceof BadRequest || error instanceof URIError) return json({ error: error.message }, 400);
    if (error instanceof NotFound) return json({ error: error.message }, 404);
    return json({ error: String(error) }, 500);
  }
}
