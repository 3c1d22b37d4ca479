import { fileURLToPath } from "node:url";
import { existsSync } from "node:fs";
import { type Client, loadPackageDefinition } from "@grpc/grpc-js";
import { loadSync, type Options } from "@grpc/proto-loader";
import type { ControllerClient, ControllerDefinition } from "../generated/csi/v1/Controller.ts";
import type { IdentityClient, IdentityDefinition } from "../generated/csi/v1/Identity.ts";
import type { NodeClient, NodeDefinition } from "../generated/csi/v1/Node.ts";
import type {
  RegistrationClient,
  RegistrationDefinition,
} from "../generated/pluginregistration/Registration.ts";
import { VolumeError } from "../../volume/errors.ts";

/** A client constructor, whose `service` is what a server registers. */
type Service<ServiceClient, Definition> =
  & (new (...args: ConstructorParameters<typeof Client>) => ServiceClient)
  & { readonly service: Definition };

/** The services of the CSI package that this driver serves. */
export interface CsiPackage {
  readonly Controller: Service<ControllerClient, ControllerDefinition>;
  readonly Identity: Service<IdentityClient, IdentityDefinition>;
  readonly Node: Service<NodeClient, NodeDefinition>;
}

/** The kubelet's registration package, see {@linkcode CsiPackage}. */
export interface RegistrationPackage {
  readonly Registration: Service<RegistrationClient, RegistrationDefinition>;
}

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
  return (loadPackageDefinition(definition) as unknown as { csi: { v1: CsiPackage } }).csi.v1;
}

/** Loads the kubelet's registration service, as {@linkcode loadCsi} does the others. */
export function loadRegistration(): RegistrationPackage {
  const definition = loadSync(defaultProtoPath(import.meta.url, "pluginregistration.proto"), LOADER_OPTIONS);
  return (loadPackageDefinition(definition) as unknown as { pluginregistration: RegistrationPackage })
    .pluginregistration;
}

/**
 * How proto/csi.proto is loaded: camelCase fields, 64 bit integers and enum values as strings, every field
 * present, and the set member of a oneof named by a field. The server loads with these options and the
 * types in generated/ are made with them, so that both always describe the same objects.
 */
export const LOADER_OPTIONS = Object.freeze(
  {
    keepCase: false,
    longs: String,
    enums: String,
    defaults: true,
    oneofs: true,
  } as const satisfies Options,
);
