/** A reference from one file of a bundle to another, as the bundler writes it. */
const reference = /"\.\/([^"/]+\.js)"/g;

/**
 * Returns a bundle without traces of the machine it was made on. Packages are named `npm:` wherever the bundler wrote
 * the path of their folder. The files are numbered in the order in which they are reached from the first one, because
 * the bundler names them by a digest that includes those paths.
 *
 * @param files text by name
 * @param entry name of the first file, which it keeps
 * @param packageFolder the beginning of packages' paths, as the bundler writes it
 * @throws {Error} when a file is missing, or one is not reached
 */
export function withoutMachine(
  files: ReadonlyMap<string, string>,
  entry: string,
  packageFolder: string,
): Map<string, string> {
  const names = numbered(files, entry);
  const lost = [...files.keys()].filter((name) => !names.has(name));
  if (lost.length > 0) throw new Error(`Nothing in the bundle leads to ${lost.join(", ")}`);
  const renamed = new Map<string, string>();
  for (const [name, newName] of names) {
    const text = files.get(name)!.replaceAll(packageFolder, "npm:");
    renamed.set(
      newName,
      text.replaceAll(reference, (all, other) => names.has(other) ? `"./${names.get(other)}"` : all),
    );
  }
  return renamed;
}

function numbered(files: ReadonlyMap<string, string>, entry: string): Map<string, string> {
  const names = new Map([[entry, entry]]);
  // A map may grow during its iteration: added names are reached as well.
  for (const name of names.keys()) {
    const text = files.get(name);
    if (text === undefined) throw new Error(`The bundle lacks ${name}`);
    for (const [, other] of text.matchAll(reference)) {
      if (!names.has(other!) && files.has(other!)) names.set(other!, `part${names.size}.js`);
    }
  }
  return names;
}
