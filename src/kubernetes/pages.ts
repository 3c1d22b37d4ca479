import { ApiError, type KubernetesApi } from "./api.ts";

/** Objects of a page: what a list of thousands costs the server and this process at once. */
export const pageSize = 250;

/** How often a list is begun again whose pages went out of date on the way. */
const mostBeginnings = 3;

interface Page<T> {
  readonly kind?: string;
  readonly metadata?: { readonly continue?: string };
  readonly items?: readonly T[];
}

/** What a list asks for. */
export interface ListRequest {
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/**
 * Lists a collection page by page and keeps of each object what `keep` makes of it, so that never more than a page of
 * whole objects is in memory. A list whose pages went out of date (410) is begun again.
 *
 * @throws {ApiError} when a page cannot be had
 */
export async function listKept<T, K>(
  api: KubernetesApi,
  request: ListRequest,
  keep: (item: T) => K | undefined,
): Promise<K[]> {
  for (let beginnings = 1;; beginnings++) {
    try {
      return await listOnce(api, request, keep);
    } catch (error) {
      if (!ApiError.is(error, 410) || beginnings === mostBeginnings) throw error;
    }
  }
}

async function listOnce<T, K>(
  api: KubernetesApi,
  { path, query, signal }: ListRequest,
  keep: (item: T) => K | undefined,
): Promise<K[]> {
  const kept: K[] = [];
  let next = "";
  do {
    const page = await api.request<Page<T>>({
      method: "GET",
      path,
      query: { ...query, limit: String(pageSize), ...(next === "" ? {} : { continue: next }) },
      ...(signal === undefined ? {} : { signal }),
    });
    // Whatever else somebody in between answers is no list of nothing: nobody would be taken to have any volume.
    if (!page.kind?.endsWith("List")) {
      throw new ApiError(
        0,
        `Cannot read the API server's answer as it is no list: GET ${path} kind=${page.kind}`,
      );
    }
    for (const item of page.items ?? []) {
      const one = keep(item);
      if (one !== undefined) kept.push(one);
    }
    next = page.metadata?.continue ?? "";
  } while (next !== "");
  return kept;
}
