// The contract on routers of every kind: every scenario under every profile, under every value of every knob, and under
// mixtures drawn at random. `make test/contract`.
//
// MATRIX_SEED plays the same mixtures again, MATRIX_RANDOM says how many there are, MATRIX_ONLY is a regular expression
// on rows, as in `MATRIX_ONLY='grow|random 7'`.
import { print } from "../../tools/print.ts";
import { SeededRandom } from "../fakes/random.ts";
import { type Cell, environmentNumber, runMatrix } from "../support/matrix.ts";
import { outcomeOn } from "./matrix/scenario.ts";
import { scenarios } from "./matrix/scenarios.ts";
import { describeSetting, randomSetting, type Setting, singleSettings } from "./matrix/settings.ts";

/** Cells at a time: they wait more than they work. */
const parallel = 6;

const seed = environmentNumber("MATRIX_SEED", Math.floor(Math.random() * 2 ** 31));
const mixtures = environmentNumber("MATRIX_RANDOM", 30);
const only = new RegExp(Deno.env.get("MATRIX_ONLY") ?? "");
const random = new SeededRandom(seed);

const settings: readonly Setting[] = [
  ...singleSettings(),
  ...Array.from({ length: mixtures }, (_, index) => randomSetting(`random ${index + 1}`, random)),
];

const cells = settings.filter(({ name }) => only.test(name)).flatMap((setting) =>
  scenarios.map((scenario): Cell => {
    const other = outcomeOn(scenario, setting);
    return {
      row: setting.name,
      column: scenario.name,
      ...(other === undefined ? {} : { because: other.because }),
      run: () => (other ?? scenario).run(setting),
      hint: `rds-csi simulator ${describeSetting(setting)}`,
    };
  })
);

const { failed } = await runMatrix("contract", cells.map((cell) => [cell]), parallel);
print(`mixtures: MATRIX_SEED=${seed} MATRIX_RANDOM=${mixtures}`);
Deno.exit(failed > 0 || cells.length === 0 ? 1 : 0);
