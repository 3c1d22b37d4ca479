import assert from "node:assert/strict";
import { withAdvice } from "./build.ts";

Deno.test("withAdvice() names the runtime that cannot be downloaded, without the compiler's words", () => {
  const url = "https://dl.deno.land/release/v2.9.6/denort-x86_64-unknown-linux-gnu.zip";
  const text =
    `deno compile failed:\nerror: Writing\n\nCaused by:\n    1: error sending request for url (${url}): dns`;
  const advice = withAdvice(text);
  assert.ok(
    advice.startsWith("Cannot compile the executable because its runtime cannot be downloaded: url=" + url),
  );
  assert.match(advice, /; put a denort .*: make build DENORT_BIN=\/path\/to\/denort$/);
  assert.equal(advice.includes("Caused by"), false);
});

Deno.test("withAdvice() shows what the compiler says of anything else, behind the advice", () => {
  assert.match(withAdvice("the stack overflows"), /^Cannot compile .*DENORT_BIN=.*\nthe stack overflows$/);
});
