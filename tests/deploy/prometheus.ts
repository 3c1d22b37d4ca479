import assert from "node:assert/strict";
import { findProgram } from "../../tools/host_command.ts";
import { freePort } from "../support/parts.ts";
import { eventually } from "../support/eventually.ts";

/** Whether Prometheus or its promtool is missing; tests that need them are then ignored with a message. */
export const prometheusMissing = ["prometheus", "promtool"].some((name) => findProgram(name) === undefined);
if (prometheusMissing) {
  const note = "ignored: what tries alerts and queries needs Prometheus; apt-get install prometheus\n";
  Deno.stderr.writeSync(new TextEncoder().encode(note));
}

/** Runs `promtool` and returns its result. */
export async function promtool(...args: readonly string[]): Promise<{ success: boolean; output: string }> {
  const { success, stdout, stderr } = await new Deno.Command(findProgram("promtool")!, {
    args: [...args],
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  return { success, output: decoder.decode(stdout) + decoder.decode(stderr) };
}

/** One series of a query's result. */
export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  /** The time in seconds since the Unix epoch, and the value. */
  readonly value: readonly [number, string];
}

/** A Prometheus for one test. */
export interface Prometheus extends AsyncDisposable {
  /**
   * Returns the series that a query finds now.
   *
   * @throws {Error} when Prometheus does not accept the query, with its message
   */
  query(expr: string): Promise<readonly Sample[]>;
  /** Returns the alerts that are pending or fire now. */
  alerts(): Promise<readonly ActiveAlert[]>;
}

/** An alert with its texts filled in. */
export interface ActiveAlert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly state: "pending" | "firing";
}

/**
 * Starts a Prometheus that scrapes these targets every second, `host:port` each, with its files in `folder`.
 *
 * @param rules files of rules, which it evaluates as often
 */
export async function startPrometheus(
  folder: string,
  targets: readonly string[],
  rules: readonly string[] = [],
): Promise<Prometheus> {
  const config = `${folder}/prometheus.json`;
  const job = { job_name: "rds-csi", static_configs: [{ targets }] };
  await Deno.writeTextFile(
    config,
    JSON.stringify({
      global: { scrape_interval: "1s", evaluation_interval: "1s" },
      ...{ rule_files: rules, scrape_configs: [job] },
    }),
  );
  const address = `127.0.0.1:${freePort()}`;
  const server = new Deno.Command(findProgram("prometheus")!, {
    args: [
      ...[`--config.file=${config}`, `--storage.tsdb.path=${folder}/data`, "--log.level=error"],
      `--web.listen-address=${address}`,
    ],
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  const stop = async () => {
    server.kill("SIGTERM");
    assert.equal((await server.status).code, 0, "Prometheus ended in order");
  };
  try {
    await eventually(() => fetch(`http://${address}/-/ready`).then(isOk, () => false));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    async alerts() {
      const response = await fetch(`http://${address}/api/v1/alerts`);
      return (await response.json()).data.alerts;
    },
    async query(expr) {
      const response = await fetch(`http://${address}/api/v1/query?${new URLSearchParams({ query: expr })}`);
      const { status, error, data } = await response.json();
      if (status !== "success") throw new Error(`${error}: ${expr}`);
      assert.equal(data.resultType, "vector", expr);
      return data.result;
    },
    [Symbol.asyncDispose]: stop,
  };
}

async function isOk(response: Response): Promise<boolean> {
  await response.text();
  return response.ok;
}
