// How soon the cluster has a snapshot or a clone once its copy has ended: by the driver's answers and the sidecars' waits.
import assert from "node:assert/strict";
import { createSnapshot } from "../../src/controller/snapshots/create.ts";
import { createVolume } from "../../src/controller/volumes/create.ts";
import type { CallContext } from "../../src/volume/ports/system.ts";
import { aCreate, inTime, testContext } from "../fakes/controller_deps.ts";
import { withPlainSource } from "../fakes/plain_source.ts";
import { refusal } from "../fakes/refusal.ts";
import { only, parseObjects, readDeployFile, type Workload } from "./objects.ts";

const readyMs = 60_000;

/** What a sidecar of the manifests is given for one of its flags, which is a time in seconds, in milliseconds. */
function msOf(sidecar: string, flag: string): number {
  const { spec } =
    only<Workload>(parseObjects(readDeployFile("manifests/rds-csi.yaml")), "Deployment").spec.template;
  const { args = [] } = spec.containers.find(({ name }) => name === sidecar)!;
  const seconds = args.flatMap((arg) => new RegExp(`^--${flag}=([0-9]+)s$`).exec(arg)?.[1] ?? []);
  assert.equal(seconds.length, 1, `${sidecar} ${flag}`);
  return Number(seconds[0]) * 1_000;
}

/** Repeats a call as that sidecar does: each wait is twice as long as the one before, up to the longest. */
async function repeat(
  sidecar: string,
  call: (context: CallContext) => Promise<unknown>,
  { clock }: ReturnType<typeof withPlainSource>,
): Promise<void> {
  const timeoutMs = msOf(sidecar, "timeout");
  const longestMs = msOf(sidecar, "retry-interval-max");
  for (let waitMs = 1_000;; waitMs = Math.min(2 * waitMs, longestMs)) {
    const context = testContext({ deadlineMs: clock.now() + timeoutMs });
    const isDone = await inTime(clock, call(context)).then(() => true, (error) => {
      assert.ok(refusal("unavailable", /still being copied/)(error), String(error));
      return false;
    });
    if (isDone) return;
    await clock.advance(waitMs);
  }
}

for (
  const { what, sidecar, make } of [
    {
      what: "snapshot",
      sidecar: "csi-snapshotter",
      make: ({ deps }: ReturnType<typeof withPlainSource>, context: CallContext) =>
        createSnapshot(deps, { name: "s", source: "pvc-1" }, context),
    },
    {
      what: "clone",
      sidecar: "csi-provisioner",
      make: ({ deps }: ReturnType<typeof withPlainSource>, context: CallContext) =>
        createVolume(deps, aCreate("c", { source: { kind: "volume", id: "pvc-1" } }), context),
    },
  ]
) {
  Deno.test(`a copied ${what} is there at most a minute after the copy's end, whenever that is`, async () => {
    for (const takesMs of Array.from({ length: 6 }, (_, index) => 300_000 + index * 17_000)) {
      const test = withPlainSource();
      const { clock, store } = test;
      store.mishap("copyFile", { takesMs });
      const beganMs = clock.now();
      await repeat(sidecar, (context) => make(test, context), test);
      const lateMs = clock.now() - beganMs - takesMs;
      assert.ok(lateMs >= 0 && lateMs <= readyMs, `copy=${takesMs} ms late=${lateMs} ms`);
      assert.equal(store.calls.filter(({ method }) => method === "copyFile").length, 1);
    }
  });
}
