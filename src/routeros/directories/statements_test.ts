import assert from "node:assert/strict";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { fitsOneExec } from "../console/exchange.ts";
import { namedFilesQuery, resourceQuery } from "../store/queries.ts";
import {
  countQuery,
  findQuery,
  makeStatement,
  markedQuery,
  removeStatement,
  renameStatement,
  shareQuery,
} from "./statements.ts";

const longest = "/share/".padEnd(70, "p");
const deleted = `${longest}.deleted-00112233`;

Deno.test("every command about the longest path fits into one exec, as deep as 20 levels", () => {
  const find = [namedFilesQuery([longest, deleted]), shareQuery(longest)];
  assert.ok(fitsOneExec([makeStatement(longest)], find));
  assert.ok(fitsOneExec([renameStatement(longest, deleted)], find));
  assert.ok(fitsOneExec([], [findQuery([longest], longest), shareQuery(longest), resourceQuery]));
  const left = [shareQuery(deleted), countQuery(deleted)];
  for (const part of [{ kind: "whole" }, { kind: "files" }, { kind: "level", depth: 20 }] as const) {
    assert.ok(fitsOneExec([removeStatement(deleted, part)], left), part.kind);
  }
});

Deno.test("a removal names its directory to the letter: a dot stands for nothing else", () => {
  const statement = removeStatement("/share/a.0123abcd.deleted-00112233", { kind: "files" });
  assert.equal(
    statement.text,
    ':if (([:len [/disk find where mounted and mount-point~"^/?share/a[.]0123abcd[.]deleted-00112233(/|\\$)"]]=0) and ' +
      '([:len [/file find where type="disk" and name~"^/?share/a[.]0123abcd[.]deleted-00112233(/|\\$)"]]=0)) do={' +
      '/file remove [find where type!="directory" and name~"^share/a[.]0123abcd[.]deleted-00112233/"]}',
  );
});

Deno.test("no pattern is made of a path with other characters", () => {
  for (const path of ["/share/a*", "/share/a b", "/share/(a)", "/share/ü", "/share/$x"]) {
    assert.throws(() => removeStatement(path, { kind: "whole" }), refusal("internal"), path);
  }
  assert.throws(() => markedQuery("/share/a+", "0123abcd"), refusal("internal"));
});
