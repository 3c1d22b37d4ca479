// The simulator beside every router of which there is a report: what it answers otherwise is known, or is mended.
import assert from "node:assert/strict";
import { systemClock } from "../../src/host/clock.ts";
import { systemRandom } from "../../src/host/random.ts";
import { parseReport } from "../../src/router_profile/report/report.ts";
import { describeDifferences, replayReport } from "../../src/simulator/replay/replay.ts";

const folder = new URL("reports/", import.meta.url);
const files = [...Deno.readDirSync(folder)].map(({ name }) => name).filter((name) => name.endsWith(".json"))
  .toSorted();

Deno.test("there is an example of a report", () => {
  assert.ok(files.some((file) => file.startsWith("simulator")), files.join());
});

for (const file of files) {
  Deno.test(`${file} can be replayed to its end${file.startsWith("simulator") ? ", without a difference" : ""}`, async () => {
    const report = parseReport(await Deno.readTextFile(new URL(file, folder)));
    assert.ok(report.transcript.length > 20 && report.steps.length > 10);
    const differences = describeDifferences(
      await replayReport(report, { clock: systemClock, random: systemRandom }),
    );
    // Those of a real router are what it is for: docs/reference/tested-hardware.md lists them.
    if (file.startsWith("simulator")) assert.deepEqual(differences, []);
  });
}
