const encoder = new TextEncoder();

/** Prints a line of a tool's result. */
export function print(line: string): void {
  writeAll(Deno.stdout, `${line}\n`);
}

/** Prints a line about a problem. */
export function complain(line: string): void {
  writeAll(Deno.stderr, `${line}\n`);
}

/** A pipe takes only what fits, so a line may need several writes. */
function writeAll(target: { writeSync(bytes: Uint8Array): number }, text: string): void {
  let bytes = encoder.encode(text);
  while (bytes.length > 0) bytes = bytes.subarray(target.writeSync(bytes));
}
