// The record in a disk's comment. A written record is read back, whatever people wrote around it. A mistake of a
// person, or a router that cuts the comment, never makes it read as another record.
import assert from "node:assert/strict";
import fc from "fast-check";
import { type AccessMode, formatCapabilities, modeLetters } from "../../src/volume/model/capabilities.ts";
import {
  formatComment,
  type Holder,
  parseComment,
  type RecordComment,
  type UnfencedNode,
  type VolumeRecord,
} from "../../src/volume/model/record.ts";
import { location, propertyTest } from "./_property.ts";

function hex(digits: number): fc.Arbitrary<string> {
  const digit = fc.constantFrom(..."0123456789abcdef");
  return fc.string({ unit: digit, minLength: digits, maxLength: digits, size: "max" });
}

const modes = Object.keys(modeLetters) as AccessMode[];
const nodeCharacter = fc.constantFrom(..."ABCXYZabcxyz0189.-");
const plain = { noNullPrototype: true } as const;
const epoch = fc.record({ counter: fc.nat(999_999_999), nonce: hex(8) }, plain);
const seconds = fc.nat(2 ** 33);

const holder: fc.Arbitrary<Holder> = fc.tuple(
  fc.record({
    nodeId: fc.string({ unit: nodeCharacter, minLength: 1, maxLength: 64, size: "max" }),
    sinceSeconds: seconds,
    readOnly: fc.boolean(),
    mode: fc.constantFrom(...modes),
  }, plain),
  fc.option(hex(8), { nil: undefined }),
)
  .map(([holder, machine]) => machine === undefined ? holder : { ...holder, machine });

const unfenced: fc.Arbitrary<UnfencedNode> = fc.tuple(
  hex(8),
  fc.option(seconds, { nil: undefined }),
  fc.option(hex(8), { nil: undefined }),
).map(([nodeDigest, sinceSeconds, machine]) => ({
  nodeDigest,
  ...(sinceSeconds === undefined ? {} : { sinceSeconds }),
  ...(machine === undefined ? {} : { machine }),
}));

const capabilities = fc.record({
  kind: fc.constantFrom(
    { access: "block" } as const,
    { access: "mount", filesystem: "ext4" } as const,
    { access: "mount", filesystem: "xfs" } as const,
  ),
  modes: fc.uniqueArray(fc.constantFrom(...modes), { minLength: 1 }),
}, plain).map(formatCapabilities);

const record: fc.Arbitrary<VolumeRecord> = fc.tuple(
  fc.record({
    cluster: hex(8),
    name: hex(12),
    capabilities,
    parameters: hex(8),
    blankEpoch: fc.nat(999_999_999),
    withdrawnAtSeconds: fc.option(seconds, { nil: undefined }),
    source: fc.option(fc.constantFrom("v:pvc-1", "s:snap-0123456789abcdef0123456789ab"), { nil: undefined }),
  }),
  fc.option(epoch, { nil: undefined }),
  fc.option(fc.integer({ min: 1, max: 36 ** 4 - 1 }), { nil: undefined }),
  fc.uniqueArray(holder, { selector: ({ nodeId }) => nodeId, maxLength: 4 }),
  fc.boolean(),
  fc.option(unfenced, { nil: undefined }),
  fc.boolean(),
  fc.option(fc.constant(["y=0a0b0c0d", "z=a,b/c"]), { nil: undefined }),
).map(([base, epoch, growths, holders, left, unfenced, layered, newerFields]) => ({
  ...base,
  epoch,
  ...(growths === undefined ? {} : { growths }),
  // A volume that never had an epoch has no holders.
  holders: epoch === undefined ? [] : holders,
  ...(left ? { firstHolderLeft: true as const } : {}),
  ...(unfenced ? { unfenced } : {}),
  ...(layered ? { layered: true as const } : {}),
  ...(newerFields === undefined ? {} : { newerFields }),
}));

/** Text that people write beside a record: anything except another record. */
const note = fc.oneof(
  fc.constant(""),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.constantFrom(
    "ask Ann ",
    "{",
    "}",
    " x=01234567}",
    "{rds ",
    "{rds1",
    "rds1 c=1a2b3c4d",
    "$x \"\\'",
    "🦊",
  ),
).filter((text) => !/\{rds[0-9]/.test(text));

const comment: fc.Arbitrary<RecordComment> = fc.record({ record, before: note, after: note }, plain)
  // Two notes around a record could make a second opening out of its braces.
  .filter(({ before }) => !/\{(?:r(?:ds?)?)?$/.test(before));

const aMebibyte = 2 ** 20;

propertyTest(
  "every legal record comes back from its comment, and so do the notes around it",
  6000,
  fc.property(comment, (written) => {
    assert.deepEqual(parseComment(formatComment(written, aMebibyte)), { state: "record", comment: written });
  }),
);

const anyCharacter = fc.oneof(
  fc.constantFrom(..."{}=,@/- 0123456789abcdefrdsxnkpbewgh"),
  fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
);

/** A mistake of a person between two positions of a text. */
type Slip = (text: string, from: number, to: number, character: string) => string;

const slips: Readonly<Record<string, Slip>> = {
  "a changed character": (text, from, _to, character) =>
    text.slice(0, from) + character + text.slice(from + 1),
  "a character too many": (text, from, _to, character) => text.slice(0, from) + character + text.slice(from),
  "a character that is missing": (text, from) => text.slice(0, from) + text.slice(from + 1),
  "a character in the wrong place": (text, from, to) =>
    text.slice(0, from) + text.slice(from + 1, to) + text.charAt(from) + text.slice(to),
  "a stretch that is missing": (text, from, to) => text.slice(0, from) + text.slice(to),
  "a stretch that is there twice": (text, from, to) => text.slice(0, to) + text.slice(from),
  "a cut end": (text, from) => text.slice(0, from),
  "a cut beginning": (text, from) => text.slice(from),
};

for (const [name, slip] of Object.entries(slips)) {
  propertyTest(
    `${name} makes of a record no other one`,
    6000,
    fc.property(comment, location, location, anyCharacter, (written, one, other, character) => {
      const text = formatComment(written, aMebibyte);
      const [from, to] = [one, other].map((location) => Math.floor(location * text.length)).toSorted((a, b) =>
        a - b
      );
      const parsed = parseComment(slip(text, from!, to!, character));
      if (parsed.state === "record") assert.deepEqual(parsed.comment.record, written.record);
    }),
  );
}
