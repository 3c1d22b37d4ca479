// A router's answers on their way to the driver, and the damage that can happen to them.
import fc from "fast-check";
import { Session } from "../../src/routeros/ssh/session.ts";
import { RouterVolumeStore } from "../../src/routeros/store/volume_store.ts";
import { plainDisk } from "../../src/simulator/model/disk.ts";
import type { Router } from "../../src/simulator/model/router.ts";
import { makeRouter, typeTo } from "../support/simulated_router.ts";
import type { Behaviours } from "../../src/simulator/behaviours.ts";
import type { Clock } from "../../src/volume/ports/system.ts";
import { SeededRandom } from "../fakes/random.ts";
import { ended, FakeSshTransport, torn } from "../fakes/ssh_transport.ts";
import { location } from "./_property.ts";

/** The folder of every volume in these tests. */
export const folder = "/storage-pool/metal-csi";

/** The damage of one answer; `locations` are between 0 and 1. */
export interface Mishap {
  readonly kind: keyof typeof mishaps;
  readonly locations: readonly number[];
  readonly text: string;
}

type Spoil = (output: string, mishap: Mishap, another: string) => string;

function at(text: string, location = 0): number {
  return Math.floor(location * text.length);
}

/** Changes one value of one row of one frame; an answer without frames is not changed. */
function spoilRow(
  output: string,
  { locations }: Mishap,
  change: (row: Row, key: string) => void,
) {
  const lines = output.split("\r\n");
  const framed = lines.flatMap((line, index) => /^[0-9a-f]{12}\d /.test(line) ? [index] : []);
  const index = framed[Math.floor(locations[0]! * framed.length)];
  if (index === undefined) return output;
  const [, opening, payload, closing] = /^(\S+ )(.*)( \S+)$/.exec(lines[index]!)!;
  const value = JSON.parse(payload!) as Row | Row[];
  const rows = Array.isArray(value) ? value : [value];
  const row = rows[Math.floor(locations[1]! * rows.length)];
  const keys = Object.keys(row ?? {});
  const key = keys[Math.floor(locations[2]! * keys.length)];
  if (row === undefined || key === undefined) return output;
  change(row, key);
  lines[index] = `${opening}${JSON.stringify(value)}${closing}`;
  return lines.join("\r\n");
}

type Row = Record<string, unknown>;

/**
 * Returns the positions where a changed character can be noticed: in the marks of frames, in JSON's punctuation, and in
 * keys. A change within a value gives another valid value; only the checksums of SSH detect that.
 */
function changeable(output: string): number[] {
  const tokens = output.matchAll(
    /"((?:[^"\\\r\n]|\\.)*)"(:?)|[[\]{}:,]|\b(?:true|false)\b|\b[0-9a-f]{12}(?=\d |\r\n)/g,
  );
  return [...tokens].flatMap(({ index, 0: token, 1: text, 2: colon }) => {
    const every = Array.from(token, (_, offset) => index + offset);
    return text === undefined || colon === ":" ? every : [index, index + token.length - 1];
  });
}

const values: readonly unknown[] = [null, [], {}, "maybe", -1, 1.5, [{}], ["yes"], 1e300, [true], "1.5"];

/** Every kind of damage, by name. */
export const mishaps = {
  "is cut off": (output, { locations }) => output.slice(0, at(output, locations[0])),
  "lacks its beginning": (output, { locations }) => output.slice(at(output, locations[0])),
  "comes twice": (output) => output + output,
  "comes with another one before it": (output, _mishap, another) => another + output,
  "comes with another one behind it": (output, _mishap, another) => output + another,
  "comes with another one in its middle": (output, { locations }, another) => {
    const index = at(output, locations[0]);
    return output.slice(0, index) + another + output.slice(index);
  },
  "is another one": (_output, _mishap, another) => another,
  "has another nonce": (output) =>
    output.replace(/[0-9a-f]{12}(?=\d )| [0-9a-f]{12}(?=\r\n)/g, "0123456789ab"),
  "has its lines in disorder": (output) => output.split("\r\n").toReversed().join("\r\n"),
  "has a line between": (output, { locations, text }) => {
    const index = at(output, locations[0]);
    return `${output.slice(0, index)}\r\n${text}\r\n${output.slice(index)}`;
  },
  "has a line before it": (output, { text }) => `${text}\r\n${output}`,
  "lacks a key": (output, mishap) => spoilRow(output, mishap, (row, key) => delete row[key]),
  "has a value of another type": (output, mishap) =>
    spoilRow(output, mishap, (row, key) => {
      const others = values.filter((value) => typeof value !== typeof row[key]);
      row[key] = others[Math.floor(mishap.locations[3]! * others.length)];
    }),
  "has a changed character": (output, { locations, text }) => {
    const open = changeable(output);
    const index = open[Math.floor(locations[0]! * open.length)];
    return index === undefined ? output : output.slice(0, index) + text.charAt(0) + output.slice(index + 1);
  },
} satisfies Readonly<Record<string, Spoil>>;

