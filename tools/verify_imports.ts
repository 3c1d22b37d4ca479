// Lint rules for the direction of imports and for what must be passed in (see verify_layers.ts).

import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { globalProblem, importProblem } from "./verify_layers.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** A file's path from the root of the project. */
export function projectPath(filename: string): string {
  return relative(ROOT, filename);
}

/** Reports every import, export from, dynamic import and import type that goes against the arrow. */
export const importDirection: Deno.lint.Rule = {
  create(context) {
    const file = projectPath(context.filename);
    const check = (node: Deno.lint.Node, specifier: unknown, typeOnly: boolean) => {
      if (typeof specifier !== "string") {
        // Tests may import any file of a folder of theirs.
        if (file.startsWith("tests/")) return;
        context.report({ node, message: `${file}: only a literal can be imported` });
        return;
      }
      const target = specifier.startsWith(".") ? join(dirname(file), specifier) : undefined;
      const problem = importProblem(file, specifier, target, typeOnly);
      if (problem !== undefined) context.report({ node, message: `${file}: ${problem}` });
    };
    return {
      ImportDeclaration: (node) => check(node, node.source.value, isTypeOnly(node)),
      ExportAllDeclaration: (node) => check(node, node.source.value, node.exportKind === "type"),
      ExportNamedDeclaration: (node) => {
        if (node.source) check(node, node.source.value, node.exportKind === "type");
      },
      ImportExpression: (node) => check(node, literal(node.source), false),
      TSImportType: (node) => check(node, literal(node.argument), true),
    };
  },
};

/** Reports clocks, timers, randomness, processes, environment and arguments that are not passed in. */
export const passedIn: Deno.lint.Rule = {
  create(context) {
    const file = projectPath(context.filename);
    const check = (node: Deno.lint.Node, name: string) => {
      const problem = globalProblem(file, name);
      if (problem !== undefined) context.report({ node, message: `${file}: ${problem}` });
    };
    return {
      MemberExpression: (node) => {
        const object = globalName(node.object);
        const property = node.computed ? literal(node.property) : name(node.property);
        if (object !== undefined && property !== undefined) check(node, `${object}.${property}`);
        if (object === "globalThis" && property !== undefined) check(node, property);
      },
      CallExpression: (node) => {
        if (node.callee.type === "Identifier") check(node, node.callee.name);
      },
      // `new Date()` is the same as Date.now(); `new Date(ms)` reads no clock.
      NewExpression: (node) => {
        if (name(node.callee) === "Date" && node.arguments.length === 0) check(node, "Date.now");
      },
      // `const { env } = Deno` reads a member without naming it as one.
      VariableDeclarator: (node) => {
        if (node.id.type !== "ObjectPattern" || node.init?.type !== "Identifier") return;
        for (const property of node.id.properties) {
          if (property.type === "Property") check(node, `${node.init.name}.${name(property.key)}`);
        }
      },
    };
  },
};

function isTypeOnly(node: Deno.lint.ImportDeclaration): boolean {
  if (node.importKind === "type") return true;
  return node.specifiers.length > 0 &&
    node.specifiers.every((one) => one.type === "ImportSpecifier" && one.importKind === "type");
}

/** `Deno` of `Deno.env` and of `globalThis.Deno.env`. */
function globalName(node: Deno.lint.Node): string | undefined {
  if (node.type === "MemberExpression" && name(node.object) === "globalThis") return name(node.property);
  return name(node);
}

function name(node: Deno.lint.Node): string | undefined {
  return node.type === "Identifier" ? node.name : undefined;
}

function literal(node: Deno.lint.Node): string | undefined {
  const inner = node.type === "TSLiteralType" ? node.literal : node;
  return inner.type === "Literal" && typeof inner.value === "string" ? inner.value : undefined;
}
