import assert from "node:assert/strict";
import { VolumeError, type VolumeErrorKind } from "../../src/volume/errors.ts";
import { wireStatus } from "../../src/csi/server/grpc_status.ts";
import { messagesIn, messagesInSources, messagesOfAdapters, messageStart } from "./error_messages.ts";
import { readPage } from "./pages.ts";

const page = readPage("docs/reference/errors.md").text.replace(/\s+/g, " ");

/** The messages on the page, as it writes them. */
const shown: readonly string[] = [...page.matchAll(/`(Cannot [^`]+)`/g)].map(([, text]) => text!);

Deno.test("every message of the rules and actions is on the page of errors", () => {
  const known = new Set(shown);
  const missing = messagesInSources().filter(({ text }) => !known.has(text));
  assert.deepEqual(missing.map(({ text, file }) => `${file}: ${text}`), []);
});

Deno.test("every message on the page of errors occurs in the sources", () => {
  const known = [...messagesInSources(), ...messagesOfAdapters()].map(({ text }) => text);
  const stale = shown.filter((text) => !known.includes(text));
  assert.deepEqual(stale, []);
  assert(shown.length > 100);
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
