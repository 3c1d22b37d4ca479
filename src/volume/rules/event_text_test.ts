import assert from "node:assert/strict";
import type { ReportedEvent } from "../ports/controller_events.ts";
import { eventText } from "./event_text.ts";

const reported: readonly (readonly [event: ReportedEvent, type: string, reason: string, message: RegExp])[] =
  [
    [
      { kind: "leaver-unfenced", volumeId: "v", nodeId: "a", remaining: ["b"] },
      "Warning",
      "LeaverNotFenced",
      /^Node a has left the volume, which is still exported for b\. .* cannot shut a out: make sure that nothing there writes/,
    ],
    [
      { kind: "fenced", volumeId: "v", nodeIds: ["a", "b"] },
      "Normal",
      "NodeFenced",
      /^Cut off from the volume: a and b$/,
    ],
    [
      { kind: "attach-refused", volumeId: "v", nodeId: "a", message: "b holds it" },
      "Warning",
      "AttachRefused",
      /^Node a was refused: b holds it$/,
    ],
    [{ kind: "out-of-space", about: "v", message: "full" }, "Warning", "OutOfSpace", /^full$/],
    [{ kind: "health", volumeId: "v", problems: [] }, "Normal", "VolumeHealthy", /healthy again/],
    [
      {
        kind: "health",
        volumeId: "v",
        problems: [
          { status: "DATA_LOSS", reason: "ImageMissing", message: "gone" },
          { status: "DEGRADED", reason: "X", message: "and more" },
        ],
      },
      "Warning",
      "ImageMissing",
      /^gone; and more$/,
    ],
    [
      { kind: "migration-overdue", volumeId: "v", older: "a", newer: "b", limitSeconds: 300 },
      "Warning",
      "MigrationOverdue",
      /more than 300 s .*, a for longer. .* delete the pod in which the virtual machine does not run$/,
    ],
    [
      { kind: "export-restored", volumeId: "v", nodeIds: ["a"] },
      "Normal",
      "ExportRestored",
      /export for a was off/,
    ],
    [
      { kind: "export-unwanted", volumeId: "v", nodeIds: ["a"], withdrawn: true },
      "Warning",
      "ExportUnwanted",
      /record names a, and no VolumeAttachment wants it anywhere; its export was withdrawn$/,
    ],
    [
      { kind: "export-unwanted", volumeId: "v", nodeIds: [], withdrawn: false },
      "Warning",
      "ExportUnwanted",
      /^No node holds the volume, .* left on: .* run "rds-csi withdraw v --vouch" in the controller's pod$/,
    ],
    [
      { kind: "node-without-driver", volumeId: "v", nodeName: "n" },
      "Warning",
      "NodeWithoutDriver",
      /waits for node n, .* nvme_tcp/,
    ],
    [
      { kind: "older-epoch", volumeId: "v", recorded: 3, known: 5, withdrawn: true },
      "Warning",
      "RouterLostState",
      /epoch 3, .* epoch 5: .* was withdrawn; delete/,
    ],
  ];

for (const [event, type, reason, message] of reported) {
  Deno.test(`eventText() describes ${JSON.stringify(event).slice(0, 80)}`, () => {
    const text = eventText(event);
    assert.deepEqual([text.type, text.reason], [type, reason]);
    assert.match(text.message, message);
  });
}
