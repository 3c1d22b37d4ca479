import {
  type GrpcObject,
  loadPackageDefinition,
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceClientConstructor,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** What a kubelet says of a registration. */
interface RegistrationStatus {
  readonly pluginRegistered: boolean;
  readonly error: string;
}

/** Makes a driver known to a kubelet, as the sidecar of a node does, also again when the kubelet is another one. */
export class Registrar {
  readonly #server: Server;
  readonly #statuses: RegistrationStatus[] = [];

  private constructor(server: Server) {
    this.#server = server;
  }

  /**
   * @param folder where the kubelet looks for plugins
   * @param socket where the driver serves
   */
  static async start(folder: string, name: string, socket: string): Promise<Registrar> {
    const server = new Server();
    const registrar = new Registrar(server);
    server.addService(registrationService(), {
      GetInfo: (_call: unknown, answer: sendUnaryData<object>) =>
        answer(null, { type: "CSIPlugin", name, endpoint: socket, supportedVersions: ["1.0.0"] }),
      NotifyRegistrationStatus: (
        { request }: ServerUnaryCall<RegistrationStatus, object>,
        answer: sendUnaryData<object>,
      ) => {
        registrar.#statuses.push(request);
        answer(null, {});
      },
    });
    await new Promise<void>((resolve, reject) => {
      const address = `unix:${join(folder, `${name}-reg.sock`)}`;
      server.bindAsync(
        address,
        ServerCredentials.createInsecure(),
        (error) => error === null ? resolve() : reject(error),
      );
    });
    return registrar;
  }

  /** How often a kubelet has taken the driver. */
  get registrations(): number {
    return this.#statuses.filter(({ pluginRegistered }) => pluginRegistered).length;
  }

  /** Why a kubelet has refused it. */
  get refusals(): readonly string[] {
    return this.#statuses.filter(({ pluginRegistered }) => !pluginRegistered).map(({ error }) => error);
  }

  stop(): void {
    this.#server.forceShutdown();
  }
}

function registrationService() {
  const proto = fileURLToPath(new URL("registration.proto", import.meta.url));
  const { pluginregistration } = loadPackageDefinition(loadSync(proto, { defaults: true }));
  const { Registration } = pluginregistration as GrpcObject;
  return (Registration as ServiceClientConstructor).service;
}
