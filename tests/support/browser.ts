import { Buffer } from "node:buffer";
import { PNG } from "pngjs";
import { isFile } from "../../tools/host_command.ts";
import { isLong } from "./long.ts";
import { makeScratch } from "./scratch.ts";

/** A browser without a screen, from Debian's package chromium; undefined when it is not installed. */
export const browserPath = ["/usr/bin/chromium"].find(isFile);

if (isLong && browserPath === undefined) {
  const note = "ignored: the status page is not looked at, as there is no /usr/bin/chromium\n";
  Deno.stderr.writeSync(new TextEncoder().encode(note));
}

/** A picture: its size, and the colour of each of its pixels. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  /** Red, green and blue of a pixel, each up to 255. */
  at(x: number, y: number): readonly number[];
}

/** How a page is photographed. */
export interface Look {
  /** In pixels; the height is fixed, whatever the page. */
  readonly width: number;
  readonly height: number;
  readonly dark?: boolean;
  /** Where the picture is stored; nowhere by default. */
  readonly keepAt?: string | undefined;
}

/** Takes a picture of a page. */
export async function photograph(url: string, { dark, keepAt, ...size }: Look): Promise<Picture> {
  await using scratch = await makeScratch();
  const folder = scratch.path;
  const file = keepAt ?? `${folder}/page.png`;
  await browse(folder, dark ?? false, [
    `--screenshot=${file}`,
    `--window-size=${size.width},${size.height}`,
    url,
  ]);
  const { width, height, data } = PNG.sync.read(Buffer.from(await Deno.readFile(file)));
  return { width, height, at: (x, y) => [...data.subarray(4 * (y * width + x), 4 * (y * width + x) + 3)] };
}

/** The page's document in the browser, as markup. */
export async function understood(url: string): Promise<string> {
  await using scratch = await makeScratch();
  const folder = scratch.path;
  return await browse(folder, false, ["--dump-dom", url]);
}

async function browse(folder: string, dark: boolean, what: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command(browserPath!, {
    args: [
      ...[
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--hide-scrollbars",
      ],
      ...[
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
      ],
      `--blink-settings=preferredColorScheme=${dark ? 0 : 1}`,
      `--user-data-dir=${folder}/profile`,
      ...what,
    ],
    env: { HOME: folder, PATH: "/usr/bin:/bin" },
    clearEnv: true,
  }).output();
  if (code !== 0) throw new Error(`the browser ended with ${code}: ${new TextDecoder().decode(stderr)}`);
  return new TextDecoder().decode(stdout);
}
