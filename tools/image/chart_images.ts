// The images that the chart's values name beside the driver's own, and the base of the Dockerfile.

/** An image in the chart's values, or in the Dockerfile. */
export interface ChartImage {
  /** Registry, path and tag, such as `registry.example.net/storage/tool:v1.0.0`. */
  readonly name: string;
  /** `sha256:` and 64 digits; undefined where nobody has asked its registry. */
  readonly digest: string | undefined;
}

/** A line with an image: before it, its name, and its digest. */
const imageLine = /^( *image: |ARG BASE=)([\w.:/-]+:[\w.-]+)(?:@(sha256:[0-9a-f]{64}))?$/gm;

/** The images in the text of such a file, in their order. */
export function imagesIn(text: string): ChartImage[] {
  return text.matchAll(imageLine).map(([, , name, digest]) => ({ name: name!, digest })).toArray();
}

/**
 * The text of the values with the digests that `ask` returns. An image whose registry gives none stays as it is.
 *
 * @param ask returns the digest of a name, and throws when its registry cannot be asked
 * @return also what could not be done, for people
 */
export async function withDigests(
  values: string,
  ask: (name: string) => Promise<string>,
): Promise<{ readonly values: string; readonly problems: readonly string[] }> {
  const problems: string[] = [];
  const digests = new Map<string, string>();
  for (const { name, digest } of imagesIn(values)) {
    try {
      const now = await ask(name);
      if (digest === undefined || digest === now) digests.set(name, now);
      // A tag is not moved for a release: a person has to find out whether that one was.
      else {problems.push(
          `${name} is pinned as ${digest}, and its registry has ${now}: remove the pin if that is right`,
        );}
    } catch (error) {
      problems.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  const written = values.replace(imageLine, (line, before, name) => {
    const digest = digests.get(name);
    return digest === undefined ? line : `${before}${name}@${digest}`;
  });
  return { values: written, problems };
}
