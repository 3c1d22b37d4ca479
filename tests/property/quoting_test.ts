// The driver writes and the router reads: tests the builder of commands against the simulator's own parser, which
// shares no code with it. Every value comes back unchanged, and no value changes anything else in its command.
import assert from "node:assert/strict";
import fc from "fast-check";
import { type Fragment, isSendable, quote, ros } from "../../src/routeros/console/command.ts";
import {
  copyStatement,
  removeImageStatement,
  renameStatement,
  subvolumeStatements,
  wholeCloneStatement,
} from "../../src/routeros/store/mutations.ts";
import { addStatements, changeStatements, removeStatements } from "../support/write_statements.ts";
import {
  allDisksQuery,
  createFilesQuery,
  disksQuery,
  filesQuery,
  namedFilesQuery,
  someDisksQuery,
  someFilesQuery,
} from "../../src/routeros/store/queries.ts";
import { framed } from "../../src/routeros/console/reply.ts";
import { Parser } from "../../src/simulator/grammar/parser.ts";
import type { Statement } from "../../src/simulator/grammar/syntax.ts";
import { makeMenus } from "../../src/simulator/menu/menus.ts";
import { makeRouter } from "../support/simulated_router.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import { plainLocation, subvolumeLocation } from "../../src/volume/model/layout.ts";
import { propertyTest } from "./_property.ts";

const menus = makeMenus(makeRouter());

/** The content of a command: its grammar without the texts, and the texts in order. */
interface Reading {
  readonly grammar: string;
  readonly texts: readonly Text[];
}

/** A text in quotes; one after `~` is a pattern. */
type Text = readonly [kind: "text" | "pattern", text: string];

function read(text: string): Reading {
  const parser = new Parser(text, menus);
  const lines: (readonly Statement[])[] = [];
  while (!parser.finished) lines.push(parser.line());
  const texts: Text[] = [];
  const grammar = JSON.stringify(lines, (key, value) => {
    if (key === "targetOffset") return undefined;
    if (key === "menu") return value.path;
    if (value?.operator === "~") return { ...value, right: { ...value.right, kind: "pattern" } };
    if (value?.kind !== "quoted" && value?.kind !== "pattern") return value;
    const [part, ...others] = value.parts;
    assert.equal(typeof part, "string");
    assert.deepEqual(others, [], "a text in which something runs");
    texts.push([value.kind === "pattern" ? "pattern" : "text", part]);
    return { kind: "quoted" };
  });
  return { grammar, texts };
}

function aClone([id, folder, parent, comment]: readonly string[]) {
  const location = subvolumeLocation(`/p/f${folder}`, "l");
  const subvolume = { ...location.subvolume!, parent: { label: "l", path: `p${parent}` }, readOnly: false };
  return { id: id!, location, subvolume, sizeBytes: undefined, comment: comment! };
}

type Writer = (values: readonly string[]) => readonly Pick<Fragment, "text">[];

/** The driver's commands, each made from up to four values. */
const writers: Readonly<Record<string, Writer>> = {
  add: ([id, folder, image, comment]) =>
    addStatements({
      id: id!,
      location: plainLocation(`/p/${folder}/i${image}`),
      sizeBytes: 1n << 40n,
      comment: comment!,
      makeFolder: { path: `/p/${folder}`, label: undefined },
    }),
  "add in a subvolume": ([id, folder, label, comment]) => {
    const location = subvolumeLocation(`/p/f${folder}`, label!);
    return addStatements({
      id: id!,
      location,
      subvolume: { ...location.subvolume!, readOnly: false },
      sizeBytes: 1n,
      comment: comment!,
      makeFolder: { path: `/p/${folder}`, label },
    });
  },
  clone: (values) => {
    const volume = aClone(values);
    return [wholeCloneStatement(volume, volume.subvolume)];
  },
  // A clone that is too long for one command, whatever the values are.
  "clone in two commands": (values) => {
    const volume = aClone(values);
    const statements = addStatements({ ...volume, comment: volume.comment + "c".repeat(1024) });
    // The name of its mark is a digest of the comment.
    return statements.map(({ text }) => ({ text: text.replace(/no-disk-[0-9a-f]{8}/g, "no-disk-") }));
  },
  "add a copy": ([id, image, part, comment]) =>
    addStatements({
      id: id!,
      location: plainLocation(`/p/i${image}`),
      sizeBytes: undefined,
      comment: comment!,
      copied: { path: `/p/c${part}` },
    }),
  change: ([id, expected, comment, nqn]) =>
    changeStatements(id!, expected!, { comment: comment!, sizeBytes: 1n, export: { nqn: nqn!, port: 1 } }),
  withdraw: ([id, expected, comment]) =>
    changeStatements(id!, expected!, { comment: comment!, export: false }),
  remove: ([id, expected, image]) =>
    removeStatements({ id: id!, comment: expected! }, plainLocation(`/p/i${image}`)),
  "remove with a subvolume": ([id, expected, folder, label]) =>
    removeStatements({ id: id!, comment: expected! }, subvolumeLocation(`/p/f${folder}`, label!)),
  "remove a file": ([image]) => [removeImageStatement(plainLocation(`/p/i${image}`))],
  "remove a subvolume": (
    [folder, label],
  ) => [removeImageStatement(subvolumeLocation(`/p/f${folder}`, label!))],
  snapshot: ([folder, label, parent, part]) => {
    const subvolume = { label: label!, path: `f${folder}`, parent: { label: label!, path: `p${parent}` } };
    return subvolumeStatements({ ...subvolume, readOnly: true }, part!);
  },
  copy: ([from, to]) => [copyStatement(`/p/${from}`, `/p/${to}`)],
  rename: ([from, to, id, comment]) => [
    renameStatement(`/p/${from}`, `/p/${to}`, { id: id!, comment: comment! }),
  ],
  check: ([id, filePrefix, nonce]) => [framed(nonce!, 0, disksQuery(id!, filePrefix))],
  "look at files": ([part, nonce]) => [framed(nonce!, 1, filesQuery(part!))],
  "look at some files": ([pattern, nonce]) => [framed(nonce!, 1, someFilesQuery(pattern!))],
  "list files": ([image, other, more, nonce]) => [
    framed(nonce!, 1, namedFilesQuery([`/p/${image}`, `/p/${other}`, `/p/${more}`])),
  ],
  "look for a create": ([filePrefix, folder, nonce]) => [
    framed(nonce!, 1, createFilesQuery({ id: "", filePrefix: filePrefix!, folder: `/p/${folder}` })),
  ],
  "list disks": ([id, nonce]) => [framed(nonce!, 2, allDisksQuery(id!))],
  "list some disks": ([pattern, nonce]) => [framed(nonce!, 3, someDisksQuery(pattern!))],
};

