import assert from "node:assert/strict";
import {
  isOwnMapUuid,
  mapName,
  mapUuid,
  maxMapUuidBytes,
  nqnOfMapUuid,
  outlastsToggle,
} from "./device_layer.ts";

const prefix = "nqn.2000-02.com.mikrotik";

Deno.test("mapName() keeps volumes of several routers apart and needs no escaping by dmsetup", () => {
  assert.equal(mapName("pvc-1"), "rds-csi-pvc-1");
  assert.equal(mapName("backup/pvc-1"), "rds-csi-backup:pvc-1");
  assert.match(mapName("backup/pvc-1"), /^[A-Za-z0-9#+\-.:=@_]{1,127}$/);
});

Deno.test("mapUuid() differs for each epoch", () => {
  assert.equal(mapUuid(`${prefix}:pvc-1:7-0a1b2c3d`, prefix), "RDSCSI-pvc-1:7-0a1b2c3d");
  assert.notEqual(
    mapUuid(`${prefix}:pvc-1:8-0a1b2c3d`, prefix),
    mapUuid(`${prefix}:pvc-1:7-0a1b2c3d`, prefix),
  );
});

Deno.test("nqnOfMapUuid() returns the NQN of the UUID", () => {
  const nqn = `${prefix}:backup:pvc-1:7-0a1b2c3d`;
  assert.equal(nqnOfMapUuid(mapUuid(nqn, prefix), prefix), nqn);
});

Deno.test("mapUuid() of the longest NQN fits into the kernel's limit", () => {
  const longest = `${prefix}:${"b".repeat(32)}:${"v".repeat(40)}:${"e".repeat(32)}`;
  assert.ok(mapUuid(longest, prefix).length <= maxMapUuidBytes);
});

Deno.test("isOwnMapUuid() leaves the maps of LVM, multipathd and cryptsetup alone", () => {
  assert.ok(isOwnMapUuid(mapUuid(`${prefix}:pvc-1:7-0a1b2c3d`, prefix)));
  for (const uuid of ["LVM-abc", "mpath-36001", "CRYPT-LUKS2-x", ""]) assert.ok(!isOwnMapUuid(uuid), uuid);
});

const parameters: readonly [Record<string, string>, boolean][] = [
  [{}, false],
  [{ deviceLayer: "auto" }, false],
  [{ deviceLayer: "multipath" }, true],
  [{ deviceLayer: "multipath", ctrlLossTmo: "-1", reconnectDelay: "3600" }, true],
  [{ deviceLayer: "multipath", ctrlLossTmo: "0" }, false],
  [{ deviceLayer: "multipath", ctrlLossTmo: "599" }, false],
  [{ deviceLayer: "multipath", ctrlLossTmo: "600" }, true],
  [{ deviceLayer: "multipath", ctrlLossTmo: "600", reconnectDelay: "30" }, false],
  [{ deviceLayer: "multipath", ctrlLossTmo: "630", reconnectDelay: "30" }, true],
  [{ deviceLayer: "multipath", ctrlLossTmo: "" }, false],
];
for (const [given, outlasts] of parameters) {
  Deno.test(`outlastsToggle() of ${JSON.stringify(given)} is ${outlasts}`, () => {
    assert.equal(outlastsToggle(given), outlasts);
  });
}
