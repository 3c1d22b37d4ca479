import { type Driver, type DriverPlace, makeController } from "./driver.ts";
import { type SidecarPlace, Sidecars } from "./sidecars.ts";

/** One pod of the controller: the driver, and its own set of sidecars. */
export class Replica {
  readonly pod: string;
  readonly driver: Driver;
  readonly #sidecars: Sidecars;

  private constructor(pod: string, driver: Driver, sidecars: Sidecars) {
    this.pod = pod;
    this.driver = driver;
    this.#sidecars = sidecars;
  }

  /** Prepares one; nothing runs yet. */
  static async prepare(
    place: DriverPlace & Omit<SidecarPlace, "socket" | "pod">,
    pod: string,
  ): Promise<Replica> {
    const driver = await makeController(place, place.kubeconfig, pod);
    return new Replica(pod, driver, new Sidecars({ ...place, socket: driver.socket, pod }));
  }

  /** Starts all of it. */
  async start(signal: AbortSignal): Promise<void> {
    await this.driver.start(signal);
    this.#sidecars.start();
  }

  /** How often its sidecars have ended by themselves, and were started again. */
  get sidecarRestarts(): number {
    return this.#sidecars.restarts;
  }

  /** SIGTERM to all of it at once, as a kubelet does; answers what was wrong with the driver's end. */
  async stop(): Promise<readonly string[]> {
    const [problems] = await Promise.all([this.driver.stop(), this.#sidecars.stop()]);
    return problems;
  }
}
