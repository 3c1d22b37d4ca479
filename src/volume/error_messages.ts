/** By the codes of Node's errors and the names of Deno's. */
const fileFailures: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  NotFound: "there is no such file",
  EACCES: "this process has no right to it",
  EPERM: "this process has no right to it",
  PermissionDenied: "this process has no right to it",
  EISDIR: "it is a folder",
  IsADirectory: "it is a folder",
  ENOTDIR: "a part of its path is no folder",
  NotADirectory: "a part of its path is no folder",
};

/** An executable has its permissions inside. */
function describeRefusal(message: string): string {
  const kind = /^Requires (\w+) access/.exec(message)?.[1];
  switch (kind) {
    case "read":
      return `this executable may not read there; copy the file to ${foldersForFiles.read.join(" or ")}`;
    case "write":
      return `this executable may not write there; use ${foldersForFiles.write.join(" or ")}, ` +
        "or for a node's state a folder in the kubelet's";
    case "net":
      return "this executable may not reach it, by the ALLOW_NET of its build";
    default:
      return "the permissions of this executable exclude it";
  }
}

/**
 * Returns the message of a thrown error; any other thrown value as a string. The runtime's messages about files and
 * permissions are put into words for people, because they name flags that no executable has.
 */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = "code" in error && typeof error.code === "string" ? error.code : error.name;
  // An error with words of its own says more than its code.
  const isOfRuntime = /^[A-Z][\w ,]* \(os error \d+\)/.test(error.message) ||
    error.message.startsWith(`${code}: `);
  const words = error.name === "NotCapable"
    ? describeRefusal(error.message)
    : isOfRuntime
    ? fileFailures[code]
    : undefined;
  if (words === undefined) return error.message;
  const subject = /(?:access to |, \w+ |: \w+ )["'](.+?)["'](?:, (?:run again|specify) .*)?$/.exec(
    error.message,
  )?.[1];
  return subject === undefined ? words : `${words}: ${subject}`;
}

/** Returns the message of an error about a file whose path the reader has already: without that path at its end. */
export function messageAbout(path: string, error: unknown): string {
  const message = messageOf(error);
  return message.endsWith(`: ${path}`) ? message.slice(0, -`: ${path}`.length) : message;
}

/** Whether an error is the system's, as of a disk that is full, and no fault of this program. */
export function isOfSystem(error: Error): boolean {
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  return messageOf(error) !== error.message || /\(os error \d+\)/.test(error.message) ||
    /^E(?!RR_)[A-Z0-9]+$/.test(code);
}

/** Folders in which every executable may read the files that a person gives it, and the one in which it may write. */
export const foldersForFiles = { read: ["/etc/rds-csi", "/tmp"], write: ["/tmp"] } as const;
