import assert from "node:assert/strict";
import { join } from "node:path";
import { parse } from "yaml";
import { packChart } from "./chart.ts";
import { makeScratch } from "../../tests/support/scratch.ts";

Deno.test("packChart() packs the same bytes each time, and sets the home if there is one", async () => {
  await using scratch = await makeScratch();
  const folder = scratch.path;
  const [one, two, other] = ["one.tgz", "two.tgz", "other.tgz"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  await packChart(one, 1_700_000_000);
  await packChart(two, 1_700_000_000);
  await packChart(other, 1_700_000_000, "https://example.net/rds-csi");
  assert.deepEqual(await Deno.readFile(one), await Deno.readFile(two));
  assert.deepEqual([await homeIn(one), await homeIn(other)], [undefined, "https://example.net/rds-csi"]);
  await assert.rejects(packChart(other, 0, "not a place"), TypeError);
});

async function homeIn(file: string): Promise<string | undefined> {
  const { stdout } = await new Deno.Command("tar", {
    args: ["--extract", "--gzip", "--to-stdout", `--file=${file}`, "rds-csi/Chart.yaml"],
  }).output();
  const { name, home, sources } = parse(new TextDecoder().decode(stdout)) as {
    readonly name: string;
    readonly home?: string;
    readonly sources?: readonly string[];
  };
  assert.equal(name, "rds-csi");
  assert.deepEqual(sources, home === undefined ? undefined : [home]);
  return home;
}
