import { VolumeError } from "../volume/errors.ts";
import { headerBytes } from "../volume/model/encryption.ts";

/** The cipher of the data, and of what the passphrase protects. */
export const cipher = "aes-xts-plain64";

/** The length of a key of {@linkcode cipher}: two of AES-256. */
export const keyBytes = 64;

/** The hash of the digest, and of what spreads a key over its area. */
export const hashName = "sha256";

/** Where the areas of keys begin, behind both copies of the header. */
const areasBegin = 32_768;
/** Where they end that are read: there is room for more keys than a header may have. */
export const areasEnd = 1024 * 1024;
const areaAlignment = 4096;
/** A key of 64 bytes, spread over 4000 stripes, in whole blocks. */
const areaBytes = 258_048;

/** One, and a second one while a passphrase is changed, or for a person. */
const maxKeyslots = 2;
/** The largest `pbkdfMemory`. */
const maxMemoryKib = 1024 * 1024;
/** What luksFormat uses at most. */
const maxThreads = 4;
/**
 * How much memory a derivation may go through, in KiB. With the longest `pbkdfTime`, 10 s, luksFormat reached 5 % of it
 * on two busy processors of 2024, with 32 MiB as with 1 GiB; it uses four at most.
 */
const maxWorkKib = 256 * 1024 * 1024;
/** luksFormat takes what a processor does in an eighth of a second. */
const maxDigestIterations = 4_000_000;

/** A key slot: the key of the data, encrypted with a passphrase. */
export interface LuksKeyslot {
  readonly area: { readonly offset: string; readonly size: string };
}

/** The metadata of a header that is one of this driver's: LUKS2 On-Disk Format Specification 1.1, section 3. */
export interface LuksMetadata {
  readonly keyslots: Readonly<Record<string, LuksKeyslot>>;
}

/** What says what is behind a header. */
interface HeaderText {
  readonly uuid: string;
  /** The metadata as text. */
  readonly json: Uint8Array;
}

/** A value of the metadata, or the whole. */
interface Value {
  readonly device: string;
  /** Such as `segments.0.encryption`. */
  readonly path: string;
  readonly value: unknown;
}

type Check = (value: Value) => void;

/**
 * The error for a header that is none of this driver's.
 *
 * @param field the name of the field that differs
 */
export function refusedHeader(device: string, field: string, found: unknown, expected: string): VolumeError {
  const shown = typeof found === "string" && found.includes(" ") ? found : JSON.stringify(found) ?? "nothing";
  return new VolumeError(
    "precondition",
    `Cannot open the encrypted device because its header is not one that this driver makes: device=${device} ` +
      `field=${field} expected=${expected} found=${shown.replaceAll(/[^ -~]/g, "?").slice(0, 80)}; ` +
      "nothing was opened or changed, and the data may be undamaged: see docs/guides/encryption.md",
  );
}

/**
 * Parses the metadata of a header, and compares each field with what this driver makes.
 *
 * @param device for messages
 * @throws {VolumeError} precondition naming the field that differs
 */
export function parseMetadata({ uuid, json }: HeaderText, device: string): LuksMetadata {
  matches(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)({ device, path: "uuid", value: uuid });
  const metadata = { device, path: "metadata", value: parseJson(json, device) };
  root(metadata);
  const parsed = metadata.value as LuksMetadata;
  assertApart(parsed, device);
  return parsed;
}

function parseJson(json: Uint8Array, device: string): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(json));
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error;
    throw refusedHeader(device, "metadata", "no JSON", "JSON");
  }
}

/** The areas of two keys. */
function assertApart({ keyslots }: LuksMetadata, device: string): void {
  const [first, second] = Object.values(keyslots).map(({ area }) => Number(area.offset));
  if (first === undefined || second === undefined || Math.abs(first - second) >= areaBytes) return;
  throw refusedHeader(device, "keyslots.area.offset", `${first} and ${second}`, "areas that do not overlap");
}

function differs({ device, path, value }: Value, expected: string): VolumeError {
  return refusedHeader(device, path, value, expected);
}

function is(expected: string | number): Check {
  return oneOf(expected);
}

function oneOf(...expected: readonly (string | number)[]): Check {
  return (value) => {
    if (!expected.some((each) => each === value.value)) throw differs(value, expected.join(" or "));
  };
}

function matches(form: RegExp): Check {
  return (value) => {
    if (typeof value.value !== "string" || !form.test(value.value)) throw differs(value, String(form));
  };
}

