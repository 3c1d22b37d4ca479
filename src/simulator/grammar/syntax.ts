import type { Menu, Verb } from "../menu/menu.ts";

/** What a word or an operator can be joined with; `.` joins texts. */
export type Operator = "." | "=" | "!=" | "<" | ">" | "<=" | ">=" | "~" | "and" | "or";

/** Something that has a value. Offsets count from the start of the exec's text. */
export type Expression =
  /** A text in double quotes; parts that are expressions were written `$[…]` or `$(…)` in it. */
  | { readonly kind: "quoted"; readonly parts: readonly (string | Expression)[]; readonly offset: number }
  /** A word without quotes. */
  | { readonly kind: "word"; readonly text: string; readonly offset: number }
  /** The name of a property, inside `where`. */
  | { readonly kind: "property"; readonly name: string; readonly offset: number }
  /** `$name`: no variable is ever set, so it is worth nothing. */
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
  /** `/disk` alone: the commands after it are looked up there. */
  | { readonly kind: "menu"; readonly offset: number }
  | { readonly kind: "put"; readonly value: Expression; readonly offset: number }
  /** Says the text and ends the whole exec. */
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
  /** Where the verb stands. */
  readonly offset: number;
  /** Where the command ends. */
  readonly end: number;
}

/** `print`. */
export interface PrintCommand extends Located {
  readonly kind: "print";
  /** Every form for people is `text` here. */
  readonly form: "text" | "as-value" | "count-only";
  /** Whether `detail` was given beside `as-value`. */
  readonly detail: boolean;
  readonly proplist: Expression | undefined;
  readonly where: Expression | undefined;
}

/** `find`: worth a list of ids. */
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

/** A verb that works on items that are there. */
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