const wording = fc.oneof(
  fc.constantFrom(
    "(25 messages not shown)",
    "failure: not really",
    "[]",
    '[{"slot":"pvc-0"}]',
    "\x00",
    "x",
    "0",
    '"',
  ),
  fc.string({ unit: "binary", minLength: 1, maxLength: 30 }),
);

/** One damage of any kind. */
export const anyMishap: fc.Arbitrary<Mishap> = fc.record({
  kind: fc.constantFrom(...Object.keys(mishaps) as Mishap["kind"][]),
  locations: fc.tuple(location, location, location, location),
  text: wording,
}, { noNullPrototype: true });

/** Possible comments, including texts that look like pieces of an answer. */
const comment = fc.oneof(
  fc.constant(""),
  fc.constantFrom(
    "[]",
    "}]",
    '"slot":"pvc-0"',
    "0123456789ab0 [] 0123456789ab",
    "{rds1 c=1a2b3c4d x=01234567}",
  ),
  fc.string({ unit: fc.constantFrom(...'\\"$;[]{}:, abc019'), maxLength: 60, size: "max" }),
);

/** A volume on the router. */
export const volume = fc.record({
  comment,
  sizeMib: fc.integer({ min: 1, max: 2 ** 30 }),
  exported: fc.boolean(),
}, { noNullPrototype: true });

/** The forms in which this router prints values. */
export const spelling: fc.Arbitrary<Partial<Behaviours>> = fc.record({
  output: fc.constantFrom("plain", "hostile"),
}, { noNullPrototype: true });

/** A clock that stands still and never waits: a retry after a pause happens at once. */
const impatient: Clock = {
  now: () => Date.UTC(2026, 0, 1),
  monotonicMs: () => 0,
  sleep: () => Promise.resolve(),
  timer: () => () => {},
};

/** Returns a router that holds these volumes, in slots pvc-0, pvc-1…, with their images. */
export function routerOf(
  volumes: readonly { readonly comment: string; readonly sizeMib: number; readonly exported: boolean }[],
  behaviours: Partial<Behaviours>,
): Router {
  const router = makeRouter({ behaviours });
  router.files.makeDirectories(folder.slice(1));
  volumes.forEach(({ comment, sizeMib, exported }, index) => {
    const slot = `pvc-${index}`;
    const filePath = `${folder}/${slot}.img`;
    const sizeBytes = BigInt(sizeMib) << 20n;
    router.files.create(filePath.slice(1), sizeBytes);
    const served = exported ? { port: 4420, nqn: `nqn.2000-02.com.mikrotik:${slot}:1-ab12cd34` } : {};
    const sizes = { sizeBytes, attachedBytes: sizeBytes, fileSizeBytes: sizeBytes };
    const file = { type: "file", filePath, mountFilesystem: false };
    router.disks.add({ ...plainDisk, ...sizes, ...served, ...file, slot, comment, exported });
  });
  return router;
}

/** Returns a store behind a wire that damages the answers to the commands that `strikes` picks, counted from 0. */
export function spoiledStore(router: Router, mishap: Mishap, strikes: (index: number) => boolean) {
  const [type, typeElsewhere] = [typeTo(router), typeTo(routerOf([], router.behaviours))];
  let count = 0;
  const transport = new FakeSshTransport(async (command) => {
    const output = await type(command);
    if (!strikes(count++)) return ended(output);
    // The answer to an equal question, from a router without volumes.
    const another = await typeElsewhere(
      command.replace(/"[0-9a-f]{12}(?=\d )|(?<=" )[0-9a-f]{12}"/g, '"ba9876543210'),
    );
    const spoiled = mishaps[mishap.kind](output, mishap, another);
    // The channel of a damaged answer is either closed normally, or breaks without a message.
    return mishap.locations[3]! < 0.5 ? ended(spoiled) : torn(spoiled);
  });
  const shared = { clock: impatient, random: new SeededRandom() };
  return new RouterVolumeStore({ session: new Session({ transport, ...shared }), ...shared });
}
