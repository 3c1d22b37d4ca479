import assert from "node:assert/strict";
import { throwsWith } from "../../../tests/fakes/volume_errors.ts";
import {
  command,
  fits,
  type Fragment,
  joined,
  maxCommandBytes,
  onlyIf,
  quote,
  ros,
  unless,
} from "./command.ts";

for (
  const [value, sent] of [
    ["plain", `"plain"`],
    ["", `""`],
    ["a\\b", `"a\\\\b"`],
    [`a"b`, `"a\\"b"`],
    ["a$b", `"a\\$b"`],
    ["; /system reset", `"; /system reset"`],
    ["[/quit]", `"[/quit]"`],
    ["\\n", `"\\\\n"`],
    [`"; /disk remove [find]; "`, `"\\"; /disk remove [find]; \\""`],
    ["it's {x} (y) #z", `"it's {x} (y) #z"`],
  ] as const
) {
  Deno.test(`quote() sends ${JSON.stringify(value)} so that RouterOS reads it back unchanged`, () => {
    assert.equal(quote(value), sent);
  });
}

for (const value of ["a\nb", "a\rb", "a\0b", "\t", "\u007f", "\u0085", "é", "日本", "\u2028", "\ud800"]) {
  Deno.test(`quote() throws invalid for ${JSON.stringify(value)}`, () => {
    throwsWith(() => quote(value), "invalid");
  });
}

Deno.test("ros quotes every kind of value, also numbers and booleans", () => {
  const statement = ros`/disk set x=${"s"} a=${1} b=${2n ** 60n} c=${true} d=${false}`;
  assert.equal(statement.text, `/disk set x="s" a="1" b="1152921504606846976" c="yes" d="no"`);
});

Deno.test("ros inserts a fragment unchanged", () => {
  const where = joined([ros`slot=${"a"}`, ros`slot=${"b"}`], " or ");
  assert.equal(ros`/disk print where ${where}`.text, `/disk print where slot="a" or slot="b"`);
});

Deno.test("ros throws invalid for a number that is not exact", () => {
  throwsWith(() => ros`/disk set a=${2 ** 53}`, "invalid");
  throwsWith(() => ros`/disk set a=${NaN}`, "invalid");
});

Deno.test("ros throws internal for text instead of a literal", () => {
  const made = Object.assign(["/disk remove [find]"], { raw: ["/disk remove [find]"] });
  throwsWith(() => ros(made as unknown as TemplateStringsArray), "internal");
  throwsWith(() => ros(["/quit"] as unknown as TemplateStringsArray), "internal");
  throwsWith(() => ros("/quit" as unknown as TemplateStringsArray), "internal");
});

Deno.test("ros throws internal when a literal contains a second statement or a line end", () => {
  throwsWith(() => ros`/disk print; /quit`, "internal");
  throwsWith(() => ros`/disk print\n/quit`, "internal");
});

Deno.test("ros quotes an object that only reads like a fragment", () => {
  const forged = { text: "/quit" } as unknown as Fragment;
  assert.equal(ros`${forged}`.text, `"[object Object]"`);
});

Deno.test("command() chains statements with a semicolon", () => {
  const two = command(ros`/a`, ros`/b c=${"d"}`);
  assert.equal(two.text, `/a; /b c="d"`);
  assert.equal(two.statements, 2);
});

Deno.test("command() throws internal for none and for five statements", () => {
  throwsWith(() => command(), "internal");
  throwsWith(() => command(ros`/a`, ros`/a`, ros`/a`, ros`/a`, ros`/a`), "internal");
});

Deno.test("command() throws invalid above 1024 bytes, counting escapes", () => {
  const room = maxCommandBytes - `/a b=""`.length;
  assert.equal(command(ros`/a b=${"x".repeat(room)}`).text.length, maxCommandBytes);
  throwsWith(() => command(ros`/a b=${"x".repeat(room + 1)}`), "invalid");
  throwsWith(() => command(ros`/a b=${"x".repeat(room - 1) + "$"}`), "invalid");
  assert.equal(fits([ros`/a b=${"x".repeat(room)}`]), true);
  assert.equal(fits([ros`/a b=${"x".repeat(room + 1)}`]), false);
});

Deno.test("unless() runs a statement where the condition does not hold, and else stops with the text", () => {
  assert.equal(
    unless(ros`[:len [/disk find where slot=${"a"}]]>0`, 'it "is" taken', ros`/disk add slot=${"a"}`).text,
    `:if ([:len [/disk find where slot="a"]]>0) do={:error "it \\"is\\" taken"} else={/disk add slot="a"}`,
  );
});

Deno.test("onlyIf() puts every statement after all conditions", () => {
  const [one, two] = [ros`[:len [/disk find where slot=${"a"}]] = 0`, ros`[:len [/file find]] = 1`];
  const [add, set] = [ros`/disk add slot=${"a; }"}`, ros`/disk set ${"b"}`];
  assert.equal(
    onlyIf([one], add).text,
    `:if ([:len [/disk find where slot="a"]] = 0) do={/disk add slot="a; }"}`,
  );
  assert.equal(
    onlyIf([one, two], add, set).text,
    `:if (([:len [/disk find where slot="a"]] = 0) and ([:len [/file find]] = 1)) ` +
      `do={/disk add slot="a; }"; /disk set "b"}`,
  );
});
