import { publishVolume } from "../../src/controller/attachments/publish.ts";
import { unpublishVolume } from "../../src/controller/attachments/unpublish.ts";
import type { ControllerSettings } from "../../src/controller/deps.ts";
import type { StoredVolume } from "../../src/volume/model/inventory.ts";
import type { VolumeRecord } from "../../src/volume/model/record.ts";
import {
  aPublish,
  testContext,
  testController,
  testParameters,
  withoutSubvolumes,
} from "./controller_deps.ts";
import { aDisk, aRecord, plainImage, testBase } from "./records.ts";

/** The image of the volume `pvc-1`, as a plain file. */
export const plainSource = plainImage("pvc-1");
/** The epoch of that volume. */
export const sourceEpoch = { counter: 3, nonce: "0123abcd" };

/** A controller on a router without subvolumes with the volume `pvc-1`, so that anything made from it is a copy. */
export function withPlainSource(
  settings: Partial<ControllerSettings> = {},
  record: Partial<VolumeRecord> = { epoch: sourceEpoch },
  disk: Partial<StoredVolume> = {},
) {
  const controller = testController({ copyReturns: "when-done", ...settings });
  const { store, deps, clock } = controller;
  withoutSubvolumes(store);
  store.putFile(testBase, 0n, true);
  store.put(aDisk(aRecord(record), { imagePath: plainSource, ...disk }));
  store.tree.contents.set(plainSource, "data");
  return {
    ...controller,
    /** A call that ends before a copy of a minute. */
    soon: () => testContext({ deadlineMs: clock.now() + 5_000 }),
    publish: () => publishVolume(deps, "pvc-1", aPublish("a"), testParameters, testContext()),
    unpublish: () => unpublishVolume(deps, "pvc-1", "a", testContext()),
    /** All files besides the folder and that image. */
    paths: () => [...store.allFiles.keys()].filter((path) => path !== testBase && path !== plainSource),
  };
}
