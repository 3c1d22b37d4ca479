/**
 * The least that serves one gRPC call with the packages that the driver serves with: what the driver's start and memory are
 * compared with. It is compiled as the driver is.
 *
 * Usage: hello PORT
 */
import { loadPackageDefinition, Server, ServerCredentials, type ServiceDefinition } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { fileURLToPath } from "node:url";

const proto = fileURLToPath(new URL("../../proto/csi.proto", import.meta.url));
const definition = loadPackageDefinition(loadSync(proto, { defaults: true })) as unknown as {
  csi: { v1: { Identity: { service: ServiceDefinition } } };
};
const server = new Server();
server.addService(definition.csi.v1.Identity.service, {
  Probe: (_call: unknown, answer: (error: null, response: unknown) => void) =>
    answer(null, { ready: { value: true } }),
});
server.bindAsync(`127.0.0.1:${Deno.args[0]}`, ServerCredentials.createInsecure(), (error) => {
  if (error !== null) throw error;
});
