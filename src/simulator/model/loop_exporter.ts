import { join, relative } from "node:path";
import { makeLink } from "../host/links.ts";
import type { Exporter } from "./exporter.ts";

/**
 * Exports by links: `<folder>/<nqn>` leads to a disk's file exactly while the disk is exported under that NQN. Whoever
 * attaches a loop device through the link obeys the export as an initiator would.
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
    // The link appears whole or not at all, also in place of an older one.
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

  /** An NQN that is no file name cannot be reached this way. */
  #link(nqn: string): string | undefined {
    return /^[^/\0]+$/.test(nqn) && nqn !== "." && nqn !== ".." ? join(this.#folder, nqn) : undefined;
  }
}
