import { type Finding, fine, problem } from "../../volume/model/finding.ts";

const check = "login";

/** What is known about logging in. */
export interface LoginFacts {
  readonly user: string;
  /** What the server offers; undefined when it never said. */
  readonly methods: readonly string[] | undefined;
  /** Whether the server lets the user in without any proof. */
  readonly open: boolean;
  /** What the driver has to show. */
  readonly credentials: "key" | "password" | "none";
  /** Why it did not log in; undefined when it did. */
  readonly failure: string | undefined;
}

/** Judges whether the driver gets in. */
export function judgeLogin({ user, methods, open, credentials, failure }: LoginFacts): Finding {
  if (open) {
    return problem(
      check,
      `${user} gets in without a password`,
      `/user/set [find where name="${user}"] password=…`,
    );
  }
  const offered = methods === undefined ? "" : `; the router offers ${methods.join(", ") || "nothing"}`;
  if (credentials === "none") {
    return problem(
      check,
      `neither --rds-key nor --rds-password-file is given${offered}`,
      "--rds-key FILE or --rds-password-file FILE",
    );
  }
  const shown = credentials === "key" ? "its key" : "its password";
  if (failure === undefined) return fine(check, `${user} logs in with ${shown}${offered}`);
  return problem(
    check,
    `${user} cannot log in with ${shown}: ${failure}${offered}`,
    fixFor(user, credentials),
  );
}

function fixFor(user: string, credentials: "key" | "password"): string {
  return credentials === "key"
    ? `/user/ssh-keys/import user=${user} public-key-file=FILE.pub`
    : `/user/set [find where name="${user}"] password=…, or --rds-key FILE where passwords are not taken`;
}
