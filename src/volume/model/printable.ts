/** C0, C1 and bidirectional control characters, except tabs and line feeds. */
const controls = /(?![\t\n])[\p{Cc}\p{Bidi_Control}]/gu;

/**
 * Text that is safe at a terminal. Names and messages come from pods, claims and the router: control characters in them
 * would clear the screen, type into the shell, or reorder what stands there. They are written as JSON's `\u001b`, so
 * that output in JSON keeps its meaning. Tabs and line feeds remain.
 */
export function printable(text: string): string {
  return text.replace(controls, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
