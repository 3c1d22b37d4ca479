import { Buffer } from "node:buffer";
import { fileURLToPath } from "node:url";
import { existsSync } from "node:fs";
import type { MethodDefinition, Options } from "@grpc/proto-loader";
// The package's internal loading step: its public function also describes every message for reflection, which takes as
// long again.
import { addCommonProtos, loadProtosWithOptionsSync } from "@grpc/proto-loader/build/src/util.js";
import type { ControllerRpcs, IdentityRpcs, NodeRpcs } from "../generated/csi.ts";
import type { RegistrationRpcs } from "../generated/pluginregistration.ts";
import { VolumeError } from "../../volume/errors.ts";

/** The messages of every method of a service, as its generated interface has them. */
export type Messages<Service> = {
  readonly [Name in keyof Service]: { readonly request: unknown; readonly response: unknown };
};

/** A service as a server registers it, and a client calls it: how each of its methods is encoded and decoded. */
export type Definition<Service extends Messages<Service>> = {
  readonly [Name in keyof Service]: Callable<
    MethodDefinition<
      Sent<Service[Name]["request"]>,
      Sent<Service[Name]["response"]>,
      Service[Name]["request"],
      Service[Name]["response"]
    >
  >;
};

/** The part of a method that a call needs, without its description for reflection. */
type Callable<Method> = Omit<Method, "originalName" | "requestType" | "responseType" | "options">;

/**
 * A message to send: a missing field has the default of its type. The generated types are those of received messages.
 */
export type Sent<T> = T extends readonly (infer Item)[] ? readonly Sent<Item>[]
  : T extends object ? { readonly [Field in keyof T]?: Sent<T[Field]> }
  : T;

/** The services of the CSI package that this driver serves. */
export interface CsiPackage {
  readonly Controller: Definition<ControllerRpcs>;
  readonly Identity: Definition<IdentityRpcs>;
  readonly Node: Definition<NodeRpcs>;
}

/**
 * Where `proto/` is relative to this module: from `src/csi/server/` in the sources, from `dist/bundle/` in the
 * executable, which embeds both, and beside a bundle in a guest.
 */
const CANDIDATES = ["../../../proto", "../../proto", "./proto"];

/**
 * A proto file of this project, by default csi.proto.
 *
 * @throws {VolumeError} internal when it is not where a build puts it
 */
export function defaultProtoPath(base: string = import.meta.url, file = "csi.proto"): string {
  const paths = CANDIDATES.map((folder) => fileURLToPath(new URL(`${folder}/${file}`, base)));
  const found = paths.find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new VolumeError("internal", `Cannot find ${file}: looked for ${paths.join(", ")}`);
}

/**
 * Loads the CSI services with {@linkcode LOADER_OPTIONS}. Takes some tens of milliseconds, so each process does it
 * once.
 */
export function loadCsi(protoPath: string = defaultProtoPath()): CsiPackage {
  const root = loadDefinitions(protoPath);
  return {
    Controller: serviceOf(root, "csi.v1.Controller"),
    Identity: serviceOf(root, "csi.v1.Identity"),
    Node: serviceOf(root, "csi.v1.Node"),
  };
}

/** Loads the kubelet's registration service, like {@linkcode loadCsi} the others. */
export function loadRegistration(): Definition<RegistrationRpcs> {
  const root = loadDefinitions(defaultProtoPath(import.meta.url, "pluginregistration.proto"));
  return serviceOf(root, "pluginregistration.Registration");
}

type Root = ReturnType<typeof loadProtosWithOptionsSync>;
type Message = ReturnType<Root["lookupType"]>;

function loadDefinitions(protoPath: string): Root {
  addCommonProtos(); // google/protobuf/descriptor.proto is not among the parser's own files.
  return loadProtosWithOptionsSync(protoPath, LOADER_OPTIONS);
}

function serviceOf<Service extends Messages<Service>>(root: Root, name: string): Definition<Service> {
  const service = root.lookupService(name);
  const methods = service.methodsArray.map((method) => {
    const { requestStream = false, responseStream = false } = method;
    const request = service.lookupType(method.requestType);
    const response = service.lookupType(method.responseType);
    const definition: Callable<MethodDefinition<object, object>> = {
      path: `/${name}/${method.name}`,
      requestStream,
      responseStream,
      requestSerialize: encoder(request),
      requestDeserialize: decoder(request),
      responseSerialize: encoder(response),
      responseDeserialize: decoder(response),
    };
    return [method.name, definition];
  });
  // The generated interfaces are made from the same files.
  return Object.fromEntries(methods) as Definition<Service>;
}

function encoder(message: Message): (value: object) => Buffer {
  return (value) => {
    const { buffer, byteOffset, byteLength } = message.encode(message.fromObject(value)).finish();
    return Buffer.from(buffer, byteOffset, byteLength);
  };
}

function decoder(message: Message): (bytes: Uint8Array) => object {
  return (bytes) => message.toObject(message.decode(bytes), LOADER_OPTIONS);
}

/**
 * The options for loading proto/csi.proto: camelCase fields, 64 bit integers and enum values as strings, every field
 * present, and the set member of a oneof named by a field. The server and the generator of the types in generated/ both
 * use them, so that both describe the same objects.
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
