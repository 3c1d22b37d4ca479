// Runs every scenario on routers of every kind: each profile, each value of each behaviour, and mixtures drawn at random.
// `make test/contract`.
//
// By default this tries about three of ten pairs. A profile gets every scenario. A router with one behaviour turned gets the
// scenarios that declare another outcome for it, and every fourth of the rest, starting one further in each row; of those that
// repeat a life for each command, which take half the time, every eighth. A mixture gets these fourths and eighths. So each
// scenario meets a quarter or an eighth of the values that it should not notice, and each declared outcome is checked.
// MATRIX_ALL=1 tries every scenario on every router, as every night does.
//
// MATRIX_SEED repeats the mixtures of an earlier run, MATRIX_RANDOM sets how many there are, and MATRIX_ONLY is a regular
// expression on rows, as in `MATRIX_ONLY='grow|random 7'`.
import { print } from "../../tools/print.ts";
import { SeededRandom } from "../fakes/random.ts";
import { type Cell, environmentNumber, runMatrices, wantedRows, wantsAll } from "../support/matrix.ts";
import { mishapScenarios } from "./matrix/mishaps.ts";
import { outcomeOn, type Scenario } from "./matrix/scenario.ts";
import { scenarios } from "./matrix/scenarios.ts";
import { useless } from "./matrix/store.ts";
import { describeSetting, randomSetting, type Setting, singleSettings } from "./matrix/settings.ts";

/** A router gets one of every so many scenarios that declare no outcome of their own for it. */
function strideOf(scenario: Scenario): number {
  return mishapScenarios.includes(scenario) ? 8 : 4;
}

interface Facts {
  readonly seed: number;
  readonly mixtures: number;
}

function settingsOf({ seed, mixtures }: Facts): readonly Setting[] {
  const random = new SeededRandom(seed);
  const drawn = Array.from({ length: mixtures }, (_, index) => randomSetting(`random ${index + 1}`, random));
  return [...singleSettings(), ...drawn];
}

/** Whether the default run tries a scenario on a router. */
function isChosen(scenario: Scenario, number: number, setting: Setting, row: number): boolean {
  const turned = Object.keys(setting.behaviours).length;
  if (turned === 0 || (number + row) % strideOf(scenario) === 0) return true;
  const outcome = outcomeOn(scenario, setting);
  return turned === 1 && outcome !== outcomeOn(scenario, { ...setting, behaviours: {} }) &&
    !(outcome !== undefined && useless.includes(outcome));
}

function cellOf(scenario: Scenario, setting: Setting): Cell {
  const other = outcomeOn(scenario, setting);
  return {
    row: setting.name,
    column: scenario.name,
    ...(other === undefined ? {} : { because: other.because }),
    run: () => (other ?? scenario).run(setting),
    hint: `rds-csi simulator ${describeSetting(setting)}`,
  };
}

const isWell = await runMatrices(import.meta.url, {
  gather: () => {
    const seed = environmentNumber("MATRIX_SEED", Math.floor(Math.random() * 2 ** 31));
    const mixtures = environmentNumber("MATRIX_RANDOM", 10);
    print(`mixtures: MATRIX_SEED=${seed} MATRIX_RANDOM=${mixtures}`);
    return Promise.resolve<Facts>({ seed, mixtures });
  },
  matrices: (facts) => {
    const cells = settingsOf(facts).flatMap((setting, row) =>
      scenarios.filter((scenario, number) => wantsAll || isChosen(scenario, number, setting, row))
        .map((scenario) => cellOf(scenario, setting))
    );
    const tracks = cells.filter(({ row }) => wantedRows.test(row)).map((cell) => [cell]);
    // The scenarios spend most of their time waiting.
    return [{ suite: "contract", tracks, parallel: 4 }];
  },
});
Deno.exit(isWell ? 0 : 1);
