import type { Menu, Verb } from "../menu/menu.ts";

/** The operators between words; `.` joins texts. */
export type Operator = "." | "=" | "!=" | "<" | ">" | "<=" | ">=" | "~" | "and" | "or";

/** An expression. Offsets count from the start of the exec's text. */
export type Expression =
  /** A text in double quotes; parts that are expressions were written `$[…]` or `$(…)` in it. */
  | { readonly kind: "quoted"; readonly parts: readonly (string | Expression)[]; readonly offset: number }
  /** A word without quotes. */
  | { readonly kind: "word"; readonly text: string; readonly offset: number }
  /** The name of a property, inside `where`. */
  | { readonly kind: "property"; readonly name: string; readonly offset: number }
  /** `$name`: no variable is ever set, so it is empty. */
  | { readonly kind: "variable"; readonly offset: number }
  | { readonly kind: "not"; readonly operand: Expression; readonly offset: number }
  | {
    readonly kind: "binary";
    readonly operator: Operator;
    readonly left: Expression;
    readonly right: Expression;
    readonly offset: number;
  }
  /** `[…]`: the value of the last statement in it. */
  | { readonly kind: "substitution"; readonly statements: readonly Statement[]; readonly offset: number };

/** One command of a line. */
export type Statement =
  | MenuCommand
  /** `/disk` alone: the commands after it belong to that menu. */
  | { readonly kind: "menu"; readonly offset: number }
  | { readonly kind: "put"; readonly value: Expression; readonly offset: number }
  /** Prints the text and ends the whole exec. */
  | { readonly kind: "error"; readonly value: Expression; readonly offset: number }
  | { readonly kind: "len"; readonly value: Expression; readonly offset: number }
  | SerializeStatement
  | IfStatement;

/** `:if (condition) do={…} else={…}`. */
export interface IfStatement {
  readonly kind: "if";
  readonly condition: Expression;
  readonly then: readonly Statement[];
  readonly otherwise: readonly Statement[];
  readonly offset: number;
}

/** `:serialize to=json options=… value=…`. */
export interface SerializeStatement {
  readonly kind: "serialize";
  readonly to: Expression;
  readonly options: Expression | undefined;
  readonly value: Expression;
  readonly offset: number;
}

/** A command of a menu. */
export type MenuCommand = PrintCommand | FindCommand | GetCommand | AddCommand | TargetCommand;

interface Located {
  readonly menu: Menu;
  /** The offset of the verb. */
  readonly offset: number;
  /** The offset of the command's end. */
  readonly end: number;
}

/** `print`. */
export interface PrintCommand extends Located {
  readonly kind: "print";
  /** `text` is any form for people. */
  readonly form: "text" | "as-value" | "count-only";
  /** Whether `detail` was given with `as-value`. */
  readonly detail: boolean;
  readonly proplist: Expression | undefined;
  readonly where: Expression | undefined;
}

/** `find`: its value is a list of ids. */
export interface FindCommand extends Located {
  readonly kind: "find";
  readonly where: Expression | undefined;
}

/** `get <item> <property>`. */
export interface GetCommand extends Located {
  readonly kind: "get";
  readonly target: Expression | undefined;
  readonly property: Expression | undefined;
}

/** `add`, `import` or `apply-changes`: none of them names an item. */
export interface AddCommand extends Located {
  readonly kind: "add";
  readonly verb: "add" | "import" | "apply-changes";
  readonly assignments: readonly Assignment[];
}

/** A verb on existing items. */
export interface TargetCommand extends Located {
  readonly kind: "target";
  readonly verb: Exclude<Verb, "add" | "import" | "apply-changes" | "print" | "find" | "get">;
  readonly target: Expression | undefined;
  readonly assignments: readonly Assignment[];
}

/** `name=value`. */
export interface Assignment {
  readonly name: string;
  readonly value: Expression;
}
