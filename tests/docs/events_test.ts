import assert from "node:assert/strict";
import { join } from "node:path";
import type { ReportedEvent } from "../../src/volume/ports/controller_events.ts";
import { eventText } from "../../src/volume/rules/event_text.ts";
import { projectRoot } from "../support/parts.ts";
import { readPage } from "./pages.ts";

const volumeId = "v";
const nodeIds = ["a"];

/** One event of each kind; the type lets none be forgotten. */
const events: { readonly [Kind in ReportedEvent["kind"]]: Extract<ReportedEvent, { kind: Kind }> } = {
  "leaver-unfenced": { kind: "leaver-unfenced", volumeId, nodeId: "a", remaining: ["b"] },
  "fenced": { kind: "fenced", volumeId, nodeIds },
  "attach-refused": { kind: "attach-refused", volumeId, nodeId: "a", message: "refused" },
  "node-without-driver": { kind: "node-without-driver", volumeId, nodeName: "a" },
  "out-of-space": { kind: "out-of-space", about: "v", message: "full" },
  "health": { kind: "health", volumeId, problems: [] },
  "migration-overdue": { kind: "migration-overdue", volumeId, older: "a", newer: "b", limitSeconds: 1 },
  "export-restored": { kind: "export-restored", volumeId, nodeIds },
  "export-unwanted": { kind: "export-unwanted", volumeId, nodeIds, withdrawn: false },
  "older-epoch": { kind: "older-epoch", volumeId, recorded: 1, known: 2, withdrawn: true },
};

/** The problems of a volume are events by their own reasons, each found in one way or several. */
function healthReasons(): string[] {
  const source = Deno.readTextFileSync(join(projectRoot, "src/volume/rules/health/health.ts"));
  const reasons = source.matchAll(/problem\(\s*"[A-Z_]+",\s*"([A-Za-z]+)"/g).map(([, reason]) => reason!);
  return [...new Set(reasons)];
}

/** The part of the page about events. */
const shown = /^## Events\n([^]*?)^## /m.exec(readPage("docs/reference/errors.md").text)?.[1] ?? "";

Deno.test("every event of the controller is on the page of errors, and no other one", () => {
  const known = [...Object.values(events).map((event) => eventText(event).reason), ...healthReasons()];
  assert.ok(known.includes("ImageMissing") && known.includes("ExportUnwanted"));
  const cells = [...shown.matchAll(/^\|([^|]*)\|/gm)].map(([, cell]) => cell!);
  const listed = cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, reason]) => reason!));
  assert.deepEqual(listed.toSorted(), known.toSorted());
});
