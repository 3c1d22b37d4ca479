import type { Fact } from "../../src/controller/records/confirmations.ts";
import type { FakeVolumeStore } from "./volume_store.ts";

/** The volume of which facts are broken. */
export const brokenId = "pvc-1";

/** How a person, or a router that has forgotten its last seconds, makes a claim wrong. */
export const breaks: Readonly<Record<Fact, (store: FakeVolumeStore) => void>> = {
  path: (store) => store.edit(brokenId, { imagePath: "/pool/csi/other.img" }),
  size: (store) => store.edit(brokenId, { sizeBytes: 5n << 30n }),
  export: (store) => store.edit(brokenId, { exported: !store.disks.get(brokenId)!.exported }),
  uses: (store) => store.edit(brokenId, { routerUses: ["its file system is mounted"] }),
  sharers: (store) =>
    void store.disks.set("copy", { ...store.disks.get(brokenId)!, id: "copy", comment: "" }),
  image: (store) => void store.allFiles.delete(store.disks.get(brokenId)!.imagePath),
  pools: (store) => void (store.pools = []),
  settled: (store) => store.reboot(),
};
