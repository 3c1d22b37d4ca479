import type { loadProtosWithOptionsSync } from "@grpc/proto-loader/build/src/util.js";

type Root = ReturnType<typeof loadProtosWithOptionsSync>;
type Message = ReturnType<Root["lookupType"]>;
type Enum = ReturnType<Root["lookupEnum"]>;
type Field = Message["fieldsArray"][number];
type Service = ReturnType<Root["lookupService"]>;

/** The TypeScript types of scalar fields, with 64 bit integers as strings. */
const SCALARS: Readonly<Record<string, string>> = {
  string: "string",
  bool: "boolean",
  int32: "number",
  int64: "string",
};

/**
 * The source of a module with an interface for every service, and one for every message that they exchange, in the form
 * of received messages when the file is loaded with LOADER_OPTIONS.
 *
 * @param root of resolved definitions, see `loadDefinitions()`
 * @param services by full name, such as csi.v1.Node
 * @throws {Error} when two messages have the same name, and when a field's type has no TypeScript yet
 */
export function renderTypes(root: Root, source: string, services: readonly string[]): string {
  const declared = new Map<string, { readonly of: Message | Enum; readonly text: string }>();

  const declare = (type: Message | Enum | null): string => {
    if (type === null) throw new Error("a message of the services is not defined");
    const name = localName(type);
    const known = declared.get(name);
    if (known === undefined) {
      declared.set(name, { of: type, text: "" }); // A message may contain itself.
      declared.set(name, { of: type, text: "values" in type ? renderEnum(name, type) : message(name, type) });
    } else if (known.of !== type) throw new Error(`two messages are called ${name}`);
    return name;
  };
  const message = (name: string, type: Message): string => {
    const fields = type.fieldsArray.map((field) => renderField(field, declare));
    const oneofs = type.oneofsArray.map(({ name, oneof }) =>
      `  ${name}?: ${oneof.map((member) => JSON.stringify(member)).join(" | ")};`
    );
    return block(`interface ${name}`, [...fields, ...oneofs]);
  };
  const service = (type: Service): string =>
    block(
      `interface ${type.name}Rpcs`,
      type.methodsArray.map(({ name, resolvedRequestType: request, resolvedResponseType: response }) =>
        `  ${name}: { request: ${declare(request)}; response: ${declare(response)} };`
      ),
    );

  const rendered = services.map((name) => service(root.lookupService(name)));
  const types = [...declared].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, { text }]) => text);
  const head = `// Generated from ${source} by tools/proto/generate.ts: every message as it is received.\n`;
  return [head, ...rendered, ...types].join("\n");
}

function renderField(field: Field, declare: (type: Message | Enum) => string): string {
  const { resolvedType, partOf } = field;
  const type = resolvedType === null ? SCALARS[field.type] : declare(resolvedType);
  if (type === undefined) throw new Error(`${field.fullName} is of the type ${field.type}`);
  if (field.repeated) return `  ${field.name}: ${type}[];`;
  if (field.map) return `  ${field.name}: Record<string, ${type}>;`;
  const orNull = resolvedType !== null && "fieldsArray" in resolvedType ? " | null" : "";
  return `  ${field.name}${partOf === null ? "" : "?"}: ${type}${orNull};`;
}

function renderEnum(name: string, { values }: Enum): string {
  const members = Object.keys(values).map((member) => `\n  | ${JSON.stringify(member)}`);
  return `export type ${name} =${members.join("")};\n`;
}

function block(head: string, lines: readonly string[]): string {
  return lines.length === 0 ? `export ${head} {}\n` : `export ${head} {\n${lines.join("\n")}\n}\n`;
}

/** The name without its package, whose parts are in lower case: VolumeCapability_MountVolume. */
function localName(type: Message | Enum): string {
  return type.fullName.split(".").filter((part) => /^[A-Z]/.test(part)).join("_");
}
