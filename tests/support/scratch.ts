/** A folder of a test's own. */
export interface Scratch extends AsyncDisposable {
  readonly path: string;
}

/** Makes a folder that is removed, with all that is in it, at the end of the block: `await using scratch = …`. */
export async function makeScratch(): Promise<Scratch> {
  // Not in Deno's default folder, which follows TMPDIR: the executable may write only below /tmp.
  const path = await Deno.makeTempDir({ dir: "/tmp", prefix: "rds-csi-test-" });
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}
