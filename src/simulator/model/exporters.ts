import { join } from "node:path";
import type { Clock } from "../../volume/ports/ports.ts";
import { NvmeTarget } from "../nvme/target.ts";
import { type Exporter, noExporter } from "./exporter.ts";
import { LoopExporter } from "./loop_exporter.ts";
import { NvmetExporter } from "./nvmet_exporter.ts";

/** How exported disks can be reached: not at all, as links to files, from this process, or from the kernel. */
export const exporterKinds = ["none", "loop", "tcp", "nvmet"] as const;
/** One of {@linkcode exporterKinds}. */
export type ExporterKind = typeof exporterKinds[number];

/** Where the bytes of exported disks are, and how they are reached. */
export interface ExporterOptions {
  /** Folder for real sparse files; without one everything is in memory. */
  readonly backingDirectory?: string;
  /** `loop` links exported disks in `<backingDirectory>/exports`. @default {"none"} */
  readonly exporter?: ExporterKind;
  /** Address of the NVMe port, for `tcp` and `nvmet`. @default {"127.0.0.1"} */
  readonly nvmeHost?: string;
  /** The one port on which `tcp` serves disks, those that name it; 0 takes any free one. @default {0} */
  readonly nvmePort?: number;
  /** Whether `tcp` tells connected hosts of a disk that has grown. @default {true} */
  readonly announceGrowth?: boolean;
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
      return new NvmeTarget({
        clock,
        host,
        port: options.nvmePort ?? 0,
        announceGrowth: options.announceGrowth ?? true,
      });
    case "nvmet":
      backingOf(options, exporter);
      return new NvmetExporter({ folder: options.nvmetFolder ?? "/sys/kernel/config/nvmet", address: host });
  }
}

function backingOf({ backingDirectory }: ExporterOptions, exporter: ExporterKind): string {
  if (backingDirectory !== undefined) return backingDirectory;
  throw new RangeError(`The exporter ${exporter} needs a backing directory.`);
}
