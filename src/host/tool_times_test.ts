import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { ToolTimes } from "./tool_times.ts";

function measuring() {
  const clock = new FakeClock();
  const told: string[] = [];
  const times = new ToolTimes(clock, {
    toolRan: (tool, seconds) => void told.push(`${tool} ${seconds}`),
    toolsRested: (seconds) => void told.push(`rested after ${seconds}`),
  });
  return { clock, told, times };
}

Deno.test("ToolTimes counts the time of tools that run at once for each, and once for all", async () => {
  const { clock, told, times } = measuring();
  const endFirst = times.begin("blkid");
  await clock.advance(1000);
  const endSecond = times.begin("mkfs.ext4");
  await clock.advance(1000);
  endFirst();
  await clock.advance(1000);
  endSecond();
  assert.deepEqual(told, ["blkid 2", "mkfs.ext4 2", "rested after 3"]);
});

Deno.test("ToolTimes counts a run once, however often its end is told", () => {
  const { told, times } = measuring();
  const end = times.begin("mount");
  end();
  end();
  assert.deepEqual(told, ["mount 0", "rested after 0"]);
});
