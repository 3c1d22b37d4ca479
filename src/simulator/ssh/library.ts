// @ts-types="@types/ssh2"
import ssh2 from "ssh2";

/** The SSH library. Its types come from another package, which only this file refers to. */
export { ssh2 };
// @ts-types="@types/ssh2"
export type {
  AuthContext,
  Connection,
  ParsedKey,
  PublicKeyAuthContext,
  ServerChannel,
  ServerConfig,
  Session as SshSession,
} from "ssh2";
