// The calls that change a volume migrated from the legacy Go driver.
import { control } from "../support/control_port.ts";
import { SeededRandom } from "../fakes/random.ts";
import { aClusterVolume, anAttachment } from "../fakes/cluster_view.ts";
import { clusterHash } from "../../src/volume/model/ids/cluster_hash.ts";
import { formatComment } from "../../src/volume/model/record.ts";
import { claimOf, migratedComment } from "../../src/volume/rules/legacy_migration.ts";
import { gibibyte } from "../support/controller_calls.ts";
import { clusterId, growsOnline } from "../support/stack.ts";
import type { Rpc } from "./rpcs.ts";
import { folder, type Scene } from "./scene.ts";
import { again, deleting, expanding, publishing, unpublishing } from "./volume_rpcs.ts";

/** Adds a volume as a migration leaves it: exported, and held by that node or by none. */
async function migrate(scene: Scene, node: string | undefined): Promise<string> {
  const id = scene.newName();
  const imagePath = `/${folder}/${id}.img`;
  const exportNqn = `nqn.2000-02.com.mikrotik:${id}`;
  const stored = {
    id,
    imagePath,
    sizeBytes: gibibyte,
    exported: true,
    exportNqn,
    exportPort: 4420,
    comment: "",
  };
  const claim = claimOf(aClusterVolume(id), node === undefined ? [] : [anAttachment(id, node)], 0);
  const comment = migratedComment(stored, claim, clusterHash(clusterId), new SeededRandom(1));
  await control(scene.simulator, "POST /files", { name: imagePath, type: "file", size: Number(gibibyte) });
  await control(scene.simulator, "POST /disks", {
    slot: id,
    "file-path": imagePath,
    size: String(gibibyte),
    comment: formatComment(comment),
    "nvme-tcp-export": true,
    "nvme-tcp-server-port": 4420,
    "nvme-tcp-server-nqn": exportNqn,
  });
  scene.volumes.set(id, { sizeBytes: gibibyte, nodes: node === undefined ? [] : [node], nqn: exportNqn });
  return id;
}

/** Calls about migrated volumes, in every situation. */
export const rpcs: readonly Rpc[] = [
  {
    name: "Publish, taken over",
    prepare: async (scene) => publishing(scene, await migrate(scene, "node-1"), "node-1"),
  },
  {
    name: "Publish, taken over, export switched off",
    prepare: async (scene) => {
      const id = await migrate(scene, "node-1");
      scene.simulator.model.disks.replace({ ...scene.getDisk(id), exported: false });
      return publishing(scene, id, "node-1");
    },
  },
  {
    name: "Publish, taken over unheld",
    prepare: async (scene) => publishing(scene, await migrate(scene, undefined), "node-1"),
  },
  {
    name: "Unpublish, taken over",
    prepare: async (scene) => unpublishing(scene, await migrate(scene, "node-1"), "node-1"),
  },
  {
    name: "Unpublish, taken over, done before",
    prepare: again(async (scene) => unpublishing(scene, await migrate(scene, "node-1"), "node-1")),
  },
  {
    name: "Expand, taken over",
    options: growsOnline,
    prepare: async (scene) => expanding(scene, await migrate(scene, "node-1")),
  },
  {
    name: "DeleteVolume, taken over",
    prepare: async (scene) => deleting(scene, await migrate(scene, undefined)),
  },
];
