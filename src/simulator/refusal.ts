/** A position in the text of an exec. */
export interface Position {
  /** From 1. */
  readonly line: number;
  /** From 1, in bytes. */
  readonly column: number;
}

/**
 * A refusal by the router. The message is the line that the router prints.
 *
 * The first block of texts was seen on routers. Those of the second are placeholders, because nobody has recorded what
 * a router prints there. A client must notice each refusal without knowing its text.
 */
export class Refusal extends Error {
  override readonly name = "Refusal";

  static badCommandName(word: string, at: Position): Refusal {
    return new Refusal(`bad command name ${word} ${location(at)}`);
  }

  static syntaxError(at: Position): Refusal {
    return new Refusal(`syntax error ${location(at)}`);
  }

  static expectedEndOfCommand(at: Position): Refusal {
    return new Refusal(`expected end of command ${location(at)}`);
  }

  static expectedItemId(at: Position): Refusal {
    return new Refusal(`expected item id ${location(at)}`);
  }

  /** A name that no item has. */
  static noSuchItem(): Refusal {
    return new Refusal("no such item");
  }

  /** An id of an item that no longer exists. */
  static noSuchItemId(): Refusal {
    return new Refusal("no such item (4)");
  }

  static alreadyHave(what: string): Refusal {
    return new Refusal(`failure: already have such ${what}`);
  }

  static noMatch(property: string): Refusal {
    return new Refusal(`input does not match any value of ${property}`);
  }

  static trailingCharacters(property: string): Refusal {
    return new Refusal(`value of ${property} contains invalid trailing characters`);
  }

  static outOfRange(property: string, range: string): Refusal {
    return new Refusal(`value of ${property} out of range (${range})`);
  }

  static notEnoughPermissions(): Refusal {
    return new Refusal("not enough permissions (9)");
  }

  static couldNotUnmount(): Refusal {
    return new Refusal("could not unmount, stop using it first");
  }

  static actionCancelled(): Refusal {
    return new Refusal("action cancelled");
  }

  // ---- placeholders -------------------------------------------------------------------------------------------

  static slotTooLong(limit: number): Refusal {
    return new Refusal(`failure: slot name longer than ${limit} characters`);
  }

  static missingValue(property: string): Refusal {
    return new Refusal(`failure: missing value of ${property}`);
  }

  static badPath(path: string): Refusal {
    return new Refusal(`failure: bad file path ${path}`);
  }

  static noSuchDirectory(path: string): Refusal {
    return new Refusal(`failure: no such directory ${path}`);
  }

  static fileExists(path: string): Refusal {
    return new Refusal(`failure: file ${path} already exists`);
  }

  static fileHasOtherSize(path: string): Refusal {
    return new Refusal(`failure: file ${path} exists with other size`);
  }

  static cannotShrink(): Refusal {
    return new Refusal("failure: can not make file smaller");
  }

  static noSpace(): Refusal {
    return new Refusal("failure: not enough space");
  }

  static notEmpty(path: string): Refusal {
    return new Refusal(`failure: directory ${path} is not empty`);
  }

  static notRemovable(slot: string): Refusal {
    return new Refusal(`failure: can not remove ${slot}`);
  }

  static inUse(): Refusal {
    return new Refusal("failure: could not remove, in use");
  }

  static readOnly(): Refusal {
    return new Refusal("failure: read-only file system");
  }

  static otherFilesystem(path: string): Refusal {
    return new Refusal(`failure: can not move ${path} to another filesystem`);
  }

  static badKey(): Refusal {
    return new Refusal("unable to load key file (wrong format)");
  }

  static notBtrfs(label: string): Refusal {
    return new Refusal(`failure: not btrfs: ${label}`);
  }
}

function location(at: Position): string {
  return `(line ${at.line} column ${at.column})`;
}

const hostileWords = ["amber", "kettle", "seven", "lorry", "OK", "true", "done", "zebra", "[]", "maybe", "0"];

/** A random text for a refusal. */
export function randomWords(fraction: () => number): string {
  const count = 1 + Math.floor(fraction() * 4);
  return Array.from({ length: count }, () => hostileWords[Math.floor(fraction() * hostileWords.length)])
    .join(" ");
}
