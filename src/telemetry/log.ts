import { getJsonLinesFormatter, getLogfmtFormatter, type LogRecord } from "@logtape/logtape";
import { printable } from "../volume/model/printable.ts";
import type { Clock } from "../volume/ports/system.ts";

/** The severity of a record, least first. */
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;

/** One of {@linkcode LOG_LEVELS}. */
export type LogLevel = typeof LOG_LEVELS[number];

/** The form of a line: JSON for programs, or logfmt for people. */
export const LOG_FORMATS = ["json", "text"] as const;

/** One of {@linkcode LOG_FORMATS}. */
export type LogFormat = typeof LOG_FORMATS[number];

/** A log level that can change while the log is in use. */
export class LogThreshold {
  readonly #defaults: LogLevel;
  #level: LogLevel;

  constructor(defaults: LogLevel) {
    this.#defaults = defaults;
    this.#level = defaults;
  }

  /** The present level; everything from it upwards is logged. */
  get level(): LogLevel {
    return this.#level;
  }

  /** Also logs the next lower level; after the lowest one it restores the initial level. */
  lower(): void {
    this.#level = LOG_LEVELS[LOG_LEVELS.indexOf(this.#level) - 1] ?? this.#defaults;
  }
}

/** The fields of a record besides its message; a function is only called if the record is written. */
export type LogFields = Readonly<Record<string, unknown>> | (() => Readonly<Record<string, unknown>>);

/** The log of the rest of the driver. No method ever throws. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A logger that adds `fields` to every record. */
  with(fields: Readonly<Record<string, unknown>>): Logger;
}

/** Takes one line, including its line feed. It may throw; the line is then counted as dropped. */
export type LogSink = (line: string) => void;

/** Options of {@linkcode createLogger}. */
export interface LoggerOptions {
  readonly clock: Pick<Clock, "now">;
  readonly sink: LogSink;
  /** Read for every record, so that it can change. @default {"info"} */
  readonly level?: LogLevel | LogThreshold;
  /** @default {"json"} */
  readonly format?: LogFormat;
}

/**
 * Makes a logger that writes one JSON object on each line: `@timestamp`, `level`, `message`, `logger` and the fields;
 * or the same as logfmt. In either form the logged text can neither look like a line of its own, nor move the cursor of
 * a terminal.
 *
 * Only LogTape's formatters are used: its loggers and sinks are one global configuration, and two instances of this
 * driver in a process must share nothing.
 */
export function createLogger(options: LoggerOptions): Logger {
  const { level = "info", format = "json" } = options;
  const threshold = typeof level === "string" ? { level } : level;
  return loggerOf(new LineWriter(options.sink, options.clock, format), threshold, {});
}

/** Names that the formatters use themselves: a field of that name gets a trailing underscore. */
const RESERVED = new Set(["@timestamp", "level", "message", "logger", "time", "msg", "droppedLines"]);

const FORMATTED_LEVEL = { debug: "debug", info: "info", warn: "warning", error: "error" } as const;

function loggerOf(
  writer: LineWriter,
  threshold: Pick<LogThreshold, "level">,
  fields: Readonly<Record<string, unknown>>,
): Logger {
  const at = (level: LogLevel) => (message: string, more?: LogFields) => {
    if (LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(threshold.level)) return;
    writer.write(level, message, () => ({ ...fields, ...(typeof more === "function" ? more() : more) }));
  };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    with: (more) => loggerOf(writer, threshold, { ...fields, ...more }),
  };
}

class LineWriter {
  readonly #sink: LogSink;
  readonly #clock: Pick<Clock, "now">;
  readonly #format: (record: LogRecord) => string;
  #dropped = 0;

  constructor(sink: LogSink, clock: Pick<Clock, "now">, format: LogFormat) {
    this.#sink = sink;
    this.#clock = clock;
    this.#format = format === "text"
      ? getLogfmtFormatter()
      : getJsonLinesFormatter({ properties: "flatten" });
  }

  /** A lost line must not fail the call that logs it: it is counted, and the next line reports it. */
  write(level: LogLevel, message: string, fields: () => Record<string, unknown>): void {
    try {
      this.#sink(this.#line(level, message, fields));
      this.#dropped = 0;
    } catch {
      this.#dropped++;
    }
  }

  #line(level: LogLevel, message: string, fields: () => Record<string, unknown>): string {
    const dropped = this.#dropped === 0 ? {} : { droppedLines: this.#dropped };
    try {
      return this.#formatted(level, message, { ...renamed(fields()), ...dropped });
    } catch (error) {
      // A field with a throwing getter or toJSON must not cost the message.
      return this.#formatted(level, message, { ...dropped, unprintable: String(error) });
    }
  }

  #formatted(level: LogLevel, message: string, properties: Record<string, unknown>): string {
    const record: LogRecord = {
      category: ["rds-csi"],
      level: FORMATTED_LEVEL[level],
      message: [message],
      rawMessage: message,
      timestamp: this.#clock.now(),
      properties,
    };
    return printable(this.#format(record));
  }
}

function renamed(fields: Record<string, unknown>): Record<string, unknown> {
  if (!Object.keys(fields).some((key) => RESERVED.has(key))) return fields;
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [RESERVED.has(key) ? `${key}_` : key, value]),
  );
}

/** Writes whole lines to standard error before it returns, so that the last lines of a dying process are not lost. */
export function stderrSink(): LogSink {
  const encoder = new TextEncoder();
  return (line) => {
    const bytes = encoder.encode(line);
    for (let written = 0; written < bytes.length;) {
      written += Deno.stderr.writeSync(bytes.subarray(written));
    }
  };
}
