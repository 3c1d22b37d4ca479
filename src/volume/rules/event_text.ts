import type { ReportedEvent } from "../ports/controller_events.ts";
import { howToWithdraw } from "./used_elsewhere.ts";

/** The text of an event. */
export interface EventText {
  readonly type: "Normal" | "Warning";
  /** Why, as one word in upper camel case, for machines. */
  readonly reason: string;
  /** What happened and what to do, for people. */
  readonly message: string;
}

/** Returns the text of an event, which says what to do. */
export function eventText(event: ReportedEvent): EventText {
  switch (event.kind) {
    case "leaver-unfenced":
      return warning(
        "LeaverNotFenced",
        `Node ${event.nodeId} has left the volume, which is still exported for ${list(event.remaining)}. ` +
          `The router cannot shut ${event.nodeId} out: make sure that nothing there writes any more`,
      );
    case "fenced":
      return {
        type: "Normal",
        reason: "NodeFenced",
        message: `Cut off from the volume: ${list(event.nodeIds)}`,
      };
    case "attach-refused":
      return warning("AttachRefused", `Node ${event.nodeId} was refused: ${event.message}`);
    case "node-without-driver":
      return warning(
        "NodeWithoutDriver",
        `The volume waits for node ${event.nodeName}, which has not registered the driver. The driver's pod on that node says why ` +
          "in its log: often the host has not loaded nvme_tcp. The volume is attached once the node has registered",
      );
    case "out-of-space":
      return warning("OutOfSpace", event.message);
    case "health":
      return healthText(event.problems);
    case "migration-overdue":
      return warning(
        "MigrationOverdue",
        `Nodes ${event.older} and ${event.newer} have shared the volume for more than ${event.limitSeconds} s ` +
          `(migrationTimeoutSeconds), ${event.older} for longer. If no migration runs any more, delete the pod in which the virtual ` +
          "machine does not run",
      );
    case "export-restored":
      return {
        type: "Normal",
        reason: "ExportRestored",
        message: `The volume's export for ${list(event.nodeIds)} was off or under another name; ` +
          "it is restored",
      };
    case "export-unwanted":
      return warning("ExportUnwanted", unwantedText(event));
    case "older-epoch":
      return warning(
        "RouterLostState",
        `The router has epoch ${event.recorded}, but the cluster knows epoch ${event.known}: the router has ` +
          `lost its last changes. ` +
          (event.withdrawn ? "The export was withdrawn; " : "The driver does not export it again; ") +
          "delete the pods that use the volume: it is attached anew once its VolumeAttachments are gone",
      );
  }
}

function unwantedText(
  { volumeId, nodeIds, withdrawn }: Extract<ReportedEvent, { kind: "export-unwanted" }>,
): string {
  const held = nodeIds.length === 0
    ? "No node holds the volume"
    : `The router's record names ${list(nodeIds)}`;
  return `${held}, and no VolumeAttachment wants it anywhere` +
    (withdrawn
      ? "; its export was withdrawn"
      : "; its export was left on: see the controller's log for the reason. If no node uses the volume any more, run " +
        `"${howToWithdraw(volumeId)}" in the controller's pod`);
}

function healthText(problems: Extract<ReportedEvent, { kind: "health" }>["problems"]): EventText {
  const [first] = problems;
  if (first === undefined) {
    return { type: "Normal", reason: "VolumeHealthy", message: "The volume is healthy again" };
  }
  return warning(first.reason, problems.map(({ message }) => message).join("; "));
}

function warning(reason: string, message: string): EventText {
  return { type: "Warning", reason, message };
}

function list(names: readonly string[]): string {
  return names.join(" and ");
}
