import assert from "node:assert/strict";
import { bugChart, bugTable, callTable, total } from "./report.ts";

const planted = [{ title: "a || b", schedules: 100, steps: 3 }, {
  title: "two",
  schedules: undefined,
  steps: undefined,
}];

Deno.test("total() adds up schedules, events and answers", () => {
  const one = { schedules: 5, events: 50, answers: { "publish OK": 1, "delete OK": 2 } };
  const other = { schedules: 1, events: 9, answers: { "publish OK": 3 } };
  assert.deepEqual(total([one, other]), {
    ...{ schedules: 6, events: 59 },
    answers: { "publish OK": 4, "delete OK": 2 },
  });
});

Deno.test("callTable() counts the answers of each call", () => {
  const answers = { "publish OK": 7, "publish busy": 2, "publish unavailable": 1, "delete busy": 4 };
  assert.equal(
    callTable({ answers }),
    "| call | OK | error |\n| --- | --- | --- |\n| delete | 0 | 4 |\n| publish | 7 | 3 |\n",
  );
});

Deno.test("bugTable() says which bug was not found", () => {
  assert.equal(
    bugTable(planted),
    "| planted bug | schedules | steps left |\n| --- | --- | --- |\n| a \\|\\| b | 100 | 3 |\n| two | not found | - |\n",
  );
});

Deno.test("bugChart() draws a bar for each planted bug, and a red bar for a bug that was not found", () => {
  const svg = bugChart(planted);
  assert.deepEqual(svg.match(/fill="#(?:1565c0|c62828)"/g), ['fill="#1565c0"', 'fill="#c62828"']);
  assert.match(svg, /width="144\.0"/);
});
