import assert from "node:assert/strict";
import { publishVolume } from "../../src/controller/attachments/publish.ts";
import { unpublishVolume } from "../../src/controller/attachments/unpublish.ts";
import { deleteVolume } from "../../src/controller/volumes/delete.ts";
import { expandVolume } from "../../src/controller/volumes/expand.ts";
import { nodeIdsOf, parseComment } from "../../src/volume/model/record.ts";
import type { PublishRequest } from "../../src/volume/rules/publish.ts";
import {
  aPublish,
  gibibyte,
  inTime,
  testContext,
  type TestController,
  testParameters,
} from "./controller_deps.ts";

/** The calls of one volume, each until it is done, and what the router has of it. */
export function volumeCalls(
  { deps, store, clock }: Pick<TestController, "deps" | "store" | "clock">,
  id = "pvc-1",
) {
  const context = testContext();
  const done = <T>(call: Promise<T>) => inTime(clock, call);
  const disk = () => store.disks.get(id)!;
  const record = () => {
    const parsed = parseComment(disk().comment);
    return parsed.state === "record" ? parsed.comment.record : assert.fail(parsed.state);
  };
  return {
    publish: (nodeId = "a", over: Partial<PublishRequest> = {}) =>
      done(publishVolume(deps, id, aPublish(nodeId, over), testParameters, context)),
    unpublish: (nodeId = "a") => done(unpublishVolume(deps, id, nodeId, context)),
    expand: (gib = 2n) =>
      done(expandVolume(deps, id, { requiredBytes: gib * gibibyte, limitBytes: 0n }, context)),
    remove: () => done(deleteVolume(deps, id, context)),
    disk,
    record,
    holders: () => nodeIdsOf(record().holders).join(),
  };
}
