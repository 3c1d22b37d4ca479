import { fileURLToPath } from "node:url";
import { existsSync } from "node:fs";
import { loadPackageDefinition } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import type { ProtoGrpcType } from "./generated/csi.ts";
import { LOADER_OPTIONS } from "./loader_options.ts";
import { VolumeError } from "../volume/errors.ts";

/** The CSI package: for each service a client constructor, whose `service` is what a server registers. */
export type CsiPackage = ProtoGrpcType["csi"]["v1"];

/**
 * Where `proto/csi.proto` lies as seen from this module: from `src/csi/` in the sources, from `dist/` in a bundle, and
 * beside either in what `deno compile --include proto` has embedded.
 */
const CANDIDATES = ["../../proto/csi.proto", "../proto/csi.proto", "./proto/csi.proto"];

/**
 * The proto file of this project.
 *
 * @throws {VolumeError} internal when it is in none of the places where a build puts it
 */
export function defaultProtoPath(base: string = import.meta.url): string {
  const paths = CANDIDATES.map((candidate) => fileURLToPath(new URL(candidate, base)));
  const found = paths.find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new VolumeError("internal", `Cannot find csi.proto: looked for ${paths.join(", ")}`);
}

/** Loads the CSI services as {@linkcode LOADER_OPTIONS} says. Takes some tens of milliseconds: once a process. */
export function loadCsi(protoPath: string = defaultProtoPath()): CsiPackage {
  const definition = loadSync(protoPath, LOADER_OPTIONS);
  return (loadPackageDefinition(definition) as unknown as ProtoGrpcType).csi.v1;
}
