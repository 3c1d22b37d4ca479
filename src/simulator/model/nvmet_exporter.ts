import { join, resolve } from "node:path";
import { makeLink } from "../host/links.ts";
import { type ExportAccess, type Exporter, firmware } from "./exports.ts";

/** Options of {@linkcode NvmetExporter}. */
export interface NvmetOptions {
  /** Where the kernel's target is configured: `/sys/kernel/config/nvmet`. */
  readonly folder: string;
  /** The address on which it listens: IPv4, or IPv6 if it contains a colon. */
  readonly address: string;
  /**
   * Removes a folder with the kernel's files in it; on a plain file system that takes more. @default {Deno.removeSync}
   */
  readonly removeFolder?: (path: string) => void;
}

/**
 * Exports through the kernel's own NVMe/TCP target: a subsystem with one namespace for each disk, on the disk's port.
 * It needs root, the modules nvmet and nvmet-tcp, a mounted configfs, and all permissions of the runtime.
 */
export class NvmetExporter implements Exporter {
  readonly #folder: string;
  readonly #address: string;
  readonly #removeFolder: (path: string) => void;
  /** Ports that were made here, and are removed again. */
  readonly #ports = new Set<number>();
  /** The served exports, by NQN. */
  readonly #served = new Map<string, ExportAccess>();

  constructor(options: NvmetOptions) {
    this.#folder = options.folder;
    this.#address = options.address;
    this.#removeFolder = options.removeFolder ?? ((path) => Deno.removeSync(path));
  }

  serve(nqn: string, path: string | undefined, access: ExportAccess): void {
    const subsystem = this.#subsystem(nqn);
    // An NQN that is no file name cannot be served this way.
    if (path === undefined || /^\.{0,2}$|[/\0]/.test(nqn)) return;
    // A subsystem of an earlier run is replaced.
    if (exists(subsystem)) this.#remove(nqn);
    const namespace = join(subsystem, "namespaces", "1");
    this.#served.set(nqn, access);
    Deno.mkdirSync(subsystem, { recursive: true });
    Deno.mkdirSync(namespace, { recursive: true });
    this.#allow(nqn, access.hosts);
    const { uuid, serial } = access.identity;
    Deno.writeTextFileSync(join(subsystem, "attr_serial"), serial);
    Deno.writeTextFileSync(join(subsystem, "attr_model"), "Linux");
    const attribute = join(subsystem, "attr_firmware");
    if (exists(attribute)) Deno.writeTextFileSync(attribute, firmware);
    Deno.writeTextFileSync(join(namespace, "device_uuid"), uuid);
    Deno.writeTextFileSync(join(namespace, "device_path"), resolve(path));
    this.#enable(namespace);
    this.#publish(nqn, access.port);
  }

  /**
   * Without the page cache if possible. On some file systems, such as Btrfs, the page cache answers a part of a write
   * at once and the rest later, which the target treats as an error. A file on an older tmpfs can only be opened with
   * it.
   */
  #enable(namespace: string): void {
    const enableWith = (bufferedIo: "0" | "1") => {
      Deno.writeTextFileSync(join(namespace, "buffered_io"), bufferedIo);
      Deno.writeTextFileSync(join(namespace, "enable"), "1");
    };
    try {
      enableWith("0");
    } catch (error) {
      if ((error as { code?: unknown }).code !== "EINVAL") throw error;
      enableWith("1");
    }
  }

  change(nqn: string, access: ExportAccess): void {
    const before = this.#served.get(nqn);
    if (before === undefined) return;
    this.#served.set(nqn, access);
    if (before.hosts?.join() !== access.hosts?.join()) this.#allow(nqn, access.hosts);
    if (before.sizeBytes !== access.sizeBytes) {
      Deno.writeTextFileSync(join(this.#subsystem(nqn), "namespaces", "1", "revalidate_size"), "1");
    }
    if (before.port === access.port) return;
    this.#unpublish(nqn);
    this.#publish(nqn, access.port);
  }

  /** Removes all hosts from the list, which does not disconnect connected hosts. */
  linger(nqn: string): void {
    if (this.#served.has(nqn)) this.#allow(nqn, []);
  }

  withdraw(nqn: string): void {
    if (this.#served.delete(nqn)) this.#remove(nqn);
  }

  close(): Promise<void> {
    for (const nqn of [...this.#served.keys()]) this.withdraw(nqn);
    return Promise.resolve();
  }

  #remove(nqn: string): void {
    const namespace = join(this.#subsystem(nqn), "namespaces", "1");
    this.#unpublish(nqn);
    this.#allow(nqn, []);
    if (exists(namespace)) {
      Deno.writeTextFileSync(join(namespace, "enable"), "0");
      this.#removeFolder(namespace);
    }
    this.#removeFolder(this.#subsystem(nqn));
  }

  /** Sets which hosts may connect; the kernel accepts no list while all may. */
  #allow(nqn: string, hosts: readonly string[] | undefined): void {
    const subsystem = this.#subsystem(nqn);
    const list = join(subsystem, "allowed_hosts");
    const open = join(subsystem, "attr_allow_any_host");
    Deno.writeTextFileSync(open, "0");
    Deno.mkdirSync(list, { recursive: true });
    for (const { name } of listed(list)) Deno.removeSync(join(list, name));
    if (hosts === undefined) return Deno.writeTextFileSync(open, "1");
    for (const host of hosts) {
      const entry = join(this.#folder, "hosts", host);
      Deno.mkdirSync(entry, { recursive: true });
      makeLink(entry, join(list, host));
    }
  }

  /** The kernel listens on a port as long as something is published there. */
  #publish(nqn: string, port: number): void {
    const folder = this.#port(port);
    if (!exists(folder)) {
      this.#ports.add(port);
      Deno.mkdirSync(folder, { recursive: true });
      const settings = {
        addr_adrfam: this.#address.includes(":") ? "ipv6" : "ipv4",
        addr_trtype: "tcp",
        addr_traddr: this.#address,
        addr_trsvcid: String(port),
      };
      for (const [name, value] of Object.entries(settings)) Deno.writeTextFileSync(join(folder, name), value);
    }
    Deno.mkdirSync(join(folder, "subsystems"), { recursive: true });
    makeLink(this.#subsystem(nqn), join(folder, "subsystems", nqn));
  }

  /** Disconnects every host. A port that was made here and serves nothing any more is removed too. */
  #unpublish(nqn: string): void {
    for (const { name } of listed(join(this.#folder, "ports"))) {
      const subsystems = join(this.#folder, "ports", name, "subsystems");
      if (exists(join(subsystems, nqn))) Deno.removeSync(join(subsystems, nqn));
      if (listed(subsystems).length === 0 && this.#ports.delete(Number(name))) {
        this.#removeFolder(this.#port(Number(name)));
      }
    }
  }

  #subsystem(nqn: string): string {
    return join(this.#folder, "subsystems", nqn);
  }

  /** Ports are named after their number. */
  #port(port: number): string {
    return join(this.#folder, "ports", String(port));
  }
}

function exists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

function listed(folder: string): readonly Deno.DirEntry[] {
  return exists(folder) ? [...Deno.readDirSync(folder)] : [];
}
