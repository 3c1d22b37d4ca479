import type { Expression, Operator } from "../grammar/syntax.ts";
import { compare, isEqual, isTrue, toText, type Value } from "../value.ts";
import type { Program, Run } from "./run.ts";

/** Computes the value of an expression outside `where`. */
export function* evaluate(expression: Expression, run: Run): Program<Value> {
  switch (expression.kind) {
    case "quoted": {
      let text = "";
      for (const part of expression.parts) {
        text += typeof part === "string" ? part : toText(yield* evaluate(part, run));
      }
      return text;
    }
    case "word":
      return expression.text;
    case "property":
    case "variable":
      return null;
    case "not":
      return !isTrue(yield* evaluate(expression.operand, run));
    case "binary":
      return apply(
        expression.operator,
        yield* evaluate(expression.left, run),
        yield* evaluate(expression.right, run),
      );
    case "substitution": {
      let value: Value = null;
      for (const statement of expression.statements) value = yield* run.statement(statement);
      return value;
    }
  }
}

/** Applies an operator to two values. */
export function apply(operator: Operator, left: Value, right: Value): Value {
  switch (operator) {
    case ".":
      return toText(left) + toText(right);
    case "=":
      return isEqual(left, right);
    case "!=":
      return !isEqual(left, right);
    case "<":
      return compare(left, right) < 0;
    case ">":
      return compare(left, right) > 0;
    case "<=":
      return compare(left, right) <= 0;
    case ">=":
      return compare(left, right) >= 0;
    case "~":
      return toPattern(toText(right)).test(toText(left));
    case "and":
      return isTrue(left) && isTrue(right);
    case "or":
      return isTrue(left) || isTrue(right);
  }
}

const classes: Readonly<Record<string, string>> = {
  alnum: "A-Za-z0-9",
  alpha: "A-Za-z",
  digit: "0-9",
  lower: "a-z",
  space: "\\s",
  upper: "A-Z",
  xdigit: "0-9A-Fa-f",
};

/** A POSIX regular expression, unanchored; one that is none matches nothing. */
export function toPattern(source: string): RegExp {
  const translated = source.replace(/\[:([a-z]+):\]/g, (whole, name: string) => classes[name] ?? whole);
  try {
    return new RegExp(translated);
  } catch (error) {
    if (error instanceof SyntaxError) return /(?!)/;
    throw error;
  }
}
