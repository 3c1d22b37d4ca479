// A lint rule: one file alone writes to the router, so that no write escapes what the controller remembers, and one alone sends
// what a rule of the controller has decided on.

import { projectPath } from "./verify_imports.ts";

/** The sender, and the store that only passes calls on. */
const senders = ["src/controller/records/commit.ts", "src/controller/reconcile/compared_store.ts"];

/** Who sends a change. */
const loop = "src/controller/records/loop.ts";

/** Reports every other use of `commit` of a store, and in the controller of `send` of a change. */
export const oneSender: Deno.lint.Rule = {
  create(context) {
    const file = projectPath(context.filename);
    if (!file.startsWith("src/") || file.endsWith("_test.ts")) return {};
    const check = (node: Deno.lint.Node, used: string | undefined) => {
      if (used === "send" && file.startsWith("src/controller/") && file !== loop) {
        context.report({ node, message: `${file}: only ${loop} sends a change` });
      }
      if (used !== "commit" || senders.includes(file)) return;
      context.report({ node, message: `${file}: only ${senders[0]} writes to the store` });
    };
    return {
      MemberExpression: (node) => check(node, nameOf(node.property)),
      "ObjectPattern > Property": (node: Deno.lint.Property) => check(node, nameOf(node.key)),
    };
  },
};

function nameOf(node: Deno.lint.Node): string | undefined {
  if (node.type === "Literal") return String(node.value);
  return node.type === "Identifier" ? node.name : undefined;
}
