import { join, relative } from "node:path";
import type { Clock } from "../../volume/ports/system.ts";
import { NvmeTarget } from "../nvme/target.ts";
import { type Exporter, noExporter } from "./exports.ts";
import { NvmetExporter } from "./nvmet_exporter.ts";
import { makeLink } from "../host/links.ts";

/** How exported disks can be reached: not at all, as links to files, from this process, or from the kernel. */
export const exporterKinds = ["none", "loop", "tcp", "nvmet"] as const;
/** One of {@linkcode exporterKinds}. */
type ExporterKind = typeof exporterKinds[number];

/** Where the content of exported disks is, and how they are reached. */
export interface ExporterOptions {
  /** Folder for real sparse files; without it everything is in memory. */
  readonly backingDirectory?: string;
  /** `loop` links exported disks in `<backingDirectory>/exports`. @default {"none"} */
  readonly exporter?: ExporterKind;
  /** Address of the NVMe port, for `tcp` and `nvmet`. @default {"127.0.0.1"} */
  readonly nvmeHost?: string;
  /** The one port on which `tcp` serves disks that name it; 0 chooses a free one. @default {0} */
  readonly nvmePort?: number;
  /** Size of the blocks of what `tcp` serves, in bytes. @default {512} */
  readonly nvmeBlockBytes?: 512 | 4096;
  /** The configuration folder of the kernel's target, for `nvmet`. @default {"/sys/kernel/config/nvmet"} */
  readonly nvmetFolder?: string;
}

/**
 * Makes the exporter that the options name.
 *
 * @throws {RangeError} when it needs real files and there are none.
 */
export function makeExporter(options: ExporterOptions, clock: Clock): Exporter {
  const { exporter = "none", nvmeHost: host = "127.0.0.1" } = options;
  switch (exporter) {
    case "none":
      return noExporter;
    case "loop":
      return new LoopExporter(join(backingOf(options, exporter), "exports"));
    case "tcp":
      return new NvmeTarget({ clock, host, port: options.nvmePort ?? 0, blockBytes: options.nvmeBlockBytes });
    case "nvmet":
      backingOf(options, exporter);
      return new NvmetExporter({ folder: options.nvmetFolder ?? "/sys/kernel/config/nvmet", address: host });
  }
}

function backingOf({ backingDirectory }: ExporterOptions, exporter: ExporterKind): string {
  if (backingDirectory !== undefined) return backingDirectory;
  throw new RangeError(`The exporter ${exporter} needs a backing directory.`);
}

/**
 * Exports by links: `<folder>/<nqn>` links to a disk's file exactly while the disk is exported under that NQN. A user
 * who attaches a loop device through the link obeys the export as an initiator would.
 */
export class LoopExporter implements Exporter {
  readonly #folder: string;

  /** @param folder is made if it is missing; links from an earlier run are removed. */
  constructor(folder: string) {
    this.#folder = folder;
    Deno.mkdirSync(folder, { recursive: true });
    for (const entry of Deno.readDirSync(folder)) {
      if (entry.isSymlink) Deno.removeSync(join(folder, entry.name));
    }
  }

  serve(nqn: string, path: string | undefined): void {
    const link = this.#link(nqn);
    if (link === undefined || path === undefined) return;
    // The link appears at once, also in place of an older one.
    const draft = `${link}.new`;
    makeLink(relative(this.#folder, path), draft);
    Deno.renameSync(draft, link);
  }

  withdraw(nqn: string): void {
    const link = this.#link(nqn);
    if (link === undefined) return;
    try {
      Deno.removeSync(link);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }

  /** Undefined for an NQN that is no file name: it cannot be reached this way. */
  #link(nqn: string): string | undefined {
    return /^[^/\0]+$/.test(nqn) && nqn !== "." && nqn !== ".." ? join(this.#folder, nqn) : undefined;
  }
}
