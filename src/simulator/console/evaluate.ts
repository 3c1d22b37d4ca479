import type { Expression, Operator } from "../grammar/syntax.ts";
import type { Menu, Row } from "../menu/menu.ts";
import { compare, isEqual, isTrue, toText, type Value } from "../value.ts";
import type { Program, Run } from "./run.ts";

/** The condition of `where`. */
interface Condition {
  readonly test: (row: Row) => boolean;
  /** The only items that can meet it, if an index knows them. */
  readonly among: readonly Row[] | undefined;
}

/** Selects the items that meet a condition, in order. */
export function* select(menu: Menu, where: Expression | undefined, run: Run): Program<readonly Row[]> {
  if (where === undefined) return menu.rows();
  const condition = yield* prepare(where, menu, run);
  if (condition.among === undefined) return menu.rows().filter(condition.test);
  const unique = new Map(condition.among.map((row) => [row.order, row]));
  const compare = menu.compare ?? ((a: Row, b: Row) => a.order - b.order);
  return [...unique.values()].filter(condition.test).toSorted(compare);
}

/** Computes once what does not depend on the item. */
function* prepare(where: Expression, menu: Menu, run: Run): Program<Condition> {
  if (where.kind === "property") return propertyCondition(menu, where.name);
  if (where.kind === "not") {
    const inner = yield* prepare(where.operand, menu, run);
    return { test: (row) => !inner.test(row), among: undefined };
  }
  if (where.kind === "binary" && (where.operator === "and" || where.operator === "or")) {
    const left = yield* prepare(where.left, menu, run);
    const right = yield* prepare(where.right, menu, run);
    return where.operator === "and" ? both(left, right) : either(left, right);
  }
  if (where.kind === "binary" && where.left.kind === "property") {
    // An unquoted path or NQN is not an error: it never matches.
    const hopeless = where.right.kind === "word" && /[/:]/.test(where.right.text);
    if (hopeless) return { test: () => false, among: [] };
    const wanted = yield* evaluate(where.right, run);
    return comparison(menu, where.left.name, where.operator, wanted);
  }
  const constant = isTrue(yield* evaluate(where, run));
  return { test: () => constant, among: undefined };
}

function propertyCondition(menu: Menu, name: string): Condition {
  return { test: (row) => isTrue(row.value(name) ?? null), among: menu.flagged?.(name) };
}

function comparison(menu: Menu, name: string, operator: Operator, wanted: Value): Condition {
  if (operator === "~") {
    const source = toText(wanted);
    const pattern = toPattern(source);
    return {
      test: (row) => pattern.test(toText(row.value(name) ?? null)),
      among: menu.search?.(name, source),
    };
  }
  return {
    test: (row) => isTrue(apply(operator, row.value(name) ?? null, wanted)),
    among: operator === "=" ? menu.lookup(name, toText(wanted)) : undefined,
  };
}

function both(left: Condition, right: Condition): Condition {
  return { test: (row) => left.test(row) && right.test(row), among: left.among ?? right.among };
}

function either(left: Condition, right: Condition): Condition {
  const among = left.among === undefined || right.among === undefined
    ? undefined
    : [...left.among, ...right.among];
  return { test: (row) => left.test(row) || right.test(row), among };
}

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
function apply(operator: Operator, left: Value, right: Value): Value {
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

/** A POSIX regular expression, unanchored; an invalid one matches nothing. */
function toPattern(source: string): RegExp {
  const translated = source.replace(/\[:([a-z]+):\]/g, (whole, name: string) => classes[name] ?? whole);
  try {
    return new RegExp(translated);
  } catch (error) {
    if (error instanceof SyntaxError) return /(?!)/;
    throw error;
  }
}
