import assert from "node:assert/strict";
import { bugTable, callTable, total } from "./report.ts";

const planted = [{ title: "a || b", schedules: 100 }, { title: "two", schedules: undefined }];

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
    "| planted bug | schedules |\n| --- | --- |\n| a \\|\\| b | 100 |\n| two | not found |\n",
  );
});
