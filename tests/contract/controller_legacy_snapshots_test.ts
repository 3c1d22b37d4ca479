// Snapshots as the legacy Go driver makes them, on a simulated router, and what each call of this driver answers about
// them.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { status } from "@grpc/grpc-js";
import {
  changesNothing,
  cost,
  createRequest,
  gibibyte,
  mount,
  publishRequest,
  rejectsWith,
} from "../support/controller_calls.ts";
import { aClusterVolume, anAttachment, FakeClusterView } from "../fakes/cluster_view.ts";
import { type Stack, startStack } from "../support/stack.ts";

const folder = "/storage-pool/metal-csi";
const volume = "pvc-0f8fad5b-d9cb-469f-a165-70867728950e";
const nqn = `nqn.2000-02.com.mikrotik:${volume}`;
const old = "snap-7c9e6679-7425-40de-944b-e07fc1f90ae7";
const timed = "snap-0f8fad5b-d9cb-469f-a165-70867728950e-at-1739800000";
const named = "snap-8c9e6679-7425-50de-944b-e07fc1f90ae7-at-8c9e667974";
const all = [old, timed, named];
const what =
  /legacy driver made it, with a copy of a disk's properties and not of its data.*from-the-go-driver[.]md/;

/** The legacy driver's slots are longer than some routers allow. */
const router = { simulator: { behaviours: { maxSlot: Infinity } } };

/** Types a command as the legacy driver does. */
async function type(stack: Stack, command: string): Promise<void> {
  const answer = await control(stack.simulator, "POST /console", { command });
  assert.deepEqual(answer, { output: "", refusal: null }, command);
}

async function addVolume(stack: Stack, over: Record<string, unknown> = {}): Promise<void> {
  await control(stack.simulator, "POST /files", {
    name: `${folder}/${volume}.img`,
    type: "file",
    size: Number(gibibyte),
    written: 1 << 20,
  });
  await control(stack.simulator, "POST /disks", {
    slot: volume,
    "file-path": `${folder}/${volume}.img`,
    size: String(gibibyte),
    comment: "backed up on Sundays",
    "nvme-tcp-server-port": 4420,
    "nvme-tcp-server-nqn": nqn,
    ...over,
  });
}

async function snap(stack: Stack, slot: string, path = ` file-path=${folder}/${slot}.img`): Promise<void> {
  await type(stack, `/disk add type=file copy-from=[find slot=${volume}]${path} slot=${slot}`);
}

/** A router with a volume of the legacy driver, and a snapshot by each version of that driver. */
async function withSnapshots(): Promise<Stack> {
  const stack = await startStack(router);
  await addVolume(stack);
  for (const slot of all) await snap(stack, slot);
  return stack;
}

Deno.test("no call restores from a legacy snapshot, whether it exists or not, and the refusal needs no command", async () => {
  await using stack = await withSnapshots();
  const { controller } = stack.clients;
  await changesNothing(stack, async () => {
    for (const snapshotId of [...all, "snap-00000000-0000-0000-0000-000000000000"]) {
      const request = createRequest("pvc-restored", { volumeContentSource: { snapshot: { snapshotId } } });
      const call = () =>
        rejectsWith(status.FAILED_PRECONDITION, controller.call("CreateVolume", request), what);
      assert.equal(await cost(stack, call), 0);
    }
  });
});
Deno.test("a legacy snapshot that uses its volume's image prevents the takeover of the volume, and the error names it", async () => {
  const clusterView = new FakeClusterView();
  clusterView.used = [aClusterVolume(volume)];
  clusterView.attached = [anAttachment(volume, "node-1")];
  await using stack = await startStack({ ...router, clusterView });
  await addVolume(stack);
  await snap(stack, old, "");
  const attached = { ...mount, accessMode: { mode: "SINGLE_NODE_MULTI_WRITER" as const } };
  const { controller } = stack.clients;
  const publish = () =>
    controller.call("ControllerPublishVolume", publishRequest(volume, "node-1", attached));
  await changesNothing(stack, async () => {
    await rejectsWith(
      status.FAILED_PRECONDITION,
      publish(),
      new RegExp(`another disk uses its image: disk=${old}`),
    );
    const remove = controller.call("DeleteSnapshot", { snapshotId: old });
    await rejectsWith(status.FAILED_PRECONDITION, remove, /not as the legacy driver leaves one/);
  });
  // A snapshot with a path of its own does not prevent taking the volume over.
  await type(stack, `/disk/remove [find where slot="${old}"]`);
  await snap(stack, old);
  assert.equal((await publish()).publishContext!["nqn"], nqn);
});
