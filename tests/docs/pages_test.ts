import assert from "node:assert/strict";
import { join } from "node:path";
import { projectRoot } from "../support/parts.ts";
import { sourcesBelow } from "./error_messages.ts";
import { allPages, blocksOf, brokenLinks, linksOf } from "./pages.ts";

const page = (text: string) => ({ path: "docs/made-up.md", text });

Deno.test("every link of the documentation leads to an existing file and heading", () => {
  const pages = allPages();
  assert(pages.length > 10 && pages.flatMap(linksOf).length > 50, "there is something to look at");
  assert.deepEqual(pages.flatMap(brokenLinks), []);
});

Deno.test("every page of docs/ can be reached from its index", () => {
  const index = new Set(
    linksOf(allPages().find(({ path }) => path === "docs/README.md")!).map((link) => `docs/${link}`),
  );
  const lost = allPages().map(({ path }) => path)
    .filter((path) => path.startsWith("docs/") && path !== "docs/README.md" && !index.has(path));
  assert.deepEqual(lost, []);
});

Deno.test("every text that a page searches the driver's log for is in the sources", () => {
  const texts = allPages().flatMap(({ text }) =>
    [...text.matchAll(/ logs [^|`\n]*\| grep (["'])(.+?)\1/g)].map(([, , searched]) => searched!)
  );
  assert(texts.length >= 3);
  const sources = sourcesBelow("src").map((file) => Deno.readTextFileSync(join(projectRoot, file))).join("");
  assert.deepEqual(texts.filter((searched) => !sources.includes(searched)), []);
});

Deno.test("no page searches for a volume's handle where kubectl lists only names of PersistentVolumes and nodes", () => {
  // A handle is not a part of either, so that the list would always look empty: as if nothing used the volume.
  const searches = allPages().flatMap(({ path, text }) =>
    [...text.matchAll(/`kubectl get (?:pv|volumeattachments?) \| grep (\w+)`/g)].map(([, wanted]) => ({
      path,
      wanted,
    }))
  );
  assert(searches.length >= 2);
  assert.deepEqual(searches.filter(({ wanted }) => wanted !== "PV" && wanted !== "NODE"), []);
});

Deno.test("brokenLinks() names a missing file and a missing heading", () => {
  assert.deepEqual(
    brokenLinks(
      page("[a](none.md) [b](../README.md#none) [`c`](../../elsewhere) [d](#here) [e](#there)\n\n## Here"),
    ),
    [
      "docs/made-up.md: none.md: no such file",
      "docs/made-up.md: ../README.md#none: no such heading",
      "docs/made-up.md: ../../elsewhere: leads out of the project",
      "docs/made-up.md: #there: no such heading",
    ],
  );
});

Deno.test("blocksOf() gives blocks with their language, heading and line", () => {
  assert.deepEqual(blocksOf(page("# One\n\n```sh\nls\n\nid\n```\n\n- a list\n\n  ```\n  text\n  ```")), [
    { language: "sh", text: "ls\n\nid", heading: "One", line: 3 },
    { language: "", text: "text", heading: "One", line: 11 },
  ]);
});
