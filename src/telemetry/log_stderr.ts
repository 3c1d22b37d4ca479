import type { LogSink } from "./log.ts";

/** Writes whole lines to standard error before it returns, so that the last words of a dying process are not lost. */
export function stderrSink(): LogSink {
  const encoder = new TextEncoder();
  return (line) => {
    const bytes = encoder.encode(line);
    for (let written = 0; written < bytes.length;) {
      written += Deno.stderr.writeSync(bytes.subarray(written));
    }
  };
}
