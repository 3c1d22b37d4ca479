import type { Guest } from "../../kit/guest.ts";

/** The guest's port at which the driver tells its metrics to the host. */
export const metricsPort = 9810;

/** What a driver's stages had taken, and its tools had run for, when its metrics were read. */
export class ToolReading {
  readonly #seconds: ReadonlyMap<string, number>;
  readonly #busySeconds: number;
  /** What NodeStageVolume took from its arrivals to its answers. */
  readonly #stageSeconds: number;

  constructor(text: string) {
    const lines = text.split("\n");
    const value = (line: string) => Number(line.slice(line.lastIndexOf(" ") + 1));
    this.#seconds = new Map(lines.flatMap((line) => {
      const tool = /^rds_csi_tool_seconds_sum\{tool="([^"]+)"\}/.exec(line)?.[1];
      return tool === undefined ? [] : [[tool, value(line)] as const];
    }));
    const busy = lines.find((line) => line.startsWith("rds_csi_tools_busy_seconds_total "));
    if (busy === undefined) throw new Error("The driver tells nothing of its tools");
    this.#busySeconds = value(busy);
    const staged = lines.find((line) =>
      /^grpc_server_handling_seconds_sum\{.*grpc_method="NodeStageVolume"/.test(line)
    );
    this.#stageSeconds = staged === undefined ? 0 : value(staged);
  }

  /** What was added since then, in milliseconds: for each tool, while at least one ran, and for stages as a whole. */
  since(earlier: ToolReading): {
    readonly tools: Readonly<Record<string, number>>;
    readonly toolsMs: number;
    readonly driverMs: number;
  } {
    const added = [...this.#seconds].map(([tool, seconds]) =>
      [tool, (seconds - (earlier.#seconds.get(tool) ?? 0)) * 1000] as const
    );
    return {
      tools: Object.fromEntries(added.filter(([, ms]) => ms > 0)),
      driverMs: (this.#stageSeconds - earlier.#stageSeconds) * 1000,
      toolsMs: (this.#busySeconds - earlier.#busySeconds) * 1000,
    };
  }
}

/** Reads the metrics of the driver in a guest, which has {@linkcode metricsPort} forwarded. */
export class ToolMetrics {
  readonly #url: string;

  constructor(guest: Guest) {
    this.#url = `http://127.0.0.1:${guest.forwarded(metricsPort)}/metrics`;
  }

  async read(): Promise<ToolReading> {
    const response = await fetch(this.#url, { signal: AbortSignal.timeout(30_000) });
    return new ToolReading(await response.text());
  }
}
