// A lint rule: of the controller one file alone writes to the router, so that no write escapes what it remembers, and one alone
// sends what a rule has decided on.

import { projectPath } from "./verify_imports.ts";

/** The sender, and the store that only passes calls on. */
const senders = ["src/controller/records/commit.ts", "src/controller/reconcile/compared_store.ts"];

/** Who sends a change. */
const loop = "src/controller/records/loop.ts";

/** Reports every other use of `commit` of a store, and of `send` of a change, in the controller. */
export const oneSender: Deno.lint.Rule = {
  create(context) {
    const file = projectPath(context.filename);
    if (!file.startsWith("src/controller/") || file.endsWith("_test.ts")) return {};
    return {
      MemberExpression: (node) => {
        const called = nameOf(node.property);
        if (called === "send" && file !== loop) {
          context.report({ node, message: `${file}: only ${loop} sends a change` });
        }
        if (called !== "commit" || senders.includes(file)) return;
        const { object } = node;
        const of = object.type === "MemberExpression" ? nameOf(object.property) : nameOf(object);
        if (of === "store") {
          context.report({ node, message: `${file}: only ${senders[0]} writes to the store` });
        }
      },
    };
  },
};

function nameOf(node: Deno.lint.Node): string | undefined {
  return node.type === "Identifier" ? node.name : undefined;
}
