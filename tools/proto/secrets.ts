import type { Options } from "@grpc/proto-loader";
// The package's internal loading step: unlike its public function it returns the options of fields.
import { addCommonProtos, loadProtosWithOptionsSync } from "@grpc/proto-loader/build/src/util.js";

type Root = ReturnType<typeof loadProtosWithOptionsSync>;
type Member = Root["nestedArray"][number];
type Message = ReturnType<Root["lookupType"]>;
type Service = ReturnType<Root["lookupService"]>;

/** What a logger must know about one file of definitions. */
export interface Secrets {
  /** Message name to the names of its fields that hold credentials; messages without such a field are absent. */
  readonly fields: ReadonlyMap<string, readonly string[]>;
  /** gRPC path to the message names of request and response. */
  readonly methods: ReadonlyMap<string, { readonly request: string; readonly response: string }>;
}

/** Reads a .proto file with the files that it imports, and resolves every type in it. */
export function loadDefinitions(protoPath: string, options: Options): Root {
  addCommonProtos(); // google/protobuf/descriptor.proto is not among the parser's own files.
  const root = loadProtosWithOptionsSync(protoPath, options);
  root.resolveAll();
  return root;
}

/**
 * Reads the fields marked csi_secret, and the methods, of the definitions of a .proto file.
 *
 * @throws {Error} when a message with such a field is part of another message: then it is not enough to
 * strip the top level of a request.
 */
export function readSecrets(root: Root): Secrets {
  const messages: Message[] = [];
  const services: Service[] = [];
  collect(root.nestedArray, messages, services);

  const fields = new Map<string, string[]>();
  for (const message of messages) {
    const names = message.fieldsArray.filter((field) => isSecret(field.options)).map((field) => field.name);
    if (names.length > 0) fields.set(nameOf(message), names.sort());
  }
  assertTopLevelOnly(messages, fields);

  const methods = new Map<string, { request: string; response: string }>();
  for (const service of services) {
    for (const method of service.methodsArray) {
      const { resolvedRequestType: request, resolvedResponseType: response } = method;
      if (request === null || response === null) throw new Error(`${method.fullName} has an unknown type`);
      methods.set(`/${nameOf(service)}/${method.name}`, {
        request: nameOf(request),
        response: nameOf(response),
      });
    }
  }
  return { fields: sorted(fields), methods: sorted(methods) };
}

/** The source of generated/secrets.ts. */
export function renderSecrets(secrets: Secrets): string {
  const fields = [...secrets.fields].map(([message, names]) =>
    `  [${JSON.stringify(message)}, ${JSON.stringify(names)}],`
  );
  const methods = [...secrets.methods].map(([path, { request, response }]) =>
    `  [${JSON.stringify(path)}, { request: ${JSON.stringify(request)}, response: ${
      JSON.stringify(response)
    } }],`
  );
  return `// Generated from proto/csi.proto by tools/proto/generate.ts.

/**
 * The fields marked csi_secret, by message; a message that is absent has none. No message with such a field
 * is ever part of another one, so stripping the top level of a request is enough.
 */
export const SECRET_FIELDS: ReadonlyMap<string, readonly string[]> = new Map([
${fields.join("\n")}
]);

/** The request and response messages of every method, by gRPC path. */
export const METHOD_MESSAGES: ReadonlyMap<string, { readonly request: string; readonly response: string }> = new Map([
${methods.join("\n")}
]);
`;
}

function collect(members: readonly Member[], messages: Message[], services: Service[]): void {
  for (const member of members) {
    if ("fieldsArray" in member) messages.push(member as Message);
    if ("methodsArray" in member) services.push(member as Service);
    if ("nestedArray" in member) collect((member as Message).nestedArray, messages, services);
  }
}

/** Options are stored under their name in the file, in brackets. */
function isSecret(options: Readonly<Record<string, unknown>> | undefined): boolean {
  return Object.entries(options ?? {}).some(([name, value]) =>
    value === true && /^\((?:\.?csi\.v1\.)?csi_secret\)$/.test(name)
  );
}

function assertTopLevelOnly(messages: readonly Message[], secret: ReadonlyMap<string, unknown>): void {
  for (const message of messages) {
    for (const field of message.fieldsArray) {
      const type = field.resolvedType;
      if (type !== null && secret.has(nameOf(type))) {
        throw new Error(`${nameOf(message)}.${field.name} carries secrets below the top level`);
      }
    }
  }
}

function nameOf(object: { readonly fullName: string }): string {
  return object.fullName.replace(/^\./, "");
}

function sorted<T>(map: ReadonlyMap<string, T>): ReadonlyMap<string, T> {
  return new Map([...map].sort(([a], [b]) => (a < b ? -1 : 1)));
}
