import assert from "node:assert/strict";
import { VolumeError } from "../../volume/errors.ts";
import { divide, listInParts } from "./parts.ts";
import { unknownRouter } from "../console/version.ts";

const router = () => unknownRouter;

function rowOf(slot: string): object {
  return { slot, type: "file", "file-path": `/pool/${slot}`, size: 1, "nvme-tcp-export": false };
}

/** A router that shows at most `limit` disks at once. */
function limited(slots: readonly string[], limit: number) {
  const patterns: string[] = [];
  return {
    patterns,
    ask: (pattern: string) => {
      patterns.push(pattern);
      const found = slots.filter((slot) => new RegExp(pattern).test(slot));
      return Promise.resolve(found.length > limit ? undefined : JSON.stringify(found.map(rowOf)));
    },
  };
}

const strange = ["a", "0", "f0", "Z", "z0", "my disk", "x.y", "pvc-", "-0", "é", "É0", "00", "000"];

Deno.test("divide() puts every slot into exactly one part", () => {
  for (const suffix of ["", "0", "f0"]) {
    const forms = divide(suffix).map((part) => new RegExp(part.pattern));
    for (const slot of strange.filter((slot) => slot.endsWith(suffix))) {
      assert.equal(forms.filter((form) => form.test(slot)).length, 1, `${slot} in the parts of "${suffix}"`);
    }
  }
});

Deno.test("listInParts() lists every disk once, ordered, in as many parts as it takes", async () => {
  const slots = Array.from(
    { length: 2000 },
    (_, i) => `pvc-${(i * 2654435761 % 2 ** 32).toString(16).padStart(8, "0")}`,
  );
  const wide = limited([...slots, ...strange], 200);
  const volumes = await listInParts(wide.ask, router);
  assert.deepEqual(volumes.map(({ id }) => id), [...slots, ...strange].toSorted());
  assert.ok(wide.patterns.length < 18, `${wide.patterns.length} parts`);
  const narrow = limited([...slots, ...strange], 20);
  assert.equal((await listInParts(narrow.ask, router)).length, slots.length + strange.length);
  assert.ok(narrow.patterns.length < 400, `${narrow.patterns.length} parts`);
});

Deno.test("listInParts() throws unavailable soon when every answer comes cut", async () => {
  let asked = 0;
  const all = listInParts(() => {
    asked++;
    return Promise.resolve(undefined);
  }, router);
  await assert.rejects(all, (error) => VolumeError.is(error, "unavailable"));
  assert.ok(asked < 30, `${asked} commands`);
});

Deno.test("listInParts() stops asking when one part fails", async () => {
  let asked = 0;
  const all = listInParts(() => {
    if (++asked === 2) return Promise.reject(new VolumeError("unavailable", "gone"));
    return Promise.resolve("[]");
  }, router);
  await assert.rejects(all, /gone/);
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.ok(asked <= 6, `${asked} commands`);
});

Deno.test("listInParts() throws unavailable when a part shows a disk of another part", async () => {
  const wrong = () => Promise.resolve(JSON.stringify([rowOf("s1")]));
  await assert.rejects(
    listInParts(wrong, router),
    (error) => VolumeError.is(error, "unavailable") && /s1/.test(error.message),
  );
});
