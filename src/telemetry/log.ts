import { getJsonLinesFormatter, type LogRecord } from "@logtape/logtape";
import type { Clock } from "../volume/ports.ts";

/** How much a record matters, least first. */
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;

/** One of {@linkcode LOG_LEVELS}. */
export type LogLevel = typeof LOG_LEVELS[number];

/** What a record says beside its message; a function is only called if the record is written. */
export type LogFields = Readonly<Record<string, unknown>> | (() => Readonly<Record<string, unknown>>);

/** What the rest of the driver logs with. No method ever throws. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A logger that adds `fields` to every record. */
  with(fields: Readonly<Record<string, unknown>>): Logger;
}

/** Takes one line, its line feed included. It may throw; the line is then counted as dropped. */
export type LogSink = (line: string) => void;

/** Options of {@linkcode createLogger}. */
export interface LoggerOptions {
  readonly clock: Pick<Clock, "now">;
  readonly sink: LogSink;
  /** @default {"info"} */
  readonly level?: LogLevel;
  /** Value of the `logger` field. @default {"rds-csi"} */
  readonly name?: string;
}

/**
 * Makes a logger that writes one JSON object a line: `@timestamp`, `level`, `message`, `logger` and the fields.
 *
 * Of LogTape only the formatter is used: its loggers and sinks are one global configuration, and two instances of this
 * driver in a process must share nothing.
 */
export function createLogger(options: LoggerOptions): Logger {
  const writer = new LineWriter(options.sink, options.clock, options.name ?? "rds-csi");
  return new JsonLogger(writer, LOG_LEVELS.indexOf(options.level ?? "info"), {});
}

/** Reads the name of a level; undefined for anything else. */
export function parseLogLevel(text: string): LogLevel | undefined {
  return LOG_LEVELS.find((level) => level === text);
}

/** Names that the formatter uses itself: a field of that name gets a trailing underscore. */
const RESERVED = new Set(["@timestamp", "level", "message", "logger", "droppedLines"]);

const FORMATTED_LEVEL = { debug: "debug", info: "info", warn: "warning", error: "error" } as const;

class JsonLogger implements Logger {
  readonly #writer: LineWriter;
  readonly #lowest: number;
  readonly #fields: Readonly<Record<string, unknown>>;

  constructor(writer: LineWriter, lowest: number, fields: Readonly<Record<string, unknown>>) {
    this.#writer = writer;
    this.#lowest = lowest;
    this.#fields = fields;
  }

  debug(message: string, fields?: LogFields): void {
    this.#log("debug", message, fields);
  }

  info(message: string, fields?: LogFields): void {
    this.#log("info", message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.#log("warn", message, fields);
  }

  error(message: string, fields?: LogFields): void {
    this.#log("error", message, fields);
  }

  with(fields: Readonly<Record<string, unknown>>): Logger {
    return new JsonLogger(this.#writer, this.#lowest, { ...this.#fields, ...fields });
  }

  #log(level: LogLevel, message: string, fields: LogFields | undefined): void {
    if (LOG_LEVELS.indexOf(level) < this.#lowest) return;
    this.#writer.write(level, message, () => ({
      ...this.#fields,
      ...(typeof fields === "function" ? fields() : fields),
    }));
  }
}

class LineWriter {
  readonly #sink: LogSink;
  readonly #clock: Pick<Clock, "now">;
  readonly #category: readonly string[];
  readonly #format = getJsonLinesFormatter({ properties: "flatten" });
  #dropped = 0;

  constructor(sink: LogSink, clock: Pick<Clock, "now">, name: string) {
    this.#sink = sink;
    this.#clock = clock;
    this.#category = [name];
  }

  /** A lost line is worth less than the call that wanted to log it: it is counted, and the next line tells. */
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
      category: this.#category,
      level: FORMATTED_LEVEL[level],
      message: [message],
      rawMessage: message,
      timestamp: this.#clock.now(),
      properties,
    };
    return this.#format(record);
  }
}

function renamed(fields: Record<string, unknown>): Record<string, unknown> {
  if (!Object.keys(fields).some((key) => RESERVED.has(key))) return fields;
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [RESERVED.has(key) ? `${key}_` : key, value]),
  );
}
