import { dirname, join, relative } from "node:path";
import { projectRoot } from "../support/parts.ts";

/** A fenced block of a page. */
export interface Block {
  /** The word behind the fence; "" when there is none. */
  readonly language: string;
  readonly text: string;
  /** The heading that it stands under. */
  readonly heading: string;
  /** Of the opening fence, from 1. */
  readonly line: number;
}

/** A page of the documentation, by its path in the project. */
export interface Page {
  readonly path: string;
  readonly text: string;
}

/** Every page: those of docs/, and what lies in the project's folders for people. */
export function allPages(): readonly Page[] {
  const paths = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "deploy/README.md", ...below("docs")];
  return paths.map(readPage);
}

/** One page. */
export function readPage(path: string): Page {
  return { path, text: Deno.readTextFileSync(join(projectRoot, path)) };
}

function below(folder: string): string[] {
  return [...Deno.readDirSync(join(projectRoot, folder))].flatMap(({ name, isDirectory }) =>
    isDirectory ? below(`${folder}/${name}`) : name.endsWith(".md") ? [`${folder}/${name}`] : []
  ).toSorted();
}

/**
 * The fenced blocks of a page, in order. Blocks inside lists are taken without their indentation.
 *
 * @throws {Error} when the last one is not closed
 */
export function blocksOf({ path, text }: Page): readonly Block[] {
  const blocks: Block[] = [];
  let heading = "";
  let open: { readonly indent: string; readonly language: string; readonly line: number } | undefined;
  let lines: string[] = [];
  text.split("\n").forEach((line, index) => {
    const [, indent, language] = /^( *)```([a-z]*)\s*$/.exec(line) ?? [];
    if (open === undefined) {
      if (language === undefined) heading = /^#+ (.*)/.exec(line)?.[1] ?? heading;
      else open = { indent: indent ?? "", language, line: index + 1 };
    } else if (language === "") {
      blocks.push({ language: open.language, text: lines.join("\n"), heading, line: open.line });
      open = undefined;
      lines = [];
    } else {
      lines.push(line.startsWith(open.indent) ? line.slice(open.indent.length) : line);
    }
  });
  if (open !== undefined) throw new Error(`${path}: a block is not closed`);
  return blocks;
}

/** A page without its fenced blocks and code spans: what is prose in it. */
export function proseOf({ text }: Page): string {
  return text.replace(/^( *)```[\s\S]*?^\1```\s*$/gm, "").replace(/`[^`]*`/g, "");
}

/** What a page links to, as written. */
export function linksOf(page: Page): readonly string[] {
  return [...proseOf({ ...page, text: withoutSpans(page.text) }).matchAll(/\]\(([^)\s]+)\)/g)].map((
    [, link],
  ) => link!);
}

/** Code in the text of a link is no reason to lose the link. */
function withoutSpans(text: string): string {
  return text.replace(/\[`([^`\]]*)`/g, "[$1");
}

/** The names under which forges let a page's headings be linked to. */
export function anchorsOf({ text }: Page): ReadonlySet<string> {
  const anchors = new Set<string>();
  const seen = new Map<string, number>();
  const bare = text.replace(/^( *)```[\s\S]*?^\1```\s*$/gm, "");
  for (const [, title = ""] of bare.matchAll(/^#{1,6} (.+)$/gm)) {
    const words = title.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[`*]/g, "").toLowerCase();
    const anchor = words.replace(/[^\p{L}\p{N}\s_-]/gu, "").trim().replace(/\s/g, "-");
    const times = seen.get(anchor) ?? 0;
    seen.set(anchor, times + 1);
    anchors.add(times === 0 ? anchor : `${anchor}-${times}`);
  }
  return anchors;
}

/** What is wrong with a page's links to files of the project, in words. */
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
