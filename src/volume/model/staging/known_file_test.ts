import assert from "node:assert/strict";
import { refusal } from "../../../../tests/fakes/refusal.ts";
import { formatKnown, type KnownContent, parseKnown } from "./state_file.ts";

const known: KnownContent = {
  volumeId: "pvc-1",
  epoch: "1-0a0b0c0d",
  keptMs: 1_700_000_000_000,
  content: {
    header: "done",
    filesystem: "started",
    rootOpened: false,
    used: false,
    begunOn: { deviceNumber: "253:40", uniqueId: "00ff", sizeBytes: 1n << 30n },
    seenOn: { deviceNumber: "253:41", uniqueId: "00fe", sizeBytes: 1n << 31n },
  },
};

Deno.test("parseKnown() reads what formatKnown() writes", () => {
  const { begunOn: _begunOn, ...plain } = known.content;
  for (const one of [known, { ...known, content: plain }]) {
    assert.deepEqual(parseKnown(formatKnown(one), "pvc-1", "f"), one);
  }
});

Deno.test("parseKnown() keeps what it does not know", () => {
  const other = { ...known, later: "1", content: { ...known.content, later: "2" } };
  assert.deepEqual(parseKnown(formatKnown(other), "pvc-1", "f"), other);
});

const damages: readonly [string, (text: string) => string][] = [
  ["a part of it", (text) => text.slice(0, 40)],
  ["nothing", () => ""],
  ["a list", (text) => `[${text}]`],
  ["another version", (text) => text.replace('"version": 1', '"version": 2')],
  ["another volume", (text) => text.replace("pvc-1", "pvc-2")],
  ["no word of use", (text) => text.replace('"used"', '"unused"')],
  ["an unknown state of the file system", (text) => text.replace('"started"', '"begun"')],
  ["an unknown state of the header", (text) => text.replace('"header": "done"', '"header": 1')],
  ["a device without a size", (text) => text.replace('"sizeBytes"', '"size"')],
  ["no time", (text) => text.replace('"keptMs"', '"kept"')],
];

for (const [what, damage] of damages) {
  Deno.test(`parseKnown() refuses a file that holds ${what}`, () => {
    const text = damage(formatKnown(known));
    assert.throws(() => parseKnown(text, "pvc-1", "/f"), refusal("precondition", /damaged.*file=\/f/));
  });
}