/** Commands whose callers write the pattern themselves. */
const ownPatterns: readonly string[] = ["look at some files", "list some disks"];

// Marks that a pattern does not change.
const marks = [0, 1, 2, 3].map((index) => `-_${index}_-`);

/** Checks that a pattern finds every text with the values in it, and matches only their letters and digits. */
function assertFinds(pattern: string, marked: string, values: readonly string[]): void {
  const fill = (text: string, spell: (value: string) => string) =>
    text.replace(/-_(\d)_-/g, (_mark, which) => spell(values[Number(which)]!));
  const plain = marked.replaceAll("[.]", ".");
  assert.match(`before ${fill(plain, (value) => value)} behind`, new RegExp(pattern));
  const other = fill(plain, (value) => value.replace(/[A-Za-z0-9]/g, (one) => one === "q" ? "r" : "q"));
  if (values.some((value) => /[A-Za-z0-9]/.test(value)) && other !== fill(plain, (value) => value)) {
    assert.doesNotMatch(other, new RegExp(`^${pattern}$`));
  }
}

function send(write: Writer, values: readonly string[]): Reading {
  return read(write(values).map((statement) => statement.text).join("; "));
}

const printable = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index));
const special = [..."\\\"$;[]{}#'"];
/** Texts that the console interprets. */
const traps = [
  "$HOME",
  "$[/quit]",
  "$(1+1)",
  '"; /disk remove [find]; :put "',
  "\\n",
  "\\41",
  "\\",
  '\\"',
  "} ",
  "?",
];

const character = fc.oneof(
  { arbitrary: fc.constantFrom(...special), weight: 4 },
  { arbitrary: fc.constantFrom(...printable), weight: 4 },
  { arbitrary: fc.constantFrom(...traps), weight: 1 },
);
const value = fc.string({ unit: character, maxLength: 60, size: "max" });
/** One component of a path. */
const segment = value.map((text) => text.replaceAll("/", "|"));

propertyTest(
  "every text of printable characters comes back from the router's grammar unchanged",
  40_000,
  fc.property(value, (text) => {
    assert.deepEqual(read(ros`:put ${text}`.text), {
      grammar: '[[{"kind":"put","value":{"kind":"quoted"}}]]',
      texts: [["text", text]],
    });
  }),
);

for (const [name, write] of Object.entries(writers)) {
  const marked = send(write, marks);
  propertyTest(
    `to ${name}: every value arrives where it belongs, and changes nothing else`,
    4000,
    fc.property(fc.tuple(segment, segment, segment, segment), (values) => {
      const sent = send(write, values);
      assert.equal(sent.grammar, marked.grammar);
      assert.equal(sent.texts.length, marked.texts.length);
      marked.texts.forEach(([kind, text], index) => {
        const filled = text.replace(/-_(\d)_-/g, (_mark, which) => values[Number(which)]!);
        const [sentKind, sentText] = sent.texts[index]!;
        assert.equal(sentKind, kind);
        if (kind === "text" || ownPatterns.includes(name)) assert.equal(sentText, filled);
        else assertFinds(sentText, text, values);
      });
    }),
  );
}

propertyTest(
  "a text with any other character is refused before it is sent",
  8000,
  fc.property(
    value,
    fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
    value,
    (before, odd, after) => {
      const text = before + odd + after;
      if (printable.includes(odd)) return assert.ok(isSendable(text));
      assert.throws(() => quote(text), (error) => VolumeError.is(error, "invalid"));
    },
  ),
);
