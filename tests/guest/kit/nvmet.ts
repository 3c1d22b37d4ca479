import { join } from "node:path";
import { makeLink } from "../../../src/simulator/host/links.ts";
import { systemRandom } from "../../../src/host/random.ts";
import { type ExportAccess, newIdentity } from "../../../src/simulator/model/exports.ts";
import { NvmetExporter } from "../../../src/simulator/model/nvmet_exporter.ts";

/** The folder in which the kernel's target is configured. */
const folder = "/sys/kernel/config/nvmet";
/** All addresses listen on this port. */
export const targetPort = 4420;
/** Ports of the kernel's target are numbered: the exporter names the first address's port after its TCP port. */
const firstOtherPort = 5000;

/** The kernel's NVMe/TCP target in a guest, and everything that can happen to its exports. */
export class NvmetTarget {
  /** Addresses of the guest; each export is reachable at all of them. */
  readonly addresses: readonly string[];
  readonly #exporter: NvmetExporter;
  readonly #accesses = new Map<string, ExportAccess>();

  /** Adds the missing addresses to the loopback interface. */
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

  /** Exports a file or a device, to all hosts or to those. It is a new namespace each time, as on a router. */
  serve(nqn: string, path: string, hosts?: readonly string[], identity = newIdentity(systemRandom)): void {
    const access = { port: targetPort, hosts, sizeBytes: 0n, identity };
    this.#accesses.set(nqn, access);
    this.#exporter.serve(nqn, path, access);
    for (const address of this.addresses.slice(1)) this.link(nqn, address);
  }

  /** Ends an export and starts it again, like a reboot of the router, with its identity or a new one. */
  reboot(nqn: string, path: string, identity: "kept" | "new-per-export"): void {
    this.#exporter.withdraw(nqn);
    if (identity === "kept") this.serveAgain(nqn, path);
    else this.serve(nqn, path, this.#accesses.get(nqn)!.hosts);
  }

  /** Exports a withdrawn file again, to the same hosts and with the same identity. */
  serveAgain(nqn: string, path: string): void {
    const { hosts, identity } = this.#accesses.get(nqn)!;
    this.serve(nqn, path, hosts, identity);
  }

  /** Ends an export; connected hosts are disconnected. */
  withdraw(nqn: string): void {
    this.#exporter.withdraw(nqn);
  }

  /** Removes an export from one address, or from all of them, without ending it. */
  unlink(nqn: string, address?: string): void {
    for (const at of address === undefined ? this.addresses : [address]) Deno.removeSync(this.#link(nqn, at));
  }

  link(nqn: string, address?: string): void {
    for (const at of address === undefined ? this.addresses : [address]) {
      makeLink(join(folder, "subsystems", nqn), this.#link(nqn, at));
    }
  }

  /** Sets which hosts may connect; undefined admits all. */
  allow(nqn: string, hosts: readonly string[] | undefined): void {
    this.#exporter.change(nqn, { ...this.#accesses.get(nqn)!, hosts });
  }

  /** Disables or enables the namespace of an export. */
  setEnabled(nqn: string, enabled: boolean): void {
    write(join(this.#namespace(nqn), "enable"), enabled ? "1" : "0");
  }

  /** Gives the namespace another identity, like a target that does not keep identities. */
  setUuid(nqn: string, uuid: string): void {
    this.setEnabled(nqn, false);
    write(join(this.#namespace(nqn), "device_uuid"), uuid);
    this.setEnabled(nqn, true);
  }

  /** Removes an address, so that packets to it are lost; or adds it again. */
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
