import assert from "node:assert/strict";
import { typing } from "../../../tests/support/simulated_router.ts";

const refusals: readonly (readonly [command: string, refusal: string])[] = [
  ["foo", "bad command name foo (line 1 column 1)"],
  ["  foo bar", "bad command name foo (line 1 column 3)"],
  ["/foo print", "bad command name foo (line 1 column 2)"],
  ["/disk foo", "bad command name foo (line 1 column 7)"],
  ["/disk/foo", "bad command name foo (line 1 column 7)"],
  ["/disk/btrfs/subvolume/enable", "bad command name enable (line 1 column 23)"],
  ["/system resource add", "bad command name add (line 1 column 18)"],
  [":foo", "bad command name foo (line 1 column 2)"],
  ['/disk print; :put "é"; foo', "bad command name foo (line 1 column 25)"],
  ["/disk print foo", "expected end of command (line 1 column 13)"],
  ["/disk print foo=bar", "expected end of command (line 1 column 13)"],
  ["/disk print detail=yes", "expected end of command (line 1 column 19)"],
  ["/disk add foo=bar", "expected end of command (line 1 column 11)"],
  ["/disk set foo=bar", "expected end of command (line 1 column 14)"],
  ['/disk set "a" foo=bar', "expected end of command (line 1 column 15)"],
  ['/disk set "a"x', "expected end of command (line 1 column 14)"],
  ['/disk print where foo="x"', "expected end of command (line 1 column 19)"],
  ['/disk remove [find where foo="x"]', "expected end of command (line 1 column 26)"],
  ['/disk print where slot="x" )', "syntax error (line 1 column 28)"],
  ['/disk print where slot="x"]', "syntax error (line 1 column 27)"],
  [":put (", "syntax error (line 1 column 7)"],
  [":put", "syntax error (line 1 column 5)"],
  [':put ("a"', "syntax error (line 1 column 10)"],
  [":put [:len", "syntax error (line 1 column 11)"],
  [":if (1=1) {}", "syntax error (line 1 column 11)"],
  [":if (1=1) do={", "syntax error (line 1 column 15)"],
  [":serialize to=json", "syntax error (line 1 column 19)"],
  [":serialize from=json", "expected end of command (line 1 column 12)"],
];

for (const [command, refusal] of refusals) {
  Deno.test(`${JSON.stringify(command)} is refused with ${refusal}`, async () => {
    const type = await typing();
    assert.equal(await type(command), `${refusal}\r\n`);
  });
}

Deno.test("a word that add does not accept is refused at its position", async () => {
  const type = await typing();
  assert.equal(await type("/disk add foo"), "expected end of command (line 1 column 11)\r\n");
});

Deno.test("nothing of a line runs when any of it cannot be parsed", async () => {
  const type = await typing();
  assert.equal(await type(':put "a"; foo'), "bad command name foo (line 1 column 11)\r\n");
});

Deno.test("a line runs before the next one is read, and positions count lines", async () => {
  const type = await typing();
  assert.equal(await type(':put "a"\r\n  foo'), "a\r\nbad command name foo (line 2 column 3)\r\n");
});

Deno.test("a chain stops at its first failure", async () => {
  const type = await typing();
  assert.equal(await type(':put "a"; /disk remove "x"; :put "b"'), "a\r\nno such item\r\n");
});

const alike = ["/disk print count-only", "/disk/print count-only", "/ disk print count-only"];
for (const command of [...alike, "disk print count-only", "/disk; print count-only"]) {
  Deno.test(`${JSON.stringify(command)} reaches the menu`, async () => {
    const type = await typing();
    assert.equal(await type(command), "3\r\n");
  });
}

Deno.test("empty commands and a semicolon at the end have no effect", async () => {
  const type = await typing();
  assert.equal(await type(';; :put "a" ; ;'), "a\r\n");
});

const results: readonly (readonly [expression: string, value: string])[] = [
  ['("a"."b")', "ab"],
  ['("a" . [:len "xyz"] . "b")', "a3b"],
  ['("a" = "a")', "true"],
  ['("a" != "a")', "false"],
  ["([:len [/disk find]] = 3)", "true"],
  ["(2 < 10)", "true"],
  ["(2 > 10)", "false"],
  ['("a" = "a" and !("b" = "c"))', "true"],
  ['("a" = "b" or not "c" = "c")', "false"],
  ['("abc" ~ "^ab")', "true"],
  ['("x$unknown")', "x"],
  ["$unknown", ""],
  ["word", "word"],
  ["[/disk find]", "*1;*2;*3"],
];

