// Lint rules that keep files and functions small enough to be read at once.

import { projectPath } from "./verify_imports.ts";

/** Maximum length of a file, in lines. */
export const FILE_LINES = 500;

/** Maximum length of a function, in lines, also of a test's callback. */
export const FUNCTION_LINES = 60;

/** Files and functions that may be longer, each with its reason: path, or path#function. */
export const EXEMPT: Readonly<Record<string, string>> = {};

/** Reports files of more than {@linkcode FILE_LINES} lines. */
export const fileLength: Deno.lint.Rule = {
  create(context) {
    const file = projectPath(context.filename);
    return {
      Program: (node) => {
        const lines = countLines(context.sourceCode.text);
        if (lines <= FILE_LINES || file in EXEMPT) return;
        context.report({ node, message: `${file} has ${lines} lines, and ${FILE_LINES} is the most` });
      },
    };
  },
};

/** Reports functions of more than {@linkcode FUNCTION_LINES} lines. */
export const functionLength: Deno.lint.Rule = {
  create(context) {
    const file = projectPath(context.filename);
    const check = (node: Deno.lint.Node) => {
      const lines = countLines(context.sourceCode.getText(node));
      if (lines <= FUNCTION_LINES) return;
      const name = nameOf(node);
      if (`${file}#${name}` in EXEMPT) return;
      const message = `${file}: the function ${name} has ${lines} lines, and ${FUNCTION_LINES} is the most`;
      context.report({ node, message });
    };
    return { FunctionDeclaration: check, FunctionExpression: check, ArrowFunctionExpression: check };
  },
};

function countLines(text: string): number {
  return text.replace(/\n$/, "").split("\n").length;
}

function nameOf(node: Deno.lint.Node): string {
  if ("id" in node && node.id?.type === "Identifier") return node.id.name;
  const parent = "parent" in node ? node.parent : undefined;
  const holder = parent?.type === "VariableDeclarator"
    ? parent.id
    : parent?.type === "MethodDefinition" || parent?.type === "Property"
    ? parent.key
    : undefined;
  return holder !== undefined && "name" in holder ? String(holder.name) : "(anonymous)";
}
