// Libraries for CycloneDX bring XML validators and serializers for one JSON object, so it is written here.

import { createHash } from "node:crypto";
import type { ChartImage } from "../image/chart_images.ts";
import type { Package } from "./licenses.ts";
import type { Runtime } from "./runtime.ts";

/** The subject of a bill of materials. */
export interface Released {
  readonly version: string;
  readonly commit: string;
  /** The time of the commit, in seconds since the Unix epoch. */
  readonly seconds: number;
  /** Version of the Deno whose runtime is included. */
  readonly deno: string;
  readonly compiler: Compiler;
  /** Its runtimes, one for each platform. */
  readonly runtimes: readonly Runtime[];
  readonly packages: readonly (Package & { readonly license: string })[];
  readonly lock: Lock;
}

/** The Deno that compiled the executable. */
export interface Compiler {
  /** SHA-256 of its file, in hex. */
  readonly digest: string;
  /** Whether it is one that npm checked when it was pinned. */
  readonly isPinned: boolean;
}

/**
 * The bill of materials of the executable, as CycloneDX 1.6: the runtime, and every package with any part in it. The
 * same release gives the same text.
 *
 * @throws {Error} when the lock file does not pin a package
 */
export function billOfMaterials(released: Released): string {
  const own = { ...executableOf(released), properties: [{ name: "commit", value: released.commit }] };
  return billText(own, componentsOf(released), released.seconds, [compilerOf(released)]);
}

function compilerOf({ deno, compiler: { digest, isPinned } }: Released): Component {
  return {
    ...{ type: "application", "bom-ref": `compiler:deno@${deno}`, name: "deno", version: deno },
    hashes: [{ alg: "SHA-256", content: digest }],
    ...isPinned ? {} : { properties: [{ name: "integrity", value: unverified }] },
  };
}

/** What a bill says of an image for whose digest nobody has asked its registry: it may be any image. */
export const unverified = "UNVERIFIED";

/** The bill of materials of the chart, as CycloneDX 1.6: the images that it installs beside the driver's own. */
export function chartBill(
  { version, commit, seconds }: Pick<Released, "version" | "commit" | "seconds">,
  images: readonly ChartImage[],
): string {
  const own = {
    type: "application",
    "bom-ref": `pkg:generic/rds-csi-chart@${version}`,
    name: "rds-csi-chart",
    version,
    properties: [{ name: "commit", value: commit }],
  };
  return billText(own, images.map(imageComponent), seconds);
}

function imageComponent({ name, digest }: ChartImage): Component {
  const [, repository = "", last = "", tag = ""] = /^((?:.*\/)?([^/]+)):([^:]+)$/.exec(name) ?? [];
  const version = digest === undefined ? "" : `@${encodeURIComponent(digest)}`;
  const purl = `pkg:oci/${last}${version}?repository_url=${encodeURIComponent(repository)}&tag=${tag}`;
  return {
    ...{ type: "container", "bom-ref": purl, name: last, version: tag, purl },
    ...digest === undefined
      ? { properties: [{ name: "digest", value: unverified }] }
      : { hashes: [{ alg: "SHA-256", content: digest.replace("sha256:", "") }] },
  };
}

/** One component of a bill, in CycloneDX's form. */
export interface Component {
  readonly type: string;
  readonly "bom-ref": string;
  readonly name: string;
  readonly version: string;
  readonly [field: string]: unknown;
}

/** The executable as a component. */
export function executableOf({ version }: Released): Component {
  return {
    type: "application",
    "bom-ref": `pkg:github/rds-csi/rds-csi@${version}`,
    name: "rds-csi",
    version,
    licenses: licensed("Apache-2.0"),
  };
}

/**
 * The components in the executable: the runtimes of its platforms first.
 *
 * @throws {Error} when the lock file does not pin a package
 */
export function componentsOf({ deno, runtimes, packages, lock }: Released): Component[] {
  return [
    ...runtimes.map(({ architecture, digest }) => {
      const purl = `pkg:generic/deno@${deno}?arch=${architecture}`;
      const hashes = [{ alg: "SHA-256", content: digest }];
      const own = { type: "application", "bom-ref": purl, name: "deno", version: deno };
      return { ...own, purl, licenses: licensed("MIT"), hashes };
    }),
    ...packages.map((one) => ({
      type: "library",
      "bom-ref": purlOf(one),
      name: one.name,
      version: one.version,
      purl: purlOf(one),
      licenses: licensed(one.license),
      hashes: [{ alg: "SHA-512", content: digestIn(lock, one) }],
    })),
  ];
}

/**
 * A bill of materials as CycloneDX 1.6, whose serial number follows from the rest.
 *
 * @param seconds when its subject was made, since the Unix epoch
 * @param tools what made it; none where nothing is said of that
 */
export function billText(
  own: Component,
  components: readonly Component[],
  seconds: number,
  tools: readonly Component[] = [],
): string {
  const bill = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      timestamp: new Date(seconds * 1000).toISOString(),
      ...tools.length === 0 ? {} : { tools: { components: tools } },
      component: own,
    },
    components,
    dependencies: [{ ref: own["bom-ref"], dependsOn: components.map((component) => component["bom-ref"]) }],
  };
  const digest = createHash("sha256").update(JSON.stringify(bill)).digest("hex");
  return JSON.stringify({ ...bill, serialNumber: `urn:uuid:${uuidOf(digest)}` }, null, 2) + "\n";
}

/** https://github.com/package-url/purl-spec: the scope's at sign is escaped. */
function purlOf({ name, version }: Package): string {
  return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}

function licensed(license: string) {
  return [/ (?:OR|AND|WITH) /.test(license) ? { expression: license } : { license: { id: license } }];
}

/** A UUID of version 8 (RFC 9562, section 5.8) from a digest. */
function uuidOf(digest: string): string {
  const hex = `${digest.slice(0, 12)}8${digest.slice(13, 16)}8${digest.slice(17, 32)}`;
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** The used fields of deno.lock. */
export interface Lock {
  readonly npm: Readonly<Record<string, { readonly integrity: string }>>;
}

/**
 * The SHA-512 of a package's archive in the lock file, in hex.
 *
 * @throws {Error} when the lock does not contain the package
 */
export function digestIn(lock: Lock, { name, version }: Package): string {
  const key = `${name}@${version}`;
  // The versions of peers follow an underscore.
  const found = Object.entries(lock.npm).find(([known]) => known === key || known.startsWith(`${key}_`));
  const [, base64] = /^sha512-(.+)$/.exec(found?.[1].integrity ?? "") ?? [];
  if (base64 === undefined) throw new Error(`deno.lock has no digest of ${key}, which is in the bundle`);
  return Array.from(atob(base64), (byte) => byte.charCodeAt(0).toString(16).padStart(2, "0")).join("");
}
