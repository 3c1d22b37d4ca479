import type { NodeEvent, NodeEvents } from "../../src/volume/ports/node_events.ts";
import type { Connection } from "../../src/volume/ports/node_ports.ts";

/** Records events, in order, as a word or two each. */
export class RecordedEvents implements NodeEvents {
  readonly reported: string[] = [];
  /** The device number last reported, by volume. */
  readonly devices = new Map<string, string>();
  readonly staged = new Set<string>();
  /** Volumes whose writes wait for their device. */
  readonly waiting = new Set<string>();
  /** The connections last reported, by volume. */
  readonly connections = new Map<string, readonly Connection[]>();

  /** The problems last reported, by volume. */
  readonly health = new Map<string, readonly string[]>();

  occurred(event: NodeEvent): void {
    switch (event.kind) {
      case "connections":
        return void this.connections.set(event.volumeId, event.connections);
      case "health":
        return void this.health.set(event.volumeId, event.problems.map(({ reason }) => reason));
      case "staged":
        return void (event.staged ? this.staged.add(event.volumeId) : this.staged.delete(event.volumeId));
      case "waiting":
        return void (event.waits ? this.waiting.add(event.volumeId) : this.waiting.delete(event.volumeId));
      case "device":
        return void this.devices.set(event.volumeId, event.deviceNumber);
      case "tool-ran":
        return;
      default: {
        const { kind, ...details } = event;
        this.reported.push([kind.replaceAll("-", " "), ...Object.values(details)].join(": "));
      }
    }
  }
}
