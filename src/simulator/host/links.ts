import { libcPaths } from "../../host/libc.ts";

/**
 * Makes a symbolic link. The runtime's own function needs permission for every file; without that the C library makes
 * the link, and the caller has to check the folder.
 *
 * @throws {Error} when something exists there already, or the folder cannot be written
 */
export function makeLink(target: string, path: string): void {
  try {
    Deno.symlinkSync(target, path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotCapable)) throw error;
    makeLinkByLibc(target, path);
  }
}

function makeLinkByLibc(target: string, path: string): void {
  const functions = { symlink: { parameters: ["buffer", "buffer"], result: "i32" } } as const;
  const library = Deno.dlopen(libcPaths[Deno.build.arch], functions);
  try {
    const failed = library.symbols.symlink(cString(target), cString(path)) !== 0;
    if (failed) throw new Error(`Cannot make the link ${path}`);
  } finally {
    library.close();
  }
}

function cString(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text + "\0");
}
