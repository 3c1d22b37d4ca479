import { type Html, markup } from "./markup.ts";
import { type Page, type StatusQuery, usualPerPage } from "./model.ts";
import { counted } from "./format.ts";

/** A form to look for some of a long list, and ways to its other pages. */
export function pager<T>({ matching, total, page, pages }: Page<T>, query: StatusQuery): Html {
  if (total === 0) return markup``;
  const shown = pages > 1 ? `, page ${page} of ${pages}` : "";
  const found = query.text === "" ? counted(total, "volume") : `${matching} of ${counted(total, "volume")}`;
  return markup`<form method="get" action="">
<input type="search" name="q" value="${query.text}" maxlength="128" size="36" aria-label="Text to look for"
  placeholder="volume, node or problem"> <button>Look for</button> <span class="quiet">${found}${shown}</span>
${pages > 1 && page > 1 ? link(query, page - 1, "← previous") : undefined}
${pages > 1 && page < pages ? link(query, page + 1, "next →") : undefined}
${query.text === "" ? undefined : markup`<a href="?">show all</a>`}
</form>`;
}

function link({ text, perPage }: StatusQuery, page: number, words: string): Html {
  const parameters = new URLSearchParams({
    ...text === "" ? {} : { q: text },
    page: String(page),
    ...perPage === usualPerPage ? {} : { limit: String(perPage) },
  });
  return markup`<a href="?${parameters.toString()}">${words}</a>`;
}
