// The scenarios of the contract matrix on a few routers, each as unlike the others as can be; `make test/contract` has
// them all.
import { outcomeOn } from "./matrix/scenario.ts";
import { scenarios } from "./matrix/scenarios.ts";
import type { Setting } from "./matrix/settings.ts";

const settings: readonly Setting[] = [
  { name: "the newest router", profile: "ros-7.24", knobs: {} },
  { name: "a hostile one", profile: "hostile", knobs: { interleave: true, emptyFind: "no-such-item" } },
  { name: "an old one with LF and words", profile: "ros-7.20", knobs: { lineEnd: "lf", booleans: "yes-no" } },
];

for (const setting of settings) {
  for (const scenario of scenarios) {
    const other = outcomeOn(scenario, setting);
    const outcome = other === undefined ? "goes as usual" : other.because;
    Deno.test(`${scenario.name} on ${setting.name}: ${outcome}`, () => (other ?? scenario).run(setting));
  }
}
