// Writes the reference pages that follow from the code: `deno run -A tools/docs.ts [--check]`. With --check it writes
// nothing, and names the pages that are out of step.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { routerFlags, serveFlags } from "../src/config.ts";
import { FLAG_DEFAULT_NOTE, type FlagTable } from "../src/flags.ts";
import { parameterHelp } from "../src/volume/parameters.ts";
import { complain, print } from "./print.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

const pages: Readonly<Record<string, string>> = {
  "docs/reference/flags.md": flagsPage(),
  "docs/reference/parameters.md": parametersPage(),
};

function flagsPage(): string {
  return `# Flags

Written by \`make docs\` from \`src/config.ts\`. ${FLAG_DEFAULT_NOTE}

## rds-csi serve

${table(serveFlags)}
## rds-csi allow-format VOLUME

Takes the flags of the controller: ${Object.keys(routerFlags).map((name) => `\`--${name}\``).join(", ")}.
`;
}

function table(flags: FlagTable): string {
  const rows = Object.entries(flags).map(([name, flag]) => {
    const form = flag.choices?.join(" \\| ") ?? flag.form;
    const env = flag.env?.map((name) => `\`${name}\``).join(", ") ?? "";
    return `| \`--${name}\` | ${form} | ${flag.fallback ?? ""} | ${env} | ${flag.help} |`;
  });
  return [
    "| Flag | Form | Default | Environment | What it is for |",
    "| --- | --- | --- | --- | --- |",
    ...rows,
    "",
  ]
    .join("\n");
}

function parametersPage(): string {
  const rows = Object.entries(parameterHelp).map(([key, help]) => `| \`${key}\` | ${help} |`);
  return `# StorageClass parameters

Written by \`make docs\` from \`src/volume/parameters.ts\`. An unknown key is refused; keys that begin with
\`csi.storage.k8s.io/\` are the sidecars'. The file system is \`csi.storage.k8s.io/fstype\`.

| Key | What it is for |
| --- | --- |
${rows.join("\n")}
`;
}

/** Markdown as \`deno fmt\` leaves it, so that a formatted page counts as in step. */
async function formatted(text: string): Promise<string> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["fmt", "--ext", "md", "-"],
    cwd: ROOT,
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(text));
  await writer.close();
  return new TextDecoder().decode((await child.output()).stdout);
}

const check = Deno.args.includes("--check");
let stale = 0;
for (const [path, text] of Object.entries(pages)) {
  const file = join(ROOT, path);
  const wanted = await formatted(text);
  if (check && await Deno.readTextFile(file).catch(() => "") !== wanted) {
    complain(`${path} is out of step with the code: make docs`);
    stale++;
  }
  if (!check) await Deno.writeTextFile(file, wanted);
}
if (!check) print(`written: ${Object.keys(pages).join(", ")}`);
Deno.exit(stale === 0 ? 0 : 1);
