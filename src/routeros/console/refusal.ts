/** What a person can do about the error texts that RouterOS is known to print. Only ever added to a message. */
const hints: readonly (readonly [RegExp, string])[] = [
  [/not enough permissions/i, "give the user's group the policies ssh, read and write"],
  [/not allowed by device-mode/i, "allow it on the router with /system/device-mode/update"],
  [
    /bad command name|syntax error|expected end of command/i,
    "check that the router runs RouterOS 7.17 or newer with the rose-storage package",
  ],
  [/could not unmount/i, "the router itself uses that disk"],
  [/no space|disk full|not enough (free )?space/i, "make room on the pool"],
  [/timed out/i, "the router is busy"],
];

/**
 * A refusal as one line for people: the router's own words and, where they are known, what to do.
 *
 * Nothing decides by these words: a refusal is noticed by the missing frame.
 */
export function explainRefusal(text: string): string {
  const words = text.length > 300 ? `${text.slice(0, 297)}...` : text;
  const hint = hints.find(([form]) => form.test(text))?.[1];
  return hint === undefined ? `"${words}"` : `"${words}" (${hint})`;
}
