import type { Menu, Verb } from "../menu/menu.ts";

/** The operators between words; `.` joins texts. */
export type Operator = "." | "=" | "!=" | "<" | ">" | "<=" | ">=" | "~" | "and" | "or";

/** An expression. */
export type Expression =
  /** A text in double quotes; parts that are expressions were written `$[…]` or `$(…)` in it. */
  | { readonly kind: "quoted"; readonly parts: readonly (string | Expression)[] }
  /** A word without quotes. */
  | { readonly kind: "word"; readonly text: string }
  /** The name of a property, inside `where`. */
  | { readonly kind: "property"; readonly name: string }
  /** `$name`: no variable is ever set, so it is empty. */
  | { readonly kind: "variable" }
  | { readonly kind: "not"; readonly operand: Expression }
  | {
    readonly kind: "binary";
    readonly operator: Operator;
    readonly left: Expression;
    readonly right: Expression;
  }
  /** `[…]`: the value of the last statement in it. */
  | { readonly kind: "substitution"; readonly statements: readonly Statement[] };

/** One command of a line. */
export type Statement =
  | MenuCommand
  /** `/disk` alone: the commands after it belong to that menu. */
  | { readonly kind: "menu" }
  | { readonly kind: "put"; readonly value: Expression }
  /** Prints the text and ends the whole exec. */
  | { readonly kind: "error"; readonly value: Expression }
  | { readonly kind: "len"; readonly value: Expression }
  | SerializeStatement
  | IfStatement;

/** `:if (condition) do={…} else={…}`. */
export interface IfStatement {
  readonly kind: "if";
  readonly condition: Expression;
  readonly then: readonly Statement[];
  readonly otherwise: readonly Statement[];
}

/** `:serialize to=json options=… value=…`. */
export interface SerializeStatement {
  readonly kind: "serialize";
  readonly to: Expression;
  readonly options: Expression | undefined;
  readonly value: Expression;
}

/** A command of a menu. */
export type MenuCommand = PrintCommand | FindCommand | GetCommand | AddCommand | TargetCommand;

interface OfMenu {
  readonly menu: Menu;
}

interface OnItems extends OfMenu {
  /** Undefined when none is named. */
  readonly target: Expression | undefined;
  /** Where it is in the text, or should be. */
  readonly targetOffset: number;
}

/** `print`. */
export interface PrintCommand extends OfMenu {
  readonly kind: "print";
  /** `text` is any form for people. */
  readonly form: "text" | "as-value" | "count-only";
  /** Whether `detail` was given with `as-value`. */
  readonly detail: boolean;
  readonly proplist: Expression | undefined;
  readonly where: Expression | undefined;
}

/** `find`: its value is a list of ids. */
export interface FindCommand extends OfMenu {
  readonly kind: "find";
  readonly where: Expression | undefined;
}

/** `get <item> <property>`. */
export interface GetCommand extends OnItems {
  readonly kind: "get";
  readonly property: Expression | undefined;
}

/** `add`, `import` or `apply-changes`: none of them names an item. */
export interface AddCommand extends OfMenu {
  readonly kind: "add";
  readonly verb: "add" | "import" | "apply-changes";
  readonly assignments: readonly Assignment[];
}

/** A verb on existing items. */
export interface TargetCommand extends OnItems {
  readonly kind: "target";
  readonly verb: Exclude<Verb, "add" | "import" | "apply-changes" | "print" | "find" | "get">;
  readonly assignments: readonly Assignment[];
}

/** `name=value`. */
export interface Assignment {
  readonly name: string;
  readonly value: Expression;
}
