import assert from "node:assert/strict";
import { addCommand, makeBasePath, makeRouter } from "../../../tests/support/simulated_router.ts";
import { Parser } from "../grammar/parser.ts";
import { makeMenus } from "../menu/menus.ts";
import { lintExec, lintStatement } from "./lint.ts";

const menus = makeMenus(makeRouter());

function rulesOf(command: string): string[] {
  return new Parser(command, menus).line().flatMap(lintStatement).map(({ rule }) => rule);
}

const json = "to=json options=json.no-string-conversion";
const clean: readonly string[] = [
  `${makeBasePath}; ${addCommand("a", 'nvme-tcp-export="no" comment="{rds1 x}"')}`,
  `:put ("n0 ".[:serialize ${json} value=[/disk print detail as-value where slot="S" or file-path="P"]]." n")`,
  `:put [:serialize ${json} value=[/disk print detail as-value proplist=slot,type where type="file" or mounted]]`,
  ':put [/file print detail as-value proplist=name,type,size where name="a" or name="b"]',
  '/disk set [find where slot="S" and comment="c"] comment="d" nvme-tcp-export="yes"',
  '/disk remove [find where slot="S" and comment="c"]; ' +
  ':if ([:len [/disk find where slot="S" or file-path="P"]] = 0) do={/file remove [find where name="P"]}',
  "/system resource print",
  '/disk disable [find where slot="a"]',
];

for (const command of clean) {
  Deno.test(`${command} breaks no rule`, () => {
    assert.deepEqual(rulesOf(command), []);
  });
}

const broken: readonly (readonly [command: string, rules: readonly string[]])[] = [
  ['/disk set "a" comment=x', ["unquoted-value"]],
  ['/disk set "a" disabled=no', ["unquoted-value"]],
  ['/disk set "a" comment=', ["unquoted-value"]],
  ['/disk set a comment="x"', ["unquoted-value"]],
  ["/disk remove a", ["unquoted-value"]],
  ["/disk remove [find where slot=a]", ["unquoted-value"]],
  ['/disk remove [find where slot="a" and comment=b]', ["unquoted-value"]],
  ["/disk print where slot=a", ["unquoted-value"]],
  ["/disk print where !(slot=a)", ["unquoted-value"]],
  [":put [:len [/disk find where slot~a]]", ["unquoted-value"]],
  [':if ([:len [/disk find where slot=a]] = 0) do={:put "x"}', ["unquoted-value"]],
  [":if (1 = 1) do={/disk remove a} else={/disk remove b}", ["unquoted-value", "unquoted-value"]],
  ['/disk set "a" comment="x$[/disk find]"', ["unquoted-value"]],
  [addCommand("a").replace(' mount-filesystem="no"', ""), ["mount-filesystem"]],
  [addCommand("a").replace('mount-filesystem="no"', 'mount-filesystem="yes"'), ["mount-filesystem"]],
  ['/disk set "a" mount-filesystem="yes"', ["mount-filesystem"]],
  ["/file print", ["file-print-without-proplist"]],
  [':put [/file print as-value where name="a"]', ["file-print-without-proplist"]],
  [':put [/file get "a"]', ["file-print-without-proplist"]],
  [":put [/file get [find where name=a] name]", ["unquoted-value"]],
  ['/disk/btrfs/subvolume/add fs=storage-pool-fs name="v"', ["unquoted-value"]],
  ["/disk/btrfs/subvolume/remove [find where fullname=v]", ["unquoted-value"]],
];

for (const [command, rules] of broken) {
  Deno.test(`${command} breaks ${rules[0]}`, () => {
    assert.deepEqual(rulesOf(command), rules);
  });
}

Deno.test("lintExec() measures bytes, and counts statements", () => {
  assert.deepEqual(lintExec("é".repeat(512), 4), []);
  const findings = lintExec("é".repeat(512) + "x", 5);
  assert.deepEqual(findings.map(({ rule }) => rule), ["command-too-long", "too-many-statements"]);
});

Deno.test("lintExec() lets a probe try how long a command may be", () => {
  assert.deepEqual(lintExec(`:put "rds-csi-probe-0123abcd${"x".repeat(2000)}"`, 1), []);
  const nearly = lintExec(`:put "rds-csi-probe-x${"x".repeat(2000)}"`, 1);
  assert.deepEqual(nearly.map(({ rule }) => rule), ["command-too-long"]);
});
