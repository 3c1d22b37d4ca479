import { METHOD_MESSAGES, SECRET_FIELDS } from "../generated/secrets.ts";

const REDACTED = "[redacted]";

/**
 * Not marked csi_secret, but "MAY contain sensitive information" (CSI v1.13.0, VolumeCapability.MountVolume), and the
 * second is what every secret field of the specification is called: a second line of defence.
 */
const ALWAYS_REDACTED: ReadonlySet<string> = new Set(["mountFlags", "secrets"]);

/**
 * A copy of a request that may be logged: fields marked csi_secret, mount flags and empty values are left out or
 * replaced. Of a request of an unknown method nothing is printed.
 */
export function redactRequest(path: string, request: unknown): unknown {
  const messages = METHOD_MESSAGES.get(path);
  if (messages === undefined) return REDACTED;
  return copy(request, new Set([...SECRET_FIELDS.get(messages.request) ?? [], ...ALWAYS_REDACTED]));
}

function copy(value: unknown, secret: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((item) => copy(item, secret));
  if (value === null || typeof value !== "object" || value instanceof Uint8Array) return value;
  const entries = Object.entries(value).filter(([, field]) => !isEmpty(field));
  return Object.fromEntries(
    entries.map(([name, field]) => [name, secret.has(name) ? REDACTED : copy(field, secret)]),
  );
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}
