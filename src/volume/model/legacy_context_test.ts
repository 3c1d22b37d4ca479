import assert from "node:assert/strict";
import { fromEarlierContext } from "./parameters.ts";

const earlier = {
  nqn: "nqn.2000-02.com.mikrotik:pvc-1",
  nvmePort: "4420",
  volumePath: "/pool/csi/pvc-1.img",
};

Deno.test("fromEarlierContext() leaves out what was left to the kernel, and shortens what is too long", () => {
  const cases: readonly (readonly [given: Record<string, string>, read: Record<string, string>])[] = [
    [{}, {}],
    [{ ctrlLossTmo: "-1", reconnectDelay: "5", keepAliveTmo: "0" }, {
      ctrlLossTmo: "-1",
      reconnectDelay: "5",
    }],
    [{ ctrlLossTmo: "0", keepAliveTmo: "10" }, { keepAliveTmo: "10" }],
    [
      { ctrlLossTmo: "604800", reconnectDelay: "9999999999", keepAliveTmo: "3601" },
      { ctrlLossTmo: "86400", reconnectDelay: "3600", keepAliveTmo: "3600" },
    ],
    // What that driver never wrote is no business of this.
    [{ ctrlLossTmo: "soon", fsckMode: "0" }, { ctrlLossTmo: "soon", fsckMode: "0" }],
  ];
  for (const [given, read] of cases) {
    assert.deepEqual(fromEarlierContext({ ...earlier, ...given }), { ...earlier, ...read });
  }
});

Deno.test("fromEarlierContext() leaves a context of this driver's as it stands", () => {
  const contexts: readonly Readonly<Record<string, string>>[] = [
    {},
    { backend: "default", ctrlLossTmo: "0" },
    { ...earlier, backend: "default", ctrlLossTmo: "0" },
  ];
  for (const own of contexts) {
    assert.equal(fromEarlierContext(own), own);
  }
});
