import { copyScenarios } from "./copies.ts";
import { driverScenarios } from "./driver.ts";
import { fileScenarios } from "./files.ts";
import { layoutScenarios } from "./layout.ts";
import { lifeScenarios } from "./life.ts";
import { readScenarios } from "./reads.ts";
import { mishapScenarios } from "./mishaps.ts";
import { raceScenarios } from "./races.ts";
import type { Scenario } from "./scenario.ts";
import { subvolumeScenarios } from "./subvolumes.ts";

/** Everything that the driver is put through on a router of every kind. */
export const scenarios: readonly Scenario[] = [
  ...lifeScenarios,
  ...mishapScenarios,
  ...raceScenarios,
  ...readScenarios,
  ...fileScenarios,
  ...driverScenarios,
  ...layoutScenarios,
  ...subvolumeScenarios,
  ...copyScenarios,
];
