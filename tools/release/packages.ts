/** A package that is inside the executable. */
export interface Package {
  readonly name: string;
  readonly version: string;
}

/** How a bundle names a file of a package, see `withoutMachine()`. */
const packageFile = /\bnpm:((?:@[\w.-]+\/)?[\w.-]+)\/(\d[\w.+-]*?)(?:_[^/\s"]*)?\//g;

/** The packages of which anything is in a bundle, by name and version. */
export function packagesIn(texts: Iterable<string>): Package[] {
  const found = new Map<string, Package>();
  for (const text of texts) {
    for (const [, name, version] of text.matchAll(packageFile)) {
      found.set(`${name}@${version}`, { name: name!, version: version! });
    }
  }
  return [...found.entries()].toSorted(([a], [b]) => a < b ? -1 : 1).map(([, one]) => one);
}
