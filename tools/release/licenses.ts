// Licence checkers read node_modules, and this has to cover what the bundler has put into the executable, so it is
// written here.

import { join } from "node:path";
import { runtimeLicenses } from "./runtime_licenses.ts";

/** A package with its path and the licence under which it is distributed. */
export interface Licensed extends Package {
  /** SPDX id or expression. */
  readonly license: string;
  /** The texts that must be distributed with it. */
  readonly notices: readonly string[];
}

const noticeFile = /^(licen[cs]e|copying|notice|unlicense)([.-]|$)/i;

/**
 * Reads a package's licence from its folder.
 *
 * @throws {Error} when the package does not name its licence
 */
export async function readLicense(one: Package, folder: string): Promise<Licensed> {
  const described = JSON.parse(await Deno.readTextFile(join(folder, "package.json"))) as Described;
  const license = licenseOf(described);
  if (license === undefined) throw new Error(`${one.name}@${one.version} does not say its licence`);
  const names = (await Array.fromAsync(Deno.readDir(folder), ({ name }) => name)).filter((name) =>
    noticeFile.test(name)
  );
  const notices = await Promise.all(names.toSorted().map((name) => Deno.readTextFile(join(folder, name))));
  return { ...one, license, notices };
}

interface Described {
  readonly license?: string | { readonly type?: string };
  readonly licenses?: readonly { readonly type?: string }[];
}

/** Old packages have an object, or a list. */
function licenseOf({ license, licenses }: Described): string | undefined {
  if (typeof license === "string") return license;
  return license?.type ?? licenses?.[0]?.type;
}

/** One text with the licences of everything in the executable. */
export function noticesOf(packages: readonly Licensed[]): string {
  const parts = packages.map(({ name, version, license, notices }) => {
    const text = notices.length > 0
      ? notices.map((notice) => notice.replaceAll("\r", "").trim()).join("\n\n")
      : `The package has no text of its licence, which it says is ${license}.`;
    return `${name} ${version} (${license})\n\n${text}\n`;
  });
  const head = "rds-csi is licensed under the Apache License 2.0. Its executable contains Deno " +
    "(https://github.com/denoland/deno, where everything in it is listed), with V8, and of these packages:\n";
  return [head, runtimeLicenses, ...parts].join(`\n${"-".repeat(80)}\n\n`);
}

/** A package in the executable. */
export interface Package {
  readonly name: string;
  readonly version: string;
}

/** A bundle's name for a file of a package, see `withoutMachine()`. */
const packageFile = /\bnpm:((?:@[\w.-]+\/)?[\w.-]+)\/(\d[\w.+-]*?)(?:_[^/\s"]*)?\//g;

/** The packages with any part in a bundle, by name and version. */
export function packagesIn(texts: Iterable<string>): Package[] {
  const found = new Map<string, Package>();
  for (const text of texts) {
    for (const [, name, version] of text.matchAll(packageFile)) {
      found.set(`${name}@${version}`, { name: name!, version: version! });
    }
  }
  return [...found.entries()].toSorted(([a], [b]) => a < b ? -1 : 1).map(([, one]) => one);
}
