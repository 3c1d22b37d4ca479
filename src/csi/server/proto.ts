import { fileURLToPath } from "node:url";
import { existsSync } from "node:fs";
import { loadPackageDefinition } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import type { ProtoGrpcType } from "../generated/csi.ts";
import type { ProtoGrpcType as RegistrationTypes } from "../generated/pluginregistration.ts";
import { LOADER_OPTIONS } from "./loader_options.ts";
import { VolumeError } from "../../volume/errors.ts";

/** The CSI package: for each service a client constructor, whose `service` is what a server registers. */
export type CsiPackage = ProtoGrpcType["csi"]["v1"];

/** The kubelet's registration package, see {@linkcode CsiPackage}. */
export type RegistrationPackage = RegistrationTypes["pluginregistration"];

/**
 * Where `proto/` lies as seen from this module: from `src/csi/server/` in the sources, from `dist/bundle/` in the
 * executable, which embeds both, and beside a bundle that is brought into a guest.
 */
const CANDIDATES = ["../../../proto", "../../proto", "./proto"];

/**
 * A proto file of this project, by default csi.proto.
 *
 * @throws {VolumeError} internal when it is in none of the places where a build puts it
 */
export function defaultProtoPath(base: string = import.meta.url, file = "csi.proto"): string {
  const paths = CANDIDATES.map((folder) => fileURLToPath(new URL(`${folder}/${file}`, base)));
  const found = paths.find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new VolumeError("internal", `Cannot find ${file}: looked for ${paths.join(", ")}`);
}

/** Loads the CSI services as {@linkcode LOADER_OPTIONS} says. Takes some tens of milliseconds: once a process. */
export function loadCsi(protoPath: string = defaultProtoPath()): CsiPackage {
  const definition = loadSync(protoPath, LOADER_OPTIONS);
  return (loadPackageDefinition(definition) as unknown as ProtoGrpcType).csi.v1;
}

/** Loads the kubelet's registration service, as {@linkcode loadCsi} does the others. */
export function loadRegistration(): RegistrationPackage {
  const definition = loadSync(defaultProtoPath(import.meta.url, "pluginregistration.proto"), LOADER_OPTIONS);
  return (loadPackageDefinition(definition) as unknown as RegistrationTypes).pluginregistration;
}
