import assert from "node:assert/strict";
import { medianOf } from "./times.ts";
import { ToolReading } from "./tool_metrics.ts";

for (const [values, median] of [[[3], 3], [[4, 1, 2], 2], [[10, 1, 3, 2], 2.5]] as const) {
  Deno.test(`medianOf() of ${values.join(", ")} is ${median}`, () => {
    assert.equal(medianOf(values), median);
  });
}

Deno.test("ToolReading tells what was added for each tool and for all together", () => {
  const text = (mount: number, busy: number, stage: number) =>
    `grpc_server_handling_seconds_sum{grpc_type="unary",grpc_method="NodeStageVolume"} ${stage}\n` +
    `rds_csi_tool_seconds_sum{tool="mount"} ${mount}\nrds_csi_tool_seconds_sum{tool="stat"} 1\n` +
    `rds_csi_tools_busy_seconds_total ${busy}\n`;
  const added = new ToolReading(text(3.5, 4, 9)).since(new ToolReading(text(1.5, 3, 4)));
  assert.deepEqual(added, { tools: { mount: 2000 }, toolsMs: 1000, driverMs: 5000 });
});

Deno.test("ToolReading throws when the driver tells nothing of its tools", () => {
  assert.throws(() => new ToolReading("rds_csi_staged_volumes 1\n"), /tells nothing/);
});
