import assert from "node:assert/strict";
import { formatTable, isTable, parseTable } from "./table.ts";

const status = "0 409600 multipath 2 0 0 0 1 1 A 0 1 2 259:1 A 0 1";

Deno.test("formatTable() requests bio mode, queueing and one path", () => {
  assert.equal(
    formatTable(409_600n * 512n, "259:1"),
    "0 409600 multipath 3 queue_if_no_path queue_mode bio 0 1 1 round-robin 0 1 1 259:1 1",
  );
});

Deno.test("parseTable() reads what formatTable() wrote, as the kernel prints it", () => {
  assert.deepEqual(parseTable(`${formatTable(409_600n * 512n, "259:1")}\n`, status), {
    queues: true,
    path: "259:1",
    failed: false,
  });
});

const measured =
  "0 409600 multipath 4 queue_if_no_path retain_attached_hw_handler queue_mode bio 0 1 1 round-robin 0 1 1 259:1 1";

Deno.test("isTable() accepts what Linux 6.1 and 6.12 print for the loaded table", () => {
  assert.ok(isTable(`${measured}\n`, 409_600n * 512n, "259:1"));
  assert.equal(parseTable(measured, status)?.queues, true);
});

Deno.test("isTable() refuses another path or size, request mode, and a map that does not queue", () => {
  for (
    const said of [
      measured.replace("259:1", "259:11"),
      measured.replace("409600", "409608"),
      measured.replace("queue_mode bio", "queue_mode rq"),
      measured.replace("queue_if_no_path ", ""),
      "",
    ]
  ) assert.equal(isTable(said, 409_600n * 512n, "259:1"), false, said);
});

Deno.test("parseTable() sees the end of the queueing and a failed path", () => {
  const ended = "0 409600 multipath 2 queue_mode bio 0 1 1 round-robin 0 1 1 259:1 1";
  const failed = "0 409600 multipath 2 1 0 0 1 1 E 0 1 2 259:1 F 3 1";
  assert.deepEqual(parseTable(ended, failed), { queues: false, path: "259:1", failed: true });
});

Deno.test("parseTable() refuses a table with two paths, of another target, or with another map's status", () => {
  const own = formatTable(409_600n * 512n, "259:1");
  for (
    const [table, of] of [
      ["0 409600 linear 259:1 0", status],
      [`${own.replace("0 1 1 259:1 1", "0 2 1 259:1 1 259:2 1")}`, status],
      ["", ""],
      [own, status.replace("259:1", "259:11")],
    ] as const
  ) assert.equal(parseTable(table, of), undefined, table);
});
