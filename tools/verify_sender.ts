// A lint rule: of the controller one file alone writes to the router, so that no write escapes what it remembers.

import { projectPath } from "./verify_imports.ts";

/** The sender, and the store that only passes calls on. */
const senders = ["src/controller/records/commit.ts", "src/controller/reconcile/compared_store.ts"];

/** Reports every other use of `commit` of a store in the controller. */
export const oneSender: Deno.lint.Rule = {
  create(context) {
    const file = projectPath(context.filename);
    if (!file.startsWith("src/controller/") || file.endsWith("_test.ts") || senders.includes(file)) return {};
    return {
      MemberExpression: (node) => {
        if (nameOf(node.property) !== "commit") return;
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
