import assert from "node:assert/strict";
import type { HardwareFinding } from "../../volume/model/health/hardware.ts";
import { hardwareBlock } from "./hardware_section.ts";

const finding: HardwareFinding = {
  ...{ reason: "MemberFailed", severity: "critical", slot: "nvme1", serial: "S1", pools: ["pool"] },
  message: "nvme1 has failed",
};

Deno.test("the table of drives shows a fault that lasts, also of a drive that is not reported any more", () => {
  for (const disks of [[{ slot: "nvme1" }], [{ slot: "nvme2" }], undefined]) {
    const shown = String(
      hardwareBlock({ reading: { disks }, findings: [finding, finding], atMs: 0 }, 0),
    );
    assert.match(shown, /nvme1.*MemberFailed.*nvme1 has failed/s, JSON.stringify(disks));
    assert.equal(shown.match(/<tr>/g)?.length, disks?.[0]?.slot === "nvme2" ? 3 : 2);
  }
});
