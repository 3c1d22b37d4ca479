import assert from "node:assert/strict";
import { ros } from "./command.ts";
import { explainRefusal, framed, parseReply } from "./reply.ts";

const n = "0123456789ab";

Deno.test("framed() wraps a query in the marks of its exec and its index", () => {
  assert.equal(
    framed(n, 2, ros`/disk print where slot=${"s"}`).text,
    `:put ("${n}2 ".[:serialize to=json options=json.no-string-conversion value=[/disk print where slot="s"]]." ${n}")`,
  );
});

for (const [name, end] of [["CRLF", "\r\n"], ["LF", "\n"], ["CR", "\r"]] as const) {
  Deno.test(`parseReply() reads whole frames with ${name}`, () => {
    const reply = parseReply(`${n}0 [] ${n}${end}${n}1 {"a":1} ${n}${end}`, n, 2);
    assert.deepEqual(reply, { frames: ["[]", `{"a":1}`], complete: true, begun: true, text: "" });
  });
}

Deno.test("parseReply() accepts a last frame without line end as complete", () => {
  assert.equal(parseReply(`${n}0 [] ${n}`, n, 1).complete, true);
});

const whole = `${n}0 [{"slot":"a"}] ${n}\r\n${n}1 [] ${n}\r\n`;
Deno.test("parseReply() never accepts a reply cut at any byte as complete", () => {
  for (let length = 0; length < whole.length - 2; length++) {
    const reply = parseReply(whole.slice(0, length), n, 2);
    assert.equal(reply.complete, false, `cut at ${length}`);
    const first = reply.frames[0];
    assert.ok(first === undefined || first === `[{"slot":"a"}]`, `cut at ${length}: ${first}`);
    assert.equal(reply.begun, length > 0, `cut at ${length}`);
    assert.equal(reply.text, "", `cut at ${length}`);
  }
});

for (
  const [name, output] of [
    ["missing", `${n}1 [] ${n}\r\n`],
    ["torn, while the next one is whole", `${n}0 [{"slo\r\n${n}1 [] ${n}\r\n`],
    ["cut by a line end", `${n}0 [{"slot":\r\n"a"}] ${n}\r\n${n}1 [] ${n}\r\n`],
    ["there twice", `${n}0 [] ${n}\r\n${n}0 [] ${n}\r\n${n}1 [] ${n}\r\n`],
    ["run together with the next", `${n}0 [{"slo${n}1 [] ${n}\r\n`],
    ["of another exec", `ffffffffffff0 [] ffffffffffff\r\n${n}1 [] ${n}\r\n`],
  ] as const
) {
  Deno.test(`parseReply() returns no frame where it is ${name}`, () => {
    const reply = parseReply(output, n, 2);
    assert.equal(reply.frames[0], undefined);
    assert.equal(reply.complete, false);
  });
}

Deno.test("parseReply() returns the text before the frames", () => {
  const reply = parseReply(`failure: already have such item\r\n`, n, 1);
  assert.deepEqual(reply, {
    frames: [undefined],
    complete: false,
    begun: false,
    text: "failure: already have such item",
  });
});

Deno.test("parseReply() separates noise from complete frames", () => {
  const reply = parseReply(`some\u001b[m noise\r\nmore\r\n${n}0 [] ${n}\r\nlast\r\n`, n, 1);
  assert.equal(reply.complete, true);
  assert.equal(reply.text, "some[m noise · more · last");
});

Deno.test("parseReply() finds a complete frame after text without line end", () => {
  const reply = parseReply(`progress 100%${n}0 [] ${n}\r\n`, n, 1);
  assert.deepEqual(reply.frames, ["[]"]);
  assert.equal(reply.text, "progress 100%");
});

Deno.test("parseReply() treats an echo of the command as text, not as a frame", () => {
  const echo = `syntax error in ${framed(n, 0, ros`/disk print`).text} (line 1 column 3)`;
  const reply = parseReply(`${echo}\r\n`, n, 1);
  assert.equal(reply.begun, false);
  assert.equal(reply.complete, false);
  assert.match(reply.text, /^syntax error/);
});

Deno.test("parseReply() keeps a payload that looks like an error or a frame of another nonce", () => {
  const payload = `[{"comment":"failure: no such item ${n.slice(1)}0 [] x"}]`;
  assert.equal(parseReply(`${n}0 ${payload} ${n}\r\n`, n, 1).frames[0], payload);
});

Deno.test("parseReply() treats another line as text, even one that equals the start of a mark", () => {
  const nonce = "0123456789ab";
  assert.deepEqual(parseReply("0\r\nfailure\r\n", nonce, 1), {
    frames: [undefined],
    complete: false,
    begun: false,
    text: "0 · failure",
  });
  assert.equal(parseReply("failure\r\n0", nonce, 1).begun, true);
});

Deno.test("explainRefusal() adds what to do where the text is known", () => {
  assert.match(
    explainRefusal("not enough permissions (9) (/disk/add; line 1)"),
    /policies ssh, read and write/,
  );
  assert.match(explainRefusal("failure: not allowed by device-mode (x)"), /device-mode\/update/);
});

Deno.test("explainRefusal() shows unknown texts as they are, shortened", () => {
  assert.equal(explainRefusal("blue giraffe"), `"blue giraffe"`);
  assert.ok(explainRefusal("x".repeat(5000)).length < 320);
});

Deno.test("parseReply() reads millions of lines without keeping them", () => {
  const nonce = "0123456789ab";
  const frame = `${nonce}0 [] ${nonce}`;
  for (const [noise, size] of [["\r\n", 30e6], ["a\n", 30e6], ["\r", 1e6], ["\u0007\n", 1e6]] as const) {
    const many = noise.repeat(size / noise.length);
    const startMs = performance.now();
    const { frames, complete, text } = parseReply(`${many}${frame}\r\n${many}`, nonce, 1);
    assert.deepEqual([frames, complete], [["[]"], true], JSON.stringify(noise));
    assert.ok(text.length < 1000, JSON.stringify(noise));
    assert.ok(performance.now() - startMs < 5_000, JSON.stringify(noise));
  }
});

Deno.test("parseReply() finds a torn frame at the end of many lines", () => {
  const nonce = "0123456789ab";
  const lines = "a\n".repeat(1000);
  assert.equal(parseReply(`${lines}${nonce}0 [`, nonce, 1).begun, true);
  assert.equal(parseReply(`${lines}${nonce.slice(0, 5)}`, nonce, 1).begun, true);
  assert.equal(parseReply(`${lines}${nonce.slice(0, 5)}\n`, nonce, 1).begun, false);
});
