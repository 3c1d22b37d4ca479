import assert from "node:assert/strict";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import { type Epoch, epochNqn, formatEpoch, nextEpoch, parseEpoch } from "./epoch.ts";

const prefix = "nqn.2000-02.com.mikrotik";

Deno.test("nextEpoch() counts up from 1", () => {
  const first = nextEpoch(undefined, new SeededRandom());
  assert.equal(first.counter, 1);
  assert.match(first.nonce, /^[0-9a-f]{8}$/);
  assert.equal(nextEpoch(first, new SeededRandom()).counter, 2);
});

Deno.test("nextEpoch() never repeats an NQN, not even after the record was lost", () => {
  const random = new SeededRandom(3);
  const seen = new Set<string>();
  for (let life = 0; life < 50; life++) {
    let epoch: Epoch | undefined;
    for (let i = 0; i < 20; i++) {
      epoch = nextEpoch(epoch, random);
      seen.add(epochNqn(prefix, "pvc-1", epoch));
    }
  }
  assert.equal(seen.size, 1000);
});

Deno.test("nextEpoch() pads its nonce", () => {
  const zeros = { bytes: (count: number) => new Uint8Array(count), fraction: () => 0 };
  assert.equal(formatEpoch(nextEpoch(undefined, zeros)), "1-00000000");
});

Deno.test("parseEpoch() reads back what formatEpoch() wrote and nothing else", () => {
  const epoch = { counter: 999_999_999, nonce: "0123abcd" };
  assert.deepEqual(parseEpoch(formatEpoch(epoch)), epoch);
  const wrong = [
    "",
    "1",
    "-0123abcd",
    "01-0123abcd",
    "1-0123abc",
    "1-0123ABCD",
    "1-0123abcd ",
    "1234567890-0123abcd",
  ];
  for (const text of wrong) assert.equal(parseEpoch(text), undefined, text);
});

Deno.test("epochNqn() names prefix, volume and epoch, within the 223 bytes of an NQN", () => {
  const nqn = epochNqn(prefix, "x".repeat(40), { counter: 999_999_999, nonce: "0123abcd" });
  assert.equal(nqn, `${prefix}:${"x".repeat(40)}:999999999-0123abcd`);
  assert.ok(nqn.length <= 223);
});
