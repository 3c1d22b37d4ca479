import assert from "node:assert/strict";
import { refusal } from "../../../tests/fakes/refusal.ts";
import type { VolumeErrorKind } from "../errors.ts";
import {
  chooseCloneSize,
  chooseGrownSize,
  chooseSize,
  formatBytes,
  mebibyte as mib,
  sizeAnswers,
} from "./sizes.ts";

const gib = 1n << 30n;
const range = (requiredBytes: bigint, limitBytes = 0n) => ({ requiredBytes, limitBytes });

Deno.test("chooseSize() rounds up to MiB, from 1 GiB on, within the limit", () => {
  const cases: [bigint, bigint, bigint][] = [
    [0n, 0n, gib],
    [1n, 0n, gib],
    [gib, 0n, gib],
    [gib + 1n, 0n, gib + mib],
    [gib, gib, gib],
    [1900n * mib, 0n, 1900n * mib],
    [1900n * mib, 1900n * mib, 1900n * mib],
    [3n << 39n, 0n, 3n << 39n],
    [1900n * mib - 5n, 1900n * mib + 5n, 1900n * mib],
    [0n, 100n * mib, 100n * mib],
    [0n, 100n * mib + 7n, 100n * mib],
    [1n, mib, mib],
    [0n, 10n * gib, gib],
  ];
  for (const [required, limit, size] of cases) {
    assert.equal(chooseSize(range(required, limit)), size, `${required} to ${limit}`);
  }
});

Deno.test("chooseSize() refuses ranges that no size satisfies", () => {
  const cases: [bigint, bigint, VolumeErrorKind][] = [
    [-5n, 0n, "invalid"],
    [0n, -5n, "invalid"],
    [-1n, -1n, "invalid"],
    [gib, gib - 1n, "out-of-range"],
    [2n, 1n, "out-of-range"],
    [gib + 1n, gib + 2n, "out-of-range"],
    [1n, mib - 1n, "out-of-range"],
    [0n, 1n, "out-of-range"],
    [0n, mib - 1n, "out-of-range"],
  ];
  for (const [required, limit, kind] of cases) {
    assert.throws(() => chooseSize(range(required, limit)), refusal(kind), `${required} to ${limit}`);
  }
});

Deno.test("chooseCloneSize() is never smaller than the source, and rounded only where it is larger", () => {
  const cases: [bigint, bigint, bigint, bigint][] = [
    [0n, 0n, gib, gib],
    [0n, 0n, 7n, 7n],
    [1n, 0n, gib + 5n, gib + 5n],
    [gib, gib, gib, gib],
    [gib, 0n, 2n * gib, 2n * gib],
    [2n * gib, 0n, gib, 2n * gib],
    [2n * gib - 5n, 0n, gib, 2n * gib],
    [gib + 1n, gib + mib, gib, gib + mib],
    [0n, 2n * gib, gib, gib],
    [gib + 5n, gib + 7n, gib + 5n, gib + 5n],
  ];
  for (const [required, limit, source, size] of cases) {
    const name = `${required} to ${limit} from ${source}`;
    assert.equal(chooseCloneSize(range(required, limit), source), size, name);
  }
});

Deno.test("chooseCloneSize() refuses ranges that no size of at least the source's satisfies", () => {
  const cases: [bigint, bigint, bigint, VolumeErrorKind][] = [
    [-5n, 0n, gib, "invalid"],
    [2n, 1n, gib, "out-of-range"],
    [0n, gib, gib + 1n, "out-of-range"],
    [gib, gib, 2n * gib, "out-of-range"],
    [gib + 1n, gib + 2n, gib, "out-of-range"],
  ];
  for (const [required, limit, source, kind] of cases) {
    const name = `${required} to ${limit} from ${source}`;
    assert.throws(() => chooseCloneSize(range(required, limit), source), refusal(kind), name);
  }
});

Deno.test("chooseGrownSize() grows to the required size and never shrinks", () => {
  const cases: [bigint, bigint, bigint, bigint][] = [
    [2n * gib, 0n, gib, 2n * gib],
    [2n * gib - 1n, 0n, gib, 2n * gib],
    [gib, 0n, 2n * gib, 2n * gib],
    [gib, 2n * gib, 2n * gib, 2n * gib],
    [0n, 2n * gib, gib, gib],
    [gib + 1n, gib + 5n, gib + 3n, gib + 3n],
  ];
  for (const [required, limit, current, size] of cases) {
    assert.equal(
      chooseGrownSize(range(required, limit), current),
      size,
      `${required} to ${limit} from ${current}`,
    );
  }
});

Deno.test("chooseGrownSize() refuses a limit that it cannot keep", () => {
  assert.throws(() => chooseGrownSize(range(0n), gib), refusal("invalid"));
  assert.throws(() => chooseGrownSize(range(-5n), gib), refusal("invalid"));
  assert.throws(() => chooseGrownSize(range(gib, 2n * gib), 3n * gib), refusal("out-of-range", /current=/));
  assert.throws(() => chooseGrownSize(range(gib + 1n, gib + 2n), gib), refusal("out-of-range"));
});

Deno.test("sizeAnswers() holds between the bounds, both included", () => {
  assert.equal(sizeAnswers(range(gib, 2n * gib), gib), true);
  assert.equal(sizeAnswers(range(gib, 2n * gib), 2n * gib), true);
  assert.equal(sizeAnswers(range(gib), 9n * gib), true);
  assert.equal(sizeAnswers(range(gib), gib - 1n), false);
  assert.equal(sizeAnswers(range(gib, 2n * gib), 2n * gib + 1n), false);
});

for (
  const [amount, text] of [
    [0n, "0 B"],
    [1023n, "1023 B"],
    [1024n, "1 KiB"],
    [1536n, "1.5 KiB"],
    [1n << 30n, "1 GiB"],
    [(1n << 30n) - 1n, "1 GiB"],
    [107n << 30n, "107 GiB"],
    [7n << 40n, "7 TiB"],
    [5n << 60n, "5120 PiB"],
  ] as const
) Deno.test(`formatBytes(${amount}) is ${text}`, () => assert.equal(formatBytes(amount), text));
