import { join } from "node:path";
import { makeLink } from "../../../src/simulator/host/links.ts";
import { systemRandom } from "../../../src/host/random.ts";
import { type ExportAccess, newIdentity } from "../../../src/simulator/model/exports.ts";
import { NvmetExporter } from "../../../src/simulator/model/nvmet_exporter.ts";

/** Where the kernel's target is configured. */
const folder = "/sys/kernel/config/nvmet";
/** All addresses listen at this port. */
export const targetPort = 4420;
/** Ports of the kernel's target are numbered: the exporter calls the first address's one by its TCP port. */
const firstOtherPort = 5000;

/** The kernel's NVMe/TCP target in a guest, and everything that can happen to what it exports. */
export class NvmetTarget {
  /** Addresses of the guest; each export is reached at all of them. */
  readonly addresses: readonly string[];
  readonly #exporter: NvmetExporter;
  readonly #accesses = new Map<string, ExportAccess>();

  /** Adds to the loopback interface what it lacks of the addresses. */
  constructor(addresses: readonly string[]) {
    this.addresses = addresses;
    this.#exporter = new NvmetExporter({ folder, address: addresses[0]! });
    for (const [index, address] of addresses.entries()) {
      if (!address.startsWith("127.")) this.setReachable(address, true);
      if (index === 0) continue;
      const port = join(folder, "ports", String(firstOtherPort + index));
      Deno.mkdirSync(port);
      const settings = { adrfam: "ipv4", trtype: "tcp", traddr: address, trsvcid: String(targetPort) };
      for (const [name, value] of Object.entries(settings)) write(join(port, `addr_${name}`), value);
    }
  }

  /** Exports a file or a device, to everybody or to those hosts. It is a new namespace each time, as on a router. */
  serve(nqn: string, path: string, hosts?: readonly string[], identity = newIdentity(systemRandom)): void {
    const access = { port: targetPort, hosts, sizeBytes: 0n, identity };
    this.#accesses.set(nqn, access);
    this.#exporter.serve(nqn, path, access);
    for (const address of this.addresses.slice(1)) this.link(nqn, address);
  }

  /** Ends an export and begins it anew, as a reboot of the router does, under its identity or a new one. */
  reboot(nqn: string, path: string, identity: "kept" | "new-per-export"): void {
    this.#exporter.withdraw(nqn);
    if (identity === "kept") this.serveAgain(nqn, path);
    else this.serve(nqn, path, this.#accesses.get(nqn)!.hosts);
  }

  /** Exports again what was withdrawn, to the same hosts and under the same identity. */
  serveAgain(nqn: string, path: string): void {
    const { hosts, identity } = this.#accesses.get(nqn)!;
    this.serve(nqn, path, hosts, identity);
  }

  /** Ends an export; whoever is connected is cut off. */
  withdraw(nqn: string): void {
    this.#exporter.withdraw(nqn);
  }

  /** Takes an export off one address, or off all of them, and keeps it otherwise. */
  unlink(nqn: string, address?: string): void {
    for (const at of address === undefined ? this.addresses : [address]) Deno.removeSync(this.#link(nqn, at));
  }

  link(nqn: string, address?: string): void {
    for (const at of address === undefined ? this.addresses : [address]) {
      makeLink(join(folder, "subsystems", nqn), this.#link(nqn, at));
    }
  }

  /** Says who may connect; undefined lets everybody in. */
  allow(nqn: string, hosts: readonly string[] | undefined): void {
    this.#exporter.change(nqn, { ...this.#accesses.get(nqn)!, hosts });
  }

  /** Takes the namespace out of an export, or puts it back. */
  setEnabled(nqn: string, enabled: boolean): void {
    write(join(this.#namespace(nqn), "enable"), enabled ? "1" : "0");
  }

  /** Gives the namespace another identity, as a target does that does not remember. */
  setUuid(nqn: string, uuid: string): void {
    this.setEnabled(nqn, false);
    write(join(this.#namespace(nqn), "device_uuid"), uuid);
    this.setEnabled(nqn, true);
  }

  /** Takes an address away, so that whatever is sent there is lost; or puts it back. */
  setReachable(address: string, reachable: boolean): void {
    const args = ["addr", reachable ? "replace" : "del", `${address}/32`, "dev", "lo"];
    const { success, stderr } = new Deno.Command("ip", { args }).outputSync();
    if (!success) throw new Error(`ip ${args.join(" ")}: ${new TextDecoder().decode(stderr)}`);
  }

  async close(): Promise<void> {
    await this.#exporter.close();
    for (const { name } of Deno.readDirSync(join(folder, "ports"))) {
      Deno.removeSync(join(folder, "ports", name));
    }
    for (const address of this.addresses.filter((each) => !each.startsWith("127."))) {
      this.setReachable(address, true);
      this.setReachable(address, false);
    }
  }

  #link(nqn: string, address: string): string {
    const index = this.addresses.indexOf(address);
    return join(
      folder,
      "ports",
      String(index === 0 ? targetPort : firstOtherPort + index),
      "subsystems",
      nqn,
    );
  }

  #namespace(nqn: string): string {
    return join(folder, "subsystems", nqn, "namespaces", "1");
  }
}

/** An attribute takes its value in one write. */
function write(path: string, value: string): void {
  Deno.writeTextFileSync(path, value);
}