function integer(least: number, most: number): Check {
  return (value) => {
    const { value: found } = value;
    if (typeof found === "number" && Number.isInteger(found) && found >= least && found <= most) return;
    throw differs(value, `${least} to ${most}`);
  };
}

/** An object with these fields, and no others. */
function fields(checks: Readonly<Record<string, Check>>): Check {
  return (value) => {
    const found = entriesOf(value);
    for (const [name, check] of Object.entries(checks)) check(within(value, name));
    for (const [name] of found) {
      if (!Object.hasOwn(checks, name)) throw differs(within(value, name), "no such field");
    }
  };
}

/** An object whose fields are numbered. */
function numbered(least: number, most: number, check: Check): Check {
  return (value) => {
    const found = entriesOf(value);
    if (found.length < least || found.length > most) {
      throw differs({ ...value, value: `${found.length} of them` }, `${least} to ${most} of them`);
    }
    for (const [name] of found) {
      if (!/^(?:0|[1-9][0-9]?)$/.test(name)) throw differs(within(value, name), "a number as its name");
      check(within(value, name));
    }
  };
}

function entriesOf(value: Value): readonly [string, unknown][] {
  const { value: found } = value;
  if (typeof found !== "object" || found === null || Array.isArray(found)) throw differs(value, "an object");
  return Object.entries(found);
}

function within({ device, path, value }: Value, name: string): Value {
  const inner = Object.hasOwn(value as object, name)
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined;
  return { device, path: path === "metadata" ? name : `${path}.${name}`, value: inner };
}

/** 32 bytes in base64. */
const bytes32 = matches(/^[A-Za-z0-9+/]{43}=$/);

const keyslot = fields({
  type: is("luks2"),
  key_size: is(keyBytes),
  af: fields({ type: is("luks1"), stripes: is(4000), hash: is(hashName) }),
  area: fields({
    type: is("raw"),
    offset: (value) => {
      matches(/^[1-9][0-9]{4,6}$/)(value);
      const offset = Number(value.value);
      const isInside = offset >= areasBegin && offset + areaBytes <= areasEnd && offset % areaAlignment === 0;
      if (!isInside) throw differs(value, `${areasBegin} to ${areasEnd - areaBytes}, in blocks`);
    },
    size: is(String(areaBytes)),
    encryption: is(cipher),
    key_size: is(keyBytes),
  }),
  kdf: (value) => {
    fields({
      type: is("argon2id"),
      time: integer(1, 2 ** 32 - 1),
      memory: integer(1, maxMemoryKib),
      cpus: integer(1, maxThreads),
      salt: bytes32,
    })(value);
    const { time, memory } = value.value as { readonly time: number; readonly memory: number };
    if (time * memory > maxWorkKib) {
      throw differs({ ...within(value, "time"), value: time }, `at most ${Math.floor(maxWorkKib / memory)}`);
    }
  },
});

/** All keys are of the one segment's. */
function digest(keyslots: readonly string[]): Check {
  return fields({
    type: is("pbkdf2"),
    keyslots: (value) => {
      const { value: found } = value;
      const isAll = Array.isArray(found) && found.length === keyslots.length &&
        keyslots.every((each) => found.includes(each));
      if (!isAll) throw differs(value, JSON.stringify(keyslots));
    },
    segments: (value) => {
      const { value: found } = value;
      if (!Array.isArray(found) || found.length !== 1 || found[0] !== "0") throw differs(value, '["0"]');
    },
    hash: is(hashName),
    iterations: integer(1000, maxDigestIterations),
    salt: bytes32,
    digest: bytes32,
  });
}

/** What `luksFormat` makes with this driver's arguments. */
function root(value: Value): void {
  const keyslots = Object.hasOwn(Object(value.value), "keyslots")
    ? within(value, "keyslots").value
    : undefined;
  fields({
    keyslots: numbered(1, maxKeyslots, keyslot),
    tokens: fields({}),
    segments: fields({
      "0": fields({
        type: is("crypt"),
        offset: is(String(headerBytes)),
        size: is("dynamic"),
        iv_tweak: is("0"),
        encryption: is(cipher),
        sector_size: oneOf(512, 4096),
      }),
    }),
    digests: fields({ "0": digest(Object.keys(Object(keyslots))) }),
    // Neither flags nor requirements, such as that of a header whose data is being encrypted anew.
    config: fields({ json_size: is("12288"), keyslots_size: is(String(headerBytes - BigInt(areasBegin))) }),
  })(value);
}
