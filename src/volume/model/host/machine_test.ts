import assert from "node:assert/strict";
import { isMachineHash, machineHash } from "./machine.ts";

const id = "0123456789abcdef0123456789abcdef";
const uuid = "4c4c4544-0042-3510-8057-b4c04f4a4e32";

Deno.test("machineHash() differs between machines, and ignores case and white space", () => {
  const hash = machineHash(id, uuid)!;
  assert.ok(isMachineHash(hash));
  assert.equal(machineHash(` ${id}\n`, uuid.toUpperCase()), hash);
  const others = [machineHash(id, ""), machineHash(id, uuid.replace("4c", "4d")), machineHash(uuid, id)];
  assert.equal(new Set([hash, ...others]).size, 4);
});

Deno.test("machineHash() is undefined without a machine id", () => {
  assert.equal(machineHash("", uuid), undefined);
  assert.equal(machineHash("\n", ""), undefined);
});
