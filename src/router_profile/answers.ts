/**
 * Differences between routers on which a decision of the driver depends: each property is one question, its value an
 * answer. `doctor --probe` finds the answers, and the simulator can play any of them.
 */
export interface RouterBehaviours {
  /** Whether the longest texts that the driver sends and reads fit, see {@linkcode neededLimits}. */
  readonly limits: "enough" | "too-small";
  /** When the size of an exported disk follows a resize. */
  readonly grow: "live" | "after-toggle";
  /**
   * Whether a namespace keeps its UUID over a boot of the router, so that hosts come back and go on, or gets a new one, so that
   * hosts drop it.
   */
  readonly bootIdentity: "kept" | "new";
  /**
   * What happens to connected hosts when the comment of their disk changes, or when another disk is added, exported,
   * withdrawn or removed.
   */
  readonly sideEffects: "harmless" | "ends-sessions";
  /**
   * How long a withdrawn export goes on serving connected hosts, in milliseconds; 0 where their connections end at once.
   * Or the target stays connected and refuses their commands, at least for a moment: Linux takes such a refusal as the
   * final answer to a write, and no layer above tries again.
   */
  readonly unexport: number | "refuses-commands";
  /** Whether `/file copy` answers when the copy is complete, or at once. */
  readonly copyReturns: "when-done" | "at-once";
  /** Where a Btrfs subvolume may be made: at any path of its file system, or only at its top. */
  readonly subvolumeNames: "nested" | "flat";
}

/** The default router: it does what is known, and otherwise what is hardest for its client. */
export const defaultRouterBehaviours: RouterBehaviours = {
  limits: "enough",
  // Like the target of upstream Linux since 5.6, which routers show: it reads a file's size when it opens it.
  grow: "after-toggle",
  bootIdentity: "new",
  sideEffects: "harmless",
  unexport: 0,
  copyReturns: "when-done",
  subvolumeNames: "nested",
};

/** Parses one value; undefined for an invalid one. */
export type Reader<T> = (text: string) => T | undefined;

/** The readers of all settings of a kind. */
export type Readers<Settings> = { readonly [Name in keyof Settings]: Reader<Settings[Name]> };

/** The readers of answers. Blanks may replace hyphens; `unexport` is `kills`, `lingers <ms>` or `refuses-commands`. */
export const answerReaders: Readers<RouterBehaviours> = {
  limits: oneOf("enough", "too-small"),
  grow: oneOf("live", "after-toggle"),
  bootIdentity: oneOf("kept", "new"),
  sideEffects: oneOf("harmless", "ends-sessions"),
  unexport: withdrawing,
  copyReturns: oneOf("when-done", "at-once"),
  subvolumeNames: oneOf("nested", "flat"),
};

/**
 * Parses settings from a command line or JSON.
 *
 * @throws {RangeError} when a name is unknown or a value invalid
 */
export function parseSettings<Settings>(
  readers: Readers<Settings>,
  settings: Readonly<Record<string, unknown>>,
): Partial<Settings> {
  const names = Object.keys(readers);
  return Object.assign(
    {},
    ...Object.entries(settings).map(([name, value]) => {
      if (!names.includes(name)) {
        throw new RangeError(`There is no question ${name}; there are ${names.join(", ")}.`);
      }
      const read = readers[name as keyof Settings](String(value).trim().replaceAll(" ", "-"));
      if (read !== undefined) return { [name]: read };
      throw new RangeError(`${JSON.stringify(value)} is no answer to the question ${name}.`);
    }),
  );
}

/** Makes a reader of one of a few words. */
export function oneOf<Word extends string>(...words: readonly Word[]): Reader<Word> {
  return (text) => words.find((word) => word === text);
}

function withdrawing(text: string): number | "refuses-commands" | undefined {
  if (text === "refuses-commands") return text;
  if (text === "kills") return 0;
  const match = /^(?:lingers-)?([0-9]{1,9})$/.exec(text);
  return match === null ? undefined : Number(match[1]);
}
