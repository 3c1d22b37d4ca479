// Random messages of a proto file: everything that a client can encode, mixed with texts that this driver understands.
import fc from "fast-check";
import { addCommonProtos, loadProtosWithOptionsSync } from "@grpc/proto-loader/build/src/util.js";
import { defaultProtoPath, LOADER_OPTIONS } from "../../src/csi/server/proto.ts";

type Message = ReturnType<ReturnType<typeof loadProtosWithOptionsSync>["lookupType"]>;
type Field = Message["fieldsArray"][number];

/** Texts that have confused parsers, and texts that this driver understands. */
const texts = [
  "",
  " ",
  "pvc-a",
  "pvc-0123456789abcdef0123456789ab",
  "node-1",
  "ext4",
  "/",
  "/storage-pool/metal-csi/../x",
  "../../etc/passwd",
  '"; /disk remove [find]; :put "',
  "$[/system reboot]",
  "\\",
  "{rds1 c=1a2b3c4d}",
  "a\nb",
  "\u0000",
  "\u202e\u{1f4a9}",
  "__proto__",
  "constructor",
  "%s%n${x}",
  "nqn.2000-02.com.mikrotik:pvc-a:1-0a0b0c0d",
  "a".repeat(129),
  "é".repeat(3000),
];
const text = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...texts) },
  { weight: 2, arbitrary: fc.string({ maxLength: 200 }) },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 200 }) },
);
const wholes = fc.oneof(
  fc.constantFrom("0", "1", "-1", "1073741824", "9223372036854775807", "-9223372036854775808"),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
);

/**
 * Returns the request of every method of a service, by its name.
 *
 * @param known texts that name existing objects
 * @param valid complete requests of some methods: as many requests are nearly one of these as are random
 */
export function requestsOf(
  service: string,
  known: readonly string[],
  valid: Readonly<Record<string, readonly object[]>> = {},
): Map<string, fc.Arbitrary<object>> {
  addCommonProtos();
  const root = loadProtosWithOptionsSync(defaultProtoPath(), LOADER_OPTIONS);
  const string = fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...known) }, {
    weight: 2,
    arbitrary: text,
  });
  return new Map(
    root.lookupService(service).methodsArray.map(({ name, requestType }) => {
      const request = messages(root.lookupType(`csi.v1.${requestType}`), string, 0);
      const close = (valid[name] ?? []).map((one) => nearly(one, request));
      return [name, close.length === 0 ? request : fc.oneof(request, fc.oneof(...close))];
    }),
  );
}

/** A valid request in which up to two fields are random; of a message or a map, perhaps only a part. */
function nearly(valid: object, request: fc.Arbitrary<object>): fc.Arbitrary<object> {
  const picks = fc.array(fc.tuple(fc.nat(), fc.boolean()), { maxLength: 2 });
  return fc.tuple(request, picks).map(([other, picked]) => {
    const fields: Record<string, unknown> = { ...valid };
    const random = Object.entries(other);
    for (const [at, isPart] of random.length === 0 ? [] : picked) {
      const [name, value] = random[at % random.length]!;
      const own = fields[name];
      fields[name] = isPart && isFields(own) && isFields(value) ? { ...own, ...value } : value;
    }
    return fields;
  });
}

function isFields(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
}

function messages(type: Message, string: fc.Arbitrary<string>, depth: number): fc.Arbitrary<object> {
  const fields = type.fieldsArray.map((field) => {
    field.resolve();
    return [field.name, values(field, string, depth)] as const;
  });
  // Any field may be missing; of a oneof the last one present counts.
  return fc.record(Object.fromEntries(fields), { requiredKeys: [] });
}

function values(field: Field, string: fc.Arbitrary<string>, depth: number): fc.Arbitrary<unknown> {
  const one = value(field, string, depth);
  if ("keyType" in field) return fc.dictionary(string, one, { maxKeys: 4 });
  return field.repeated ? fc.array(one, { maxLength: 3 }) : one;
}

function value(field: Field, string: fc.Arbitrary<string>, depth: number): fc.Arbitrary<unknown> {
  const { resolvedType } = field;
  if (resolvedType !== null && "values" in resolvedType) {
    return fc.oneof(fc.constantFrom(...Object.values(resolvedType.values)), fc.integer({ min: -3, max: 99 }));
  }
  if (resolvedType !== null) {
    return depth > 4 ? fc.constant({}) : messages(resolvedType, string, depth + 1);
  }
  if (field.type === "string") return string;
  if (field.type === "bool") return fc.boolean();
  if (field.type === "bytes") return fc.uint8Array({ maxLength: 50 });
  if (/64$/.test(field.type)) return wholes;
  return fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
}
