import { Buffer } from "node:buffer";
import type { Assignment, Expression, MenuCommand, Statement } from "../grammar/syntax.ts";
import { mentionsScratch } from "./ownership.ts";
import type { Rule } from "./journal.ts";

/** A rule that the text of a command alone breaks. */
export interface Finding {
  readonly rule: Rule;
  readonly sentence: string;
}

const maxBytes = 1024;
const maxStatements = 4;

/** The findings about the size of an exec. */
export function lintExec(text: string, statements: number): Finding[] {
  const findings: Finding[] = [];
  const bytes = Buffer.byteLength(text);
  if (bytes > maxBytes && !mentionsScratch(text)) {
    findings.push({
      rule: "command-too-long",
      sentence: `The command has ${bytes} bytes, over ${maxBytes}.`,
    });
  }
  if (statements > maxStatements) {
    const sentence = `The exec has ${statements} statements, over ${maxStatements}.`;
    findings.push({ rule: "too-many-statements", sentence });
  }
  return findings;
}

/** The findings about a statement and everything inside it. */
export function lintStatement(statement: Statement): Finding[] {
  switch (statement.kind) {
    case "menu":
      return [];
    case "put":
    case "error":
    case "len":
    case "serialize":
      return lintInside(statement.value);
    case "if":
      return [
        ...lintInside(statement.condition),
        ...[...statement.then, ...statement.otherwise].flatMap(lintStatement),
      ];
    default:
      return lintCommand(statement);
  }
}

function lintCommand(command: MenuCommand): Finding[] {
  switch (command.kind) {
    case "print":
      return [...lintRead(command.menu.path, command.proplist), ...lintWhere(command.where)];
    case "find":
      return lintWhere(command.where);
    case "get":
      return [...lintRead(command.menu.path, command.property), ...lintInside(command.target)];
    case "add":
      return [...lintAssignments(command.assignments), ...lintAdd(command.menu.path, command.assignments)];
    case "target":
      return [
        ...lintValue("the item", command.target),
        ...lintAssignments(command.assignments),
        ...lintMount(command.menu.path, command.assignments),
      ];
  }
}

function lintRead(menu: string, named: Expression | undefined): Finding[] {
  if (menu !== "file" || named !== undefined) return [];
  const sentence = "/file print or get that names no property also gives the contents of small files.";
  return [{ rule: "file-print-without-proplist", sentence }];
}

function lintAdd(menu: string, assignments: readonly Assignment[]): Finding[] {
  if (menu !== "disk" || assignments.some(({ name }) => name === "mount-filesystem")) {
    return lintMount(menu, assignments);
  }
  const sentence = "A disk added without mount-filesystem=no is mounted as soon as a node has formatted it.";
  return [{ rule: "mount-filesystem", sentence }];
}

function lintMount(menu: string, assignments: readonly Assignment[]): Finding[] {
  const mount = assignments.find(({ name }) => name === "mount-filesystem")?.value;
  if (menu !== "disk" || mount === undefined || constant(mount) === "no") return [];
  return [{ rule: "mount-filesystem", sentence: "mount-filesystem is given, and is not no." }];
}

function lintAssignments(assignments: readonly Assignment[]): Finding[] {
  return assignments.flatMap(({ name, value }) => lintValue(name, value));
}

function lintWhere(where: Expression | undefined): Finding[] {
  if (where === undefined) return [];
  if (where.kind === "not") return lintWhere(where.operand);
  if (where.kind !== "binary") return lintInside(where);
  if (where.left.kind === "property") return lintValue(where.left.name, where.right);
  return [...lintWhere(where.left), ...lintWhere(where.right)];
}

function lintValue(name: string, value: Expression | undefined): Finding[] {
  if (value?.kind !== "word" && value?.kind !== "variable") return lintInside(value);
  const text = value.kind === "word" ? value.text : "$";
  return [{ rule: "unquoted-value", sentence: `The value of ${name} is not quoted: ${text}` }];
}

/** The findings in the brackets of an expression. */
function lintInside(expression: Expression | undefined): Finding[] {
  switch (expression?.kind) {
    case "substitution":
      return expression.statements.flatMap(lintStatement);
    case "binary":
      return [...lintInside(expression.left), ...lintInside(expression.right)];
    case "not":
      return lintInside(expression.operand);
    case "quoted":
      return lintText(expression.parts);
    default:
      return [];
  }
}

/** A command that runs from within a text was hardly intended. */
function lintText(parts: readonly (string | Expression)[]): Finding[] {
  return parts.flatMap((part) => {
    if (typeof part === "string") return [];
    return [{ rule: "unquoted-value" as const, sentence: "A text has a $ that is not escaped." }];
  });
}

function constant(expression: Expression): string | undefined {
  if (expression.kind === "word") return expression.text;
  return expression.kind === "quoted" && expression.parts.length === 1
    ? String(expression.parts[0])
    : undefined;
}
