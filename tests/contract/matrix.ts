// The contract on routers of every kind: scenarios under every profile, under every value of every knob, and under
// mixtures drawn at random. `make test/contract`.
//
// By default each router gets the scenarios whose outcome it changes, and takes turns with the others for the rest, so
// that every scenario still meets every knob's neighbourhood and several mixtures: a knob that the driver does not heed
// in one scenario is one that it does not heed. With MATRIX_ALL=1 every scenario meets every router.
//
// MATRIX_SEED plays the same mixtures again, MATRIX_RANDOM says how many there are, MATRIX_ONLY is a regular expression
// on rows, as in `MATRIX_ONLY='grow|random 7'`.
import { print } from "../../tools/print.ts";
import { SeededRandom } from "../fakes/random.ts";
import { type Cell, environmentNumber, runMatrices, wantedRows, wantsAll } from "../support/matrix.ts";
import { outcomeOn, type Scenario } from "./matrix/scenario.ts";
import { scenarios } from "./matrix/scenarios.ts";
import { useless } from "./matrix/store.ts";
import { describeSetting, randomSetting, type Setting, singleSettings } from "./matrix/settings.ts";

/** A scenario without an outcome of its own on a router meets every so manyth of those. */
const turns = 4;

interface Facts {
  readonly seed: number;
  readonly mixtures: number;
}

function settingsOf({ seed, mixtures }: Facts): readonly Setting[] {
  const random = new SeededRandom(seed);
  const drawn = Array.from({ length: mixtures }, (_, index) => randomSetting(`random ${index + 1}`, random));
  return [...singleSettings(), ...drawn];
}

/** Whether a scenario is tried on a router unless all are. Profiles without knobs get all of them. */
function isChosen(scenario: Scenario, number: number, setting: Setting, row: number): boolean {
  const turned = Object.keys(setting.knobs).length;
  if (turned === 0 || (number + row) % turns === 0) return true;
  const outcome = outcomeOn(scenario, setting);
  return turned === 1 && outcome !== outcomeOn(scenario, { ...setting, knobs: {} }) &&
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
    const mixtures = environmentNumber("MATRIX_RANDOM", 30);
    print(`mixtures: MATRIX_SEED=${seed} MATRIX_RANDOM=${mixtures}`);
    return Promise.resolve<Facts>({ seed, mixtures });
  },
  matrices: (facts) => {
    const cells = settingsOf(facts).flatMap((setting, row) =>
      scenarios.filter((scenario, number) => wantsAll || isChosen(scenario, number, setting, row))
        .map((scenario) => cellOf(scenario, setting))
    );
    const tracks = cells.filter(({ row }) => wantedRows.test(row)).map((cell) => [cell]);
    // They wait more than they work.
    return [{ suite: "contract", tracks, parallel: 4 }];
  },
});
Deno.exit(isWell ? 0 : 1);
