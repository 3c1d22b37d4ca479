// @ts-types="@types/ssh2"
import ssh2 from "ssh2";

/** The SSH library. Its types come from elsewhere, which only this file has to know. */
export { ssh2 };
// @ts-types="@types/ssh2"
export type {
  AuthContext,
  Connection,
  ParsedKey,
  PublicKeyAuthContext,
  ServerChannel,
  Session as SshSession,
} from "ssh2";
