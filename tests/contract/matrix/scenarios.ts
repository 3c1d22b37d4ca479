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

/** All scenarios that the driver must pass on every kind of router. */
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
