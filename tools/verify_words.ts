// A lint rule for names, comments and sentences: they use the words of the field, and none that this code once coined.
// `make verify/words` runs it, and tools/verify_words_pages.ts for the pages.

import { projectPath } from "./verify_imports.ts";

/**
 * A forbidden word, as it appears in a name split into words (`lookForChange` is "look for change"), and its
 * replacement.
 */
type Row = readonly [gone: RegExp, instead: string];

/** Words that readers from this field do not expect, in a name or in a sentence. */
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
  [/\bstems?\b/, "file-name prefix"],
  [/\bseams?\b/, "deps"],
  [/\bgreetings?\b/, "handshake"],
  [/\bwide look\b/, "inventory"],
  [/\bcalm\b/, "healthy"],
];

/** Words that are English in a sentence, and unclear as a name. */
const NAMES: readonly Row[] = [
  [/\b(?:world|neighbour)s?\b/, "deps"],
  [/\blook for change\b|\blooked\b/, "load, read"],
  [/\bt(?:old|ells?|elling)\b/, "report"],
  [/\bcourse\b/, "operation statistics"],
  // RouterOS calls a router's model a board.
  [/\b(?:controller|node|router|status) board\b/, "status store"],
  [/^turns$/, "keyed queue"],
  [/\bpatience\b/, "timeouts"],
  [/^at most$/, "semaphore"],
  [/\bpace\b/, "rate limiter"],
  [/\bmay still come\b/, "may still apply"],
  [/\blet go\b/, "release"],
  [/\bcut off\b/, "force-disconnect"],
  [/\basking\b/, "client"],
  [/\bfigures?\b/, "totals"],
  [/\busual\b/, "default"],
  [/^(?:most|least) \w/, "max, min"],
  [/\bleaving\b/, "detaching"],
];

/** The problems of a file's, an identifier's or a metric's name; none when it is fine. */
export function nameProblems(name: string): readonly string[] {
  const words = name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/[_\-./#]+/g, " ").toLowerCase().trim();
  return problems(words, name, [...COINED, ...NAMES]);
}

/**
 * The problems of a text that people read (a sentence, a comment or a page). Code in backticks is left out, because it
 * may quote names.
 */
export function proseProblems(text: string): readonly string[] {
  const prose = text.replace(/```.*?```|`[^`]*`/gs, "…").toLowerCase();
  return COINED.flatMap(([gone, instead]) =>
    gone.exec(prose)?.map((word) => `${word}: say ${instead}`) ?? []
  );
}

function problems(words: string, text: string, rows: readonly Row[]): readonly string[] {
  return rows.filter(([gone]) => gone.test(words)).map(([, instead]) => `${text}: say ${instead}`);
}

/** Reports forbidden words in names, comments and sentences, and in the names of tests. */
const words: Deno.lint.Rule = {
  create(context) {
    // The rule's own test has to contain the words.
    if (projectPath(context.filename) === "tools/verify_words_test.ts") return {};
    const report = (node: Deno.lint.Node, found: readonly string[]) => {
      for (const message of found) context.report({ node, message });
    };
    // Reports a name once, because it may appear often.
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
        else if (isSeen(node) || isSentence(node.value)) report(node, proseProblems(node.value));
      },
      TemplateLiteral: (node) => {
        const text = context.sourceCode.getText(node).slice(1, -1).replace(/\$\{.*?\}/g, "…");
        if (isSeen(node) || isSentence(text)) report(node, proseProblems(text));
      },
      "Program:exit": () => {
        for (const { range, value } of context.sourceCode.getAllComments()) {
          for (const message of proseProblems(value)) context.report({ range, message });
        }
      },
    };
  },
};

// A separate plugin: Deno runs every rule of a plugin, and `make verify/architecture` must not report these.
const plugin: Deno.lint.Plugin = { name: "rds-csi-words", rules: { words } };
export default plugin;

/** Whether a string is a sentence, and not a key or a name. */
function isSentence(text: string): boolean {
  return /\w \w/.test(text);
}

/** Whether people see it outside the code: a test's name, or the help of a metric or a flag. */
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
