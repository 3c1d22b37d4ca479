import type { LanPlace } from "./emulator.ts";
import { freeDatagramPorts } from "./ports.ts";

/**
 * A network of up to ten guests, each with a card in it beside the kit's own. The first guest's emulator carries the
 * switch; the others reach it by datagrams on the host's loopback. No connection is kept, so that any guest, the first
 * too, may lose its power and come back, and what a frozen guest does not take is lost, as on a real wire.
 */
export class Lan {
  readonly #names: readonly string[];
  readonly #hub: readonly number[];
  readonly #spokes: readonly number[];

  private constructor(names: readonly string[], hub: readonly number[], spokes: readonly number[]) {
    this.#names = names;
    this.#hub = hub;
    this.#spokes = spokes;
  }

  /** Makes one; the addresses are 10.77.0.1 and following, in the order of the guests' host names. */
  static async make(...names: readonly string[]): Promise<Lan> {
    const others = names.length - 1;
    const ports = await freeDatagramPorts(2 * others);
    return new Lan(names, ports.slice(0, others), ports.slice(others));
  }

  /** The address of a guest in it. */
  address(name: string): string {
    return `10.77.0.${this.#index(name) + 1}`;
  }

  /** What a guest is started with to be in it. */
  place(name: string): LanPlace {
    const index = this.#index(name);
    const hosts = this.#names.map((other) => [this.address(other), other] as const);
    const mac = `52:54:00:77:00:${(index + 1).toString(16).padStart(2, "0")}`;
    const card = (
      backend: string,
    ) => ["-device", `virtio-net-pci,id=lan-card,netdev=${backend},mac=${mac},romfile=`];
    if (index > 0) {
      return {
        address: this.address(name),
        hosts,
        args: [...this.#wire("lan", index - 1, false), ...card("lan")],
      };
    }
    const spokes = this.#hub.flatMap((_, spoke) => [
      ...this.#wire(`wire${spoke}`, spoke, true),
      ...["-netdev", `hubport,id=hub${spoke},hubid=0,netdev=wire${spoke}`],
    ]);
    return {
      address: this.address(name),
      hosts,
      args: [...spokes, "-netdev", "hubport,id=lan,hubid=0", ...card("lan")],
    };
  }

  #wire(id: string, spoke: number, atHub: boolean): string[] {
    const [local, remote] = atHub
      ? [this.#hub[spoke], this.#spokes[spoke]]
      : [this.#spokes[spoke], this.#hub[spoke]];
    const end = (side: string, port: number | undefined) =>
      `${side}.type=inet,${side}.host=127.0.0.1,${side}.port=${port}`;
    return ["-netdev", `dgram,id=${id},${end("local", local)},${end("remote", remote)}`];
  }

  #index(name: string): number {
    const index = this.#names.indexOf(name);
    if (index < 0) throw new Error(`There is no guest ${name} in this network`);
    return index;
  }
}
