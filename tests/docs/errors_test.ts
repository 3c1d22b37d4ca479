import assert from "node:assert/strict";
import { VolumeError, type VolumeErrorKind } from "../../src/volume/errors.ts";
import { wireStatus } from "../../src/csi/server/grpc_status.ts";
import { messagesIn, messagesInSources, messageStart, sourcesBelow } from "./error_messages.ts";
import { readPage } from "./pages.ts";
import { join } from "node:path";
import { projectRoot } from "../support/parts.ts";

const page = readPage("docs/reference/errors.md").text.replace(/\s+/g, " ");

/** The messages on the page, as it writes them. */
const shown: readonly string[] = [...page.matchAll(/`(Cannot [^`]+)`/g)].map(([, text]) => text!);

/**
 * Returns those of the messages that a text of the page stands for: itself, or if it is none, all that begin with its words.
 */
function coveredBy(entry: string, messages: readonly string[]): readonly string[] {
  if (messages.includes(entry)) return [entry];
  return entry.split(" ").length < 3 ? [] : messages.filter((text) => /^\W/.test(rest(text, entry)));
}

/** Returns what follows the start of a text; "" if it does not begin so. */
function rest(text: string, start: string): string {
  return text.startsWith(start) ? text.slice(start.length) : "";
}

Deno.test("every message that a person can get is on the page of errors", () => {
  const messages = messagesInSources();
  const texts = messages.map(({ text }) => text);
  const known = new Set(shown.flatMap((entry) => coveredBy(entry, texts)));
  const missing = messages.filter(({ text }) => !known.has(text));
  assert.deepEqual(missing.map(({ text, file }) => `${file}: ${text}`), []);
});

Deno.test("every message on the page of errors occurs in the sources", () => {
  const texts = messagesInSources().map(({ text }) => text);
  const stale = shown.filter((entry) => coveredBy(entry, texts).length === 0);
  assert.deepEqual(stale, []);
  assert(shown.length > 100);
});

Deno.test("a text of the page that is a message stands for itself alone, and one that is none for all that begin so", () => {
  const messages = [
    "Cannot use the map because …",
    "Cannot use the map because it is old",
    "Cannot use the mapping",
  ];
  const covered = (entry: string) => coveredBy(entry, messages);
  assert.deepEqual(covered("Cannot use the map because …"), messages.slice(0, 1));
  assert.deepEqual(covered("Cannot use the map because it"), messages.slice(1, 2));
  assert.deepEqual(covered("Cannot use the map"), messages.slice(0, 2), "whole words");
  assert.deepEqual(covered("Cannot use the"), messages);
  assert.deepEqual(covered("Cannot use"), [], "three words at least");
});

Deno.test("the messages are looked for in every folder of the sources but the simulator's", () => {
  const files = new Set(messagesInSources().map(({ file }) => file));
  const all = sourcesBelow("src").filter((file) => !file.startsWith("src/simulator/"));
  const unread = all.filter((file) =>
    !files.has(file) && messagesIn(Deno.readTextFileSync(join(projectRoot, file))).length > 0
  );
  assert.deepEqual(unread, []);
  for (
    const start of [
      "Cannot mount at",
      "Cannot listen on",
      "Cannot probe the router in that folder",
      "Cannot use the cluster's configuration",
    ]
  ) {
    assert.ok(messagesInSources().some(({ text }) => text.startsWith(start)), start);
  }
});

Deno.test("the page of errors has the code of every kind", () => {
  const kinds: Readonly<Record<VolumeErrorKind, true>> = {
    "invalid": true,
    "not-found": true,
    "exists-incompatible": true,
    "in-use": true,
    "published-elsewhere": true,
    "node-unknown": true,
    "exhausted": true,
    "out-of-range": true,
    "busy": true,
    "unavailable": true,
    "identity-mismatch": true,
    "precondition": true,
    "unsupported": true,
    "unimplemented": true,
    "deadline": true,
    "cancelled": true,
    "unauthenticated": true,
    "bad-token": true,
    "internal": true,
  };
  for (const kind of Object.keys(kinds) as VolumeErrorKind[]) {
    const { code } = wireStatus(new VolumeError(kind, "Cannot"), "1");
    assert.match(page, new RegExp(`\\| \`${code}\` +\\| [^|]*\`${kind}\``), kind);
  }
});

Deno.test("messagesIn() finds messages in every form, and cuts off their details", () => {
  assert.deepEqual(
    messagesIn(
      [
        '/** Text: "Cannot be found here" */',
        'throw new TypeError("Cannot be a message for people");',
        'throw new VolumeError("busy", "Cannot do it");',
        "throw new VolumeError(`Cannot ${verb} the volume because it is ${a ? `${b}` : c} now: volume=${id}`);",
        '  `Cannot go on because there is ` +\n    `no way: why=${why}; ` + "try again",',
        "`Cannot read it because ${reason}: file=${f}`",
      ].join("\n"),
    ),
    [
      "Cannot do it",
      "Cannot … the volume because it is … now",
      "Cannot go on because there is no way",
      "Cannot read it because …",
    ],
  );
  assert.equal(messageStart("Cannot use it (for now): a=b"), "Cannot use it");
});
