import type { Counts } from "../../tools/counts.ts";
import { complain, print } from "../../tools/print.ts";

/** The results of one suite's tests, with one line for each as it ends. */
export class Report {
  readonly #suite: string;
  readonly #counts = { passed: 0, failed: 0, skipped: 0, failures: [] as string[] };

  constructor(suite: string) {
    this.#suite = suite;
  }

  get counts(): Counts {
    return this.#counts;
  }

  /**
   * Runs one test and reports its result, or how it failed; once `signal` is aborted every test fails because of that.
   */
  async test(name: string, signal: AbortSignal, body: () => Promise<string>): Promise<boolean> {
    const started = performance.now();
    try {
      signal.throwIfAborted();
      const showed = await body();
      signal.throwIfAborted();
      this.passed(name, performance.now() - started, showed);
      return true;
    } catch (error) {
      this.failed(name, performance.now() - started, signal.aborted ? signal.reason : error);
      return false;
    }
  }

  passed(name: string, milliseconds: number, showed: string): void {
    this.#counts.passed++;
    print(`${this.#line("ok", milliseconds)} ${name}${showed === "" ? "" : `: ${showed}`}`);
  }

  failed(name: string, milliseconds: number, failure: unknown): void {
    this.#counts.failed++;
    complain(`${this.#line("FAILED", milliseconds)} ${name}`);
    const text = failure instanceof Error ? failure.stack ?? failure.message : String(failure);
    for (const line of text.split("\n")) complain(`    ${line}`);
    const short = (failure instanceof Error ? failure.message : text).replaceAll(/\s+/g, " ").slice(0, 300);
    this.#counts.failures.push(`${this.#suite}: ${name}: ${short}`);
  }

  /** Prints anything else: a measurement, or progress. */
  say(text: string): void {
    print(`${this.#suite}: ${text}`);
  }

  #line(word: string, milliseconds: number): string {
    return `${this.#suite.padEnd(10)} ${word.padEnd(7)} ${(milliseconds / 1000).toFixed(1).padStart(6)} s `;
  }
}
