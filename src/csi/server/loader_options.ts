import type { Options } from "@grpc/proto-loader";

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
