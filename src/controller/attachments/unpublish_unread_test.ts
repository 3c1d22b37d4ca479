// Unpublishing by what the controller remembers of its last change, as far as that differs from other calls (unread_calls_test).
import assert from "node:assert/strict";
import {
  aPublish,
  inTime,
  rememberingController,
  testContext,
  testParameters,
} from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aRecord } from "../../../tests/fakes/records.ts";
import { nodeIdsOf, parseComment, type VolumeRecord } from "../../volume/model/record.ts";
import { publishVolume } from "./publish.ts";
import { unpublishVolume } from "./unpublish.ts";

const context = testContext();
const id = "pvc-1";

/** A controller that has published the volume to the node a. */
async function published(unexportGraceMs = 0) {
  const made = rememberingController(aDisk(aRecord()), { unexportGraceMs });
  const { store, clock } = made;
  const shown: string[] = [];
  const projection = {
    ...made.deps.projection,
    show: (id: string, { holders }: VolumeRecord) => void shown.push(`${id} ${nodeIdsOf(holders).join()}`),
  };
  const deps = { ...made.deps, projection };
  const publish = () => inTime(clock, publishVolume(deps, id, aPublish("a"), testParameters, context));
  await publish();
  store.takeCount();
  const unpublish = (nodeId = "a") => inTime(clock, unpublishVolume(deps, id, nodeId, context));
  const record = () => {
    const parsed = parseComment(store.disks.get(id)!.comment);
    return parsed.state === "record" ? parsed.comment.record : assert.fail(parsed.state);
  };
  const isOff = () => !store.disks.get(id)!.exported && record().holders.length === 0;
  return { ...made, deps, shown, publish, unpublish, isOff };
}

Deno.test("unpublishVolume() takes one command for a volume that this controller has published", async () => {
  const { publish, unpublish, methods, isOff, shown } = await published();
  await unpublish();
  assert.deepEqual(methods(), ["change"]);
  assert.ok(isOff());
  assert.deepEqual(shown, ["pvc-1 a", "pvc-1 "], "as the cluster is shown");
  await publish();
  assert.deepEqual(methods(), ["exportUnseen"]);
  await unpublish();
  assert.deepEqual([methods(), isOff()], [["change"], true]);
});

Deno.test("unpublishVolume() writes a withdrawal that the router made late once, and the grace counts from its read-back", async () => {
  const { store, clock, publish, unpublish, methods } = await published(30_000);
  store.lingerMs = 30_000;
  store.mishap("change", { takesMs: 5_000 });
  await unpublish();
  assert.deepEqual(methods(), ["change"]);
  const startMs = clock.monotonicMs();
  await publish();
  assert.ok(clock.monotonicMs() - startMs >= 29_000);
  assert.deepEqual(store.violations, []);
});

Deno.test("unpublishVolume() reads first of a node that is not the holder, and of all nodes", async () => {
  const { unpublish, methods, isOff } = await published();
  await unpublish("b");
  assert.deepEqual([methods(), isOff()], [["view"], false]);
  await unpublish("");
  assert.deepEqual(methods(), ["view", "change"]);
});
