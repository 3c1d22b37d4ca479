// Parsed by hand, because the PromQL grammar of lezer does not know the dashboard's variables; these tests need only
// names.

/** One condition on a label, as in `{code=~"a|b"}`. */
export interface Matcher {
  readonly label: string;
  readonly operator: string;
  readonly value: string;
}

/** A metric that a query reads, under its name there: `_bucket` and similar for a histogram. */
export interface Selector {
  readonly metric: string;
  readonly matchers: readonly Matcher[];
}

/** The names in a query. */
export interface QueryParts {
  readonly selectors: readonly Selector[];
  /** Labels that it groups or joins by. */
  readonly groupings: readonly string[];
}

/** Words in the position of a metric that are not metrics; aggregations precede their grouping. */
const text = new Set([
  ...["and", "or", "unless", "bool", "offset", "group_left", "group_right"],
  ...["sum", "min", "max", "avg", "count", "group", "stddev", "stdvar", "topk", "bottomk", "quantile"],
]);

/**
 * Returns the metrics and labels of a valid PromQL query: only their names, not their meaning. It is no grammar;
 * Prometheus itself checks whether the query is valid.
 */
export function partsOf(query: string): QueryParts {
  const groupings: string[] = [];
  const rest = query
    // Durations contain letters too, and a variable of the dashboard can replace one.
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
