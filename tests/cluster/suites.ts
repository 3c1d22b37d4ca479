import type { Suite } from "./kit/bench.ts";
import { suite as apiGone } from "./suites/api_gone.ts";
import { isLong } from "../support/long.ts";
import { suite as copySnapshots } from "./suites/copy_snapshots.ts";
import { suite as drain } from "./suites/drain.ts";
import { suite as e2e } from "./suites/e2e.ts";
import { suite as lostEtcd } from "./suites/lost_etcd.ts";
import { suite as replicas } from "./suites/replicas.ts";
import { suite as scheduledSnapshots } from "./suites/scheduled_snapshots.ts";
import { suite as storageCapacity } from "./suites/storage_capacity.ts";
import { suite as legacyDriver } from "./suites/legacy_driver.ts";
import { suite as tryWithoutRouter } from "./suites/try_without_a_router.ts";

/** All suites, in the order in which they run. */
export const suites: Readonly<Record<string, Suite>> = {
  try_without_a_router: tryWithoutRouter,
  scheduled_snapshots: scheduledSnapshots,
  copy_snapshots: copySnapshots,
  replicas,
  api_gone: apiGone,
  legacy_driver: legacyDriver,
  lost_etcd: lostEtcd,
  drain,
  storage_capacity: storageCapacity,
  e2e,
};

/** Those that run where nobody names any: upstream's tests take too long for every change. */
export const defaultSuites: readonly string[] = Object.keys(suites).filter((name) =>
  name !== "e2e" || isLong
);
