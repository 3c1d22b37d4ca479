import { VolumeError } from "../../src/volume/errors.ts";
import type { CallContext } from "../../src/volume/ports/system.ts";
import type { PathInfo, Paths } from "../../src/volume/ports/node_ports.ts";

/** A node of a {@linkcode FakePaths}. */
export interface FakeNode {
  readonly kind: PathInfo["kind"];
  readonly deviceNumber?: string;
  readonly text?: string;
  readonly mode?: number;
  /** The target of a link. */
  readonly to?: string;
}

/** Folders and files made of a map. */
export class FakePaths implements Paths {
  readonly nodes = new Map<string, FakeNode>([["/", { kind: "directory" }]]);
  /** Called before each change, with its name and path; a test may throw from it. */
  before: (operation: string, path: string) => void = () => {};

  info(path: string, context: CallContext): Promise<PathInfo | undefined> {
    return this.#attempt("info", path, () => {
      context.signal.throwIfAborted();
      const node = this.nodes.get(path);
      if (node === undefined) return undefined;
      return node.deviceNumber === undefined
        ? { kind: node.kind }
        : { kind: node.kind, deviceNumber: node.deviceNumber };
    });
  }

  ownInfo(path: string, context: CallContext): Promise<PathInfo | undefined> {
    return this.info(path, context);
  }

  mountPoint(path: string): Promise<string> {
    return Promise.resolve(path);
  }

  realPath(path: string): Promise<string | undefined> {
    const node = this.nodes.get(path);
    if (node?.kind !== "link") return Promise.resolve(node && path);
    return Promise.resolve(node.to !== undefined && this.nodes.has(node.to) ? node.to : undefined);
  }

  makeFolder(path: string, mode: number): Promise<void> {
    return this.#attempt("makeFolder", path, () => this.#makeFolders(path, mode));
  }

  makeFile(path: string, mode: number): Promise<void> {
    return this.#attempt("makeFile", path, () => {
      if (!this.nodes.has(path)) this.#put(path, { kind: "file", text: "", mode });
    });
  }

  setMode(path: string, mode: number): Promise<void> {
    return this.#attempt("setMode", path, () => this.#put(path, { ...this.#get(path), mode }));
  }

  writeFile(path: string, text: string, mode: number): Promise<void> {
    return this.#attempt("writeFile", path, () => this.#put(path, { kind: "file", text, mode }));
  }

  readFile(path: string): Promise<string | undefined> {
    return Promise.resolve(this.nodes.get(path)?.text);
  }

  removeEmptyFolder(path: string): Promise<void> {
    return this.#attempt("removeEmptyFolder", path, () => {
      const node = this.nodes.get(path);
      if (node === undefined) return;
      if (node.kind !== "directory" || this.#children(path).length > 0) {
        throw new VolumeError("precondition", `Cannot remove ${path} because it is not an empty folder`);
      }
      this.nodes.delete(path);
    });
  }

  removeEmptyFile(path: string): Promise<void> {
    return this.#attempt("removeEmptyFile", path, () => {
      const node = this.nodes.get(path);
      if (node === undefined) return;
      if (node.kind !== "file" || node.text !== "") {
        throw new VolumeError("precondition", `Cannot remove ${path} because it is not an empty file`);
      }
      this.nodes.delete(path);
    });
  }

  removeFile(path: string): Promise<void> {
    return this.#attempt("removeFile", path, () => {
      if (this.nodes.get(path)?.kind === "directory") {
        throw new VolumeError("precondition", `${path} is a folder`);
      }
      this.nodes.delete(`${path}.new`); // The temporary file of an interrupted write.
      this.nodes.delete(path);
    });
  }

  list(path: string): Promise<readonly string[]> {
    return Promise.resolve(this.#children(path));
  }

  // deno-lint-ignore require-await -- a throw becomes a rejection, as it would in earnest
  async #attempt<T>(operation: string, path: string, action: () => T): Promise<T> {
    this.before(operation, path);
    return action();
  }

  #get(path: string): FakeNode {
    const node = this.nodes.get(path);
    if (node === undefined) throw new Error(`nothing at ${path}`);
    return node;
  }

  #put(path: string, node: FakeNode): void {
    const parent = parentOf(path);
    if (this.nodes.get(parent)?.kind !== "directory") throw new Error(`no folder at ${parent}`);
    this.nodes.set(path, node);
  }

  #makeFolders(path: string, mode: number): void {
    const node = this.nodes.get(path);
    if (node?.kind === "directory") return;
    if (node !== undefined) throw new Error(`no folder at ${path}`);
    this.#makeFolders(parentOf(path), mode);
    this.nodes.set(path, { kind: "directory", mode });
  }

  #children(path: string): readonly string[] {
    return [...this.nodes.keys()].filter((other) => other !== "/" && parentOf(other) === path)
      .map((other) => other.slice(path.length + 1));
  }
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}