for (const [expression, value] of results) {
  Deno.test(`${expression} has the value ${JSON.stringify(value)}`, async () => {
    const type = await typing();
    assert.equal(await type(`:put ${expression}`), `${value}\r\n`);
  });
}

Deno.test(":if runs one of its branches", async () => {
  const type = await typing();
  const command = (count: number) =>
    `:if ([:len [/disk find]] = ${count}) do={:put "yes"; :put "!"} else={:put "no"}`;
  assert.equal(await type(command(3)), "yes\r\n!\r\n");
  assert.equal(await type(command(4)), "no\r\n");
});

Deno.test(":if without else does nothing when its condition does not hold", async () => {
  const type = await typing();
  assert.equal(await type(':if ("a" = "b") do={:put "x"}; :put "end"'), "end\r\n");
});

Deno.test(":put prints no more than the behaviour maxPut, without saying so", async () => {
  const type = await typing({ maxPut: 5 });
  assert.equal(await type(':put "123456789"'), "12345\r\n");
});

const texts: readonly (readonly [name: string, written: string, meant: string])[] = [
  ["plain words", '"a b c"', "a b c"],
  ["an escaped backslash", String.raw`"a\\b"`, String.raw`a\b`],
  ["an escaped quote", String.raw`"a\"b"`, 'a"b'],
  ["an escaped dollar", String.raw`"a\$b"`, "a$b"],
  ["an escaped newline", String.raw`"a\nb"`, "a\nb"],
  ["an escaped carriage return", String.raw`"a\rb"`, "a\rb"],
  ["an escaped tab", String.raw`"a\tb"`, "a\tb"],
  ["an escaped blank", String.raw`"a\_b"`, "a b"],
  ["an escaped question mark", String.raw`"a\?b"`, "a?b"],
  ["a byte in hexadecimal", String.raw`"\41\5F"`, "A_"],
  ["a letter of two bytes in hexadecimal", String.raw`"\C3\A9"`, "é"],
  ["an unescaped variable", '"a$name b"', "a b"],
  ["an unescaped dollar before a blank", '"a$ b"', "a b"],
  ["a variable up to the first character that is no letter or digit", '"$a_b"', "_b"],
  ["a command run from within", '"<$[:len "four"]>"', "<4>"],
  ["an expression computed within", '"<$("a"."b")>"', "<ab>"],
  ["brackets, semicolons and apostrophes", `"[find]; {x} 'y' #z"`, "[find]; {x} 'y' #z"],
  ["a line end inside the quotes", '"a\r\nb"', "a\r\nb"],
  ["letters beyond ASCII", '"größe"', "größe"],
];

for (const [name, written, meant] of texts) {
  Deno.test(`a quoted text becomes ${name}`, async () => {
    const type = await typing();
    assert.equal(await type(`:put ${written}`), `${meant}\r\n`);
  });
}

const wrong: readonly (readonly [name: string, command: string, column: number])[] = [
  ["an unknown escape", String.raw`:put "a\qb"`, 8],
  ["a hexadecimal escape in small letters", String.raw`:put "\c3"`, 7],
  ["half a hexadecimal escape", String.raw`:put "\4"`, 7],
  ["an escaped apostrophe", String.raw`:put "it\'s"`, 9],
  ["a text without end", ':put "abc', 10],
  ["an escape at the end", ':put "abc\\', 10],
];

for (const [name, command, column] of wrong) {
  Deno.test(`${name} is a syntax error at its position`, async () => {
    const type = await typing();
    assert.equal(await type(command), `syntax error (line 1 column ${column})\r\n`);
  });
}

Deno.test("an apostrophe does not quote", async () => {
  const type = await typing();
  assert.equal(await type(":put 'a b'"), "expected end of command (line 1 column 9)\r\n");
});

Deno.test("a line end outside quotes ends the command and the next one runs", async () => {
  const type = await typing();
  assert.equal(await type(':put "a"\n:put "b"\r\n:put "c"'), "a\r\nb\r\nc\r\n");
});

Deno.test("a comment that ends its quotes early runs what follows", async () => {
  const type = await typing();
  const out = await type(':put "{"; :put "run"; #"');
  assert.equal(out, "{\r\nrun\r\n");
});
