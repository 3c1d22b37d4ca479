import { dirname, join, relative } from "node:path";
import GithubSlugger from "github-slugger";
import MarkdownIt from "markdown-it";
import { projectRoot } from "../support/parts.ts";

/** A fenced block of a page. */
export interface Block {
  /** The word after the fence; "" when there is none. */
  readonly language: string;
  readonly text: string;
  /** The heading above it. */
  readonly heading: string;
  /** The line of the opening fence, from 1. */
  readonly line: number;
}

/** A page of the documentation, by its path in the project. */
export interface Page {
  readonly path: string;
  readonly text: string;
}

/** Returns every page: those of docs/, and the pages for people in the project's other folders. */
export function allPages(): readonly Page[] {
  const paths = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "deploy/README.md", ...below("docs")];
  return paths.map(readPage);
}

/** Returns one page. */
export function readPage(path: string): Page {
  return { path, text: Deno.readTextFileSync(join(projectRoot, path)) };
}

function below(folder: string): string[] {
  return [...Deno.readDirSync(join(projectRoot, folder))].flatMap(({ name, isDirectory }) =>
    isDirectory ? below(`${folder}/${name}`) : name.endsWith(".md") ? [`${folder}/${name}`] : []
  ).toSorted();
}

/** Returns every heading and block of a page, and every line of prose with its parts. */
function tokensOf({ text }: Page) {
  return new MarkdownIt().parse(text, {});
}

/** Returns the fenced blocks of a page, in order. Blocks inside lists lose their indentation. */
export function blocksOf(page: Page): readonly Block[] {
  const tokens = tokensOf(page);
  let heading = "";
  return tokens.flatMap(({ type, info, content, map }, at) => {
    if (type === "heading_open") heading = tokens[at + 1]!.content;
    return type === "fence" ? [{ language: info, text: content.trimEnd(), heading, line: map![0] + 1 }] : [];
  });
}

/** Returns the links of a page, as written. */
export function linksOf(page: Page): readonly string[] {
  return tokensOf(page).flatMap(({ children }) => children ?? [])
    .filter(({ type }) => type === "link_open").map((link) => String(link.attrGet("href") ?? ""));
}

/** Returns the anchors under which forges link to a page's headings. */
export function anchorsOf(page: Page): ReadonlySet<string> {
  const slugger = new GithubSlugger();
  const tokens = tokensOf(page);
  const titles = tokens.filter((_, at) => tokens[at - 1]?.type === "heading_open")
    .map(({ children }) => children!.map(({ content }) => content).join(""));
  return new Set(titles.map((title) => slugger.slug(title)));
}

/** Returns the problems of a page's links to files of the project, as text. */
export function brokenLinks(page: Page): readonly string[] {
  return linksOf(page).filter((link) => !/^[a-z]+:/.test(link)).flatMap((link) => {
    const [file = "", anchor] = link.split("#");
    const problem = file === ""
      ? noHeading(page, anchor ?? "")
      : missing(relative(projectRoot, join(projectRoot, dirname(page.path), file)), anchor);
    return problem === undefined ? [] : [`${page.path}: ${link}: ${problem}`];
  });
}

function noHeading(page: Page, anchor: string): string | undefined {
  return anchorsOf(page).has(anchor) ? undefined : "no such heading";
}

function missing(path: string, anchor: string | undefined): string | undefined {
  if (path.startsWith("..")) return "leads out of the project";
  try {
    const { isFile } = Deno.statSync(join(projectRoot, path));
    if (anchor === undefined || !isFile || !path.endsWith(".md")) return undefined;
    return noHeading(readPage(path), anchor);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return "no such file";
    throw error;
  }
}
