import { gibibyte } from "../fakes/controller_deps.ts";
import { testBase, testPrefix } from "../fakes/records.ts";
import type { FakeVolumeStore } from "../fakes/volume_store.ts";
import type { ClusterObjects } from "./cluster_objects.ts";
import type { HistoryEvent } from "./events.ts";
import type { Origin } from "./observer.ts";
import { idOf, nodeNames, type Setting, smooth } from "./schedule.ts";

/** What a schedule begins with. */
interface Beginning {
  readonly store: FakeVolumeStore;
  readonly objects: ClusterObjects | undefined;
  readonly record: (event: HistoryEvent) => void;
}

/**
 * Puts the first volume of a schedule on the router, with data in it, where the driver does not make it: a person's disk, or a
 * volume of the legacy driver, which mostly a node has. Returns what is known of it.
 */
export function putEarlier(setting: Setting, beginning: Beginning): Origin {
  if (setting.origin === "made") return {};
  const { store, objects, record } = beginning;
  const id = idOf(smooth.volume, setting);
  const isLegacy = setting.origin === "legacy";
  const path = isLegacy ? `${testBase}/${id}.img` : "/pool/disks/data.img";
  const isHeld = isLegacy && setting.seed % 5 !== 0;
  const nqn = isHeld ? `${testPrefix}:${id}` : "";
  const comment = setting.seed % 3 === 0 ? "of the office" : "";
  store.put({
    id,
    imagePath: path,
    sizeBytes: gibibyte,
    exported: isHeld,
    exportNqn: nqn,
    exportPort: isHeld ? 4420 : 0,
    comment,
  });
  store.putFile(testBase, 0n, true);
  const value = `${setting.origin}-data`;
  store.tree.contents.set(path, value);
  const node = nodeNames[0]!;
  record({ kind: "write", node, of: id, value, acknowledged: true });
  if (isHeld) {
    record({ kind: "call", call: 0, verb: "publish", of: id, node });
    const open = [nqn];
    record({ kind: "image", of: id, bytes: gibibyte, exists: true, value, exported: nqn, open });
    const context = { nvme_nqn: nqn, nvme_address: "10.0.0.1", nvme_port: "4420", fs_type: "ext4" };
    objects?.attachedBefore(id, node, context);
    record({ kind: "answer", call: 0, nqn });
  }
  return { path, isPersons: !isLegacy };
}
