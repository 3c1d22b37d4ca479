// Written here: a grammar of PromQL (lezer) does not know the dashboard's variables; these tests need names only.

/** One condition on a label, as in `{code=~"a|b"}`. */
export interface Matcher {
  readonly label: string;
  readonly operator: string;
  readonly value: string;
}

/** A metric that a query reads, as it is named there: of a histogram with `_bucket` and its kin. */
export interface Selector {
  readonly metric: string;
  readonly matchers: readonly Matcher[];
}

/** What a query names. */
export interface QueryParts {
  readonly selectors: readonly Selector[];
  /** Labels that it groups or joins by. */
  readonly groupings: readonly string[];
}

/** Words that stand where a metric could, and are none; aggregations do so before their grouping. */
const text = new Set([
  ...["and", "or", "unless", "bool", "offset", "group_left", "group_right"],
  ...["sum", "min", "max", "avg", "count", "group", "stddev", "stdvar", "topk", "bottomk", "quantile"],
]);

/**
 * The metrics and labels of a query in PromQL that Prometheus takes: names only, and not what they mean. No grammar:
 * whether it is a query at all is asked of Prometheus itself.
 */
export function partsOf(query: string): QueryParts {
  const groupings: string[] = [];
  const rest = query
    // Durations have letters too; a variable of the dashboard stands in their place as well.
    .replace(/\[[^\]]*\]/g, "")
    .replace(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g, (_, inside: string) => {
      groupings.push(...inside.split(",").map((label) => label.trim()).filter((label) => label !== ""));
      return " ";
    });
  const token = /"(?:[^"\\]|\\.)*"|([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\{[^}]*\}|\()?|[0-9][0-9a-z.]*/g;
  const selectors = rest.matchAll(token)
    .filter(([, name, after]) => name !== undefined && after !== "(" && !text.has(name))
    .map(([, name, after = ""]) => ({ metric: name!, matchers: matchersIn(after) })).toArray();
  return { selectors, groupings };
}

function matchersIn(braces: string): Matcher[] {
  return braces.matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"/g)
    .map(([, label, operator, value]) => ({ label: label!, operator: operator!, value: value! })).toArray();
}
