// A lint rule for names: files, identifiers, metrics and tests use the words of the field, and none that this code once
// made up. `make verify/words` runs it.

import { projectPath } from "./verify_imports.ts";

/** A word that is gone, as it stands in a name taken apart (`lookForChange` is "look for change"), and what to write. */
type Row = readonly [gone: RegExp, instead: string];

/** Nobody from this field expects these, in a name or in a sentence. */
const COINED: readonly Row[] = [
  [/\bstash\w*/, "staging state"],
  [/\bstray(?:s|ed)\b/, "misplaced, orphaned"],
  [/\bhandle border|\bbordered\b/, "volume-id prefix"],
  [/\bhappenings?\b/, "event"],
  [/\b(?:knob|quirk)s?\b/, "router behaviour, option"],
  [/\bunsettled\b/, "in doubt"],
  [/\bstrangers?\b/, "mismatched"],
  [/\blanes?\b/, "worker"],
  [/\bverdicts?\b/, "result"],
  [/\bleavers?\b/, "detaching node"],
  [/\bearlier driver\b/, "legacy driver"],
];

/** These are English in a sentence, and riddles as the name of a thing. */
const NAMES: readonly Row[] = [
  [/\b(?:world|seam|neighbour)s?\b/, "deps"],
  [/\blook for change\b|\blooked\b/, "load, read"],
  [/\bwide look\b/, "inventory"],
  [/\bt(?:old|ells?|elling)\b/, "report"],
  [/\bcourse\b/, "operation statistics"],
  // RouterOS calls a model of router a board.
  [/\b(?:controller|node|router|status) board\b/, "status store"],
  [/^turns$/, "keyed queue"],
  [/\bpatience\b/, "timeouts"],
  [/^at most$/, "semaphore"],
  [/\bpace\b/, "rate limiter"],
  [/\bmay still come\b/, "may still apply"],
  [/\blet go\b/, "release"],
  [/\bcut off\b/, "force-disconnect"],
  [/\bcalm\b/, "healthy"],
  [/\bstems?\b/, "file-name prefix"],
  [/\basking\b|\bgreetings?\b/, "client, handshake"],
  [/\bfigures?\b/, "totals"],
  [/\busual\b/, "default"],
  [/^(?:most|least) \w/, "max, min"],
  [/\bleaving\b/, "detaching"],
];

/** What is wrong with the name of a file, an identifier or a metric, in words; nothing when it is well. */
export function nameProblems(name: string): readonly string[] {
  const words = name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/[_\-./#]+/g, " ").toLowerCase().trim();
  return problems(words, name, [...COINED, ...NAMES]);
}

/** What is wrong with a sentence that people see, in words. */
export function sentenceProblems(sentence: string): readonly string[] {
  return problems(sentence.toLowerCase(), sentence, COINED);
}

function problems(words: string, text: string, rows: readonly Row[]): readonly string[] {
  return rows.filter(([gone]) => gone.test(words)).map(([, instead]) => `${text}: say ${instead}`);
}

/** Reports words that are gone from names, from a metric's or a flag's help, and from the names of tests. */
const words: Deno.lint.Rule = {
  create(context) {
    const report = (node: Deno.lint.Node, found: readonly string[]) => {
      for (const message of found) context.report({ node, message });
    };
    // Once a name, as it is written often.
    const seen = new Set<string>();
    const check = (node: Deno.lint.Identifier | Deno.lint.PrivateIdentifier) => {
      if (!seen.has(node.name)) report(node, nameProblems(node.name));
      seen.add(node.name);
    };
    return {
      Program: (node) => report(node, nameProblems(projectPath(context.filename).replace(/\.ts$/, ""))),
      Identifier: check,
      PrivateIdentifier: check,
      Literal: (node) => {
        if (typeof node.value !== "string") return;
        if (/^rds_csi_\w+$/.test(node.value)) report(node, nameProblems(node.value));
        else if (isSeen(node)) report(node, sentenceProblems(node.value));
      },
      TemplateLiteral: (node) => {
        if (isSeen(node)) {
          report(node, sentenceProblems(context.sourceCode.getText(node).replace(/\$\{.*?\}/g, "…")));
        }
      },
    };
  },
};

// A plugin of its own: Deno runs every rule of a plugin, and `make verify/architecture` is not to report these.
const plugin: Deno.lint.Plugin = { name: "rds-csi-words", rules: { words } };
export default plugin;

/** Whether people see it apart from the code: a test's name, or the help of a metric or a flag. */
function isSeen(node: Deno.lint.Literal | Deno.lint.TemplateLiteral): boolean {
  const { parent } = node;
  if (parent.type === "CallExpression") {
    const { callee } = parent;
    const name = callee.type === "MemberExpression" ? callee.property : callee;
    return parent.arguments[0] === node && name.type === "Identifier" && /(?:^t|T)est$/.test(name.name);
  }
  return parent.type === "Property" && parent.key.type === "Identifier" &&
    /^(?:help|name)$/.test(parent.key.name);
}
