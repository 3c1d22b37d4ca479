/** A text that must not be printed anywhere. */
export interface Secret {
  readonly name: string;
  /** Each of these is the secret, or enough of it to matter. */
  readonly texts: readonly string[];
}

/** Everything that was printed, with its place. */
export type Transcript = readonly (readonly [where: string, text: string])[];

/** The parts of a private key that must not be printed: each of its lines. */
export function keySecret(pem: string): Secret {
  const lines = pem.split("\n").filter((line) => line !== "" && !line.startsWith("-----"));
  return { name: "the private key", texts: lines.map((line) => line.trim()) };
}

/**
 * Every place where one of the secrets was printed: unchanged, or in the form of a URL, JSON, a shell or a dump of
 * bytes, or in base64, also within a longer text.
 */
export function findLeaks(transcript: Transcript, secrets: readonly Secret[]): string[] {
  return transcript.flatMap(([where, text]) => {
    const folded = text.toLowerCase();
    return secrets.flatMap(({ name, texts }) =>
      texts.flatMap((secret) =>
        spellings(secret)
          .filter(([, spelled]) => folded.includes(spelled.toLowerCase()))
          .map(([how, spelled]) => `${where} shows ${name} ${how}: ${around(text, folded, spelled)}`)
      )
    );
  });
}

function spellings(secret: string): readonly (readonly [how: string, spelled: string])[] {
  const bytes = new TextEncoder().encode(secret);
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0"));
  return [
    ["as it is", secret],
    ["in JSON", JSON.stringify(secret).slice(1, -1)],
    ["in JSON within JSON", JSON.stringify(JSON.stringify(secret)).slice(3, -3)],
    ["in a URL", encodeURIComponent(secret)],
    ["in a form", new URLSearchParams({ a: secret }).toString().slice(2)],
    [
      "in HTML",
      secret.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;").replaceAll(
        "'",
        "&#39;",
      ),
    ],
    ["in RouterOS's quotes", secret.replaceAll(/["\\$]/g, "\\$&")],
    ["in hexadecimal", hex.join("")],
    ["in hexadecimal, apart", hex.join(" ")],
    ["as a dump of bytes", [...bytes].join(",")],
    ...[0, 1, 2].map((before) => ["in base64", base64Within(bytes, before)] as const),
  ];
}

/** The base64 form of the bytes after so many others, without the digits that it shares with them. */
function base64Within(bytes: Uint8Array, before: number): string {
  const whole = new Uint8Array(before + bytes.length);
  whole.set(bytes, before);
  const first = Math.ceil(before * 8 / 6);
  return whole.toBase64().slice(first, Math.floor((before + bytes.length) * 8 / 6));
}

function around(text: string, folded: string, spelled: string): string {
  const at = folded.indexOf(spelled.toLowerCase());
  return JSON.stringify(text.slice(Math.max(0, at - 60), at + spelled.length + 20));
}
