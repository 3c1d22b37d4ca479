import assert from "node:assert/strict";
import { typing } from "../simulator_test_support.ts";

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
  Deno.test(`a text in quotes gives ${name}`, async () => {
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
  Deno.test(`${name} is a syntax error where it stands`, async () => {
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
