import assert from "node:assert/strict";
import { judgeStorage, type StorageReading } from "./storage_health.ts";

const a = { where: "10.0.0.1:4420", failure: undefined, live: false };
const b = { where: "10.0.0.2:4420", failure: undefined, live: false };
const c = { where: "10.0.1.1:4420", failure: undefined, live: false };
const failure = "no answer";

const healthy: StorageReading = {
  obstacle: undefined,
  stateFailure: undefined,
  addresses: [a, b, c],
  groups: [[a.where, b.where], [c.where]],
};

const cases: readonly [string, Partial<StorageReading>, readonly string[]][] = [
  ["what is as it should be", {}, []],
  ["a node without volumes", { addresses: [], groups: [] }, []],
  ["no transport", { obstacle: "there is no /dev/nvme-fabrics" }, ["STORAGE_UNREACHABLE TransportMissing"]],
  ["a state folder that takes no writes", { stateFailure: "EROFS" }, ["STORAGE_DEGRADED StateNotWritable"]],
  ["one of two addresses silent", { addresses: [{ ...a, failure }, b, c] }, [
    "STORAGE_DEGRADED AddressUnreachable",
  ]],
  ["both addresses silent", { addresses: [{ ...a, failure }, { ...b, failure }, c] }, [
    "STORAGE_UNREACHABLE RouterUnreachable",
  ]],
  ["every address silent", { addresses: [a, b, c].map((one) => ({ ...one, failure })) }, [
    "STORAGE_UNREACHABLE RouterUnreachable",
  ]],
  ["the only address of one router and one of two of another", {
    addresses: [{ ...a, failure }, b, { ...c, failure }],
  }, ["STORAGE_UNREACHABLE RouterUnreachable", "STORAGE_DEGRADED AddressUnreachable"]],
  ["an address that lists nothing and is live", { addresses: [a, b, { ...c, failure, live: true }] }, [
    "STORAGE_DEGRADED ExportsNotListed",
  ]],
  ["both silent, one of them live", {
    addresses: [{ ...a, failure }, { ...b, failure, live: true }, c],
  }, ["STORAGE_DEGRADED AddressUnreachable", "STORAGE_DEGRADED ExportsNotListed"]],
  ["an address shared by a volume that has another one, and one that has not", {
    addresses: [{ ...a, failure }, b],
    groups: [[a.where], [a.where, b.where]],
  }, ["STORAGE_UNREACHABLE RouterUnreachable"]],
];

for (const [name, change, expected] of cases) {
  Deno.test(`judgeStorage() judges ${name}`, () => {
    const problems = judgeStorage({ ...healthy, ...change });
    assert.deepEqual(problems.map(({ status, reason }) => `${status} ${reason}`), expected);
  });
}

Deno.test("judgeStorage() names the addresses and why they failed", () => {
  const [problem] = judgeStorage({ ...healthy, addresses: [{ ...a, failure: "refused" }, b, c] });
  assert.match(problem?.message ?? "", /10\.0\.0\.1:4420 \(refused\)$/);
});
