import assert from "node:assert/strict";
import { aDisk, aRecord } from "../../tests/fakes/records.ts";
import { throwsWith } from "../../tests/fakes/volume_errors.ts";
import { MisplacedVolumes } from "./misplaced.ts";
import { RouterMachines } from "./router_machines.ts";

const ofFirst = aDisk(aRecord({ cluster: "00000001" }), { id: "pvc-1" });
const ofSecond = aDisk(aRecord({ cluster: "00000002" }), { id: "pvc-2" });

/** The routers "nas1" and "nas2" with these host keys, and what each is seen to have before "nas1" lacks its volume. */
function looks(hostKeys: readonly string[], first: readonly (typeof ofFirst)[]) {
  const machines = new RouterMachines();
  const misplaced = new MisplacedVolumes(machines);
  misplaced.add("nas1", "00000001");
  misplaced.add("nas2", "00000002");
  hostKeys.forEach((hostKey, index) => machines.presented(`nas${index + 1}`, hostKey));
  misplaced.seen("nas1", { volumes: first });
  const owners = misplaced.seen("nas2", { volumes: [ofFirst, ofSecond] });
  return { machines, misplaced, owners };
}

const deleted = (misplaced: MisplacedVolumes) => misplaced.assertNotSeen("00000001", "pvc-1", "delete");

for (
  const { name, hostKeys, first, reported, isRefused } of [
    { name: "of another host key", hostKeys: ["a", "b"], first: [], reported: ["nas1"], isRefused: true },
    { name: "of the same host key alone", hostKeys: ["a", "a"], first: [], reported: [], isRefused: true },
    {
      name: "of another host key with the same volume",
      hostKeys: ["a", "b"],
      first: [ofFirst],
      reported: ["nas1"],
      isRefused: true,
    },
    {
      name: "of the same host key with the same volume",
      hostKeys: ["a", "a"],
      first: [ofFirst],
      reported: [],
      isRefused: false,
    },
    {
      name: "that has not connected",
      hostKeys: ["a"],
      first: [ofFirst],
      reported: ["nas1"],
      isRefused: true,
    },
  ]
) {
  Deno.test(`a volume on a router ${name} is ${isRefused ? "not " : ""}gone`, () => {
    const { misplaced, owners } = looks(hostKeys, first);
    assert.deepEqual(owners, reported);
    if (isRefused) throwsWith(() => deleted(misplaced), "precondition", /has it: volume=pvc-1 on=nas2;/);
    else deleted(misplaced);
  });
}

Deno.test("a router that has not connected may be another name of the machine, and is not reported before", () => {
  const machines = new RouterMachines();
  const misplaced = new MisplacedVolumes(machines);
  misplaced.add("nas1", "00000001");
  misplaced.add("nas2", "00000002");
  machines.presented("nas1", "a");
  const owners = () => misplaced.seen("nas1", { volumes: [ofFirst, ofSecond] });
  assert.deepEqual(owners(), []);
  throwsWith(() => misplaced.assertNotSeen("00000002", "pvc-2", "delete"), "precondition", /on=nas1;/);
  machines.presented("nas2", "a");
  assert.deepEqual(owners(), []);
  machines.presented("nas2", "b");
  assert.deepEqual(owners(), ["nas2"]);
});

Deno.test("two names that pin host keys of different types are one machine where one of them pins both", () => {
  const machines = new RouterMachines();
  machines.presented("nas1", "ed25519-a", ["rsa-a"]);
  machines.presented("nas2", "rsa-a");
  machines.presented("nas3", "rsa-b", ["ed25519-b"]);
  const names = ["nas1", "nas2", "nas3"];
  const pairs = names.flatMap((one) =>
    names.filter((other) => machines.mayBeOne(one, other)).map((other) => `${one} ${other}`)
  );
  assert.deepEqual(pairs.filter((pair) => new Set(pair.split(" ")).size === 2), ["nas1 nas2", "nas2 nas1"]);
  assert.deepEqual(names.map((name) => machines.isShared(name)), [true, true, false]);
});

Deno.test("two names are no longer one machine when one presents another host key", () => {
  const { machines, misplaced } = looks(["a", "a"], [ofFirst]);
  deleted(misplaced);
  assert.equal(machines.isShared("nas1"), true);
  machines.presented("nas2", "b");
  throwsWith(() => deleted(misplaced), "precondition", /on=nas2;/);
  assert.equal(machines.isShared("nas1"), false);
});
