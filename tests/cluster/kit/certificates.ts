import { join } from "node:path";
import { hostOutput } from "../../guest/kit/host_command.ts";

/** Keys of a cluster, as paths. */
export interface Certificates {
  readonly folder: string;
  /** Signs and checks the tokens of service accounts. */
  readonly serviceAccountKey: string;
  /** By which kubelets know the API server, when it asks for logs or runs a command in a pod. */
  readonly kubeletClientAuthority: string;
  readonly kubeletClientCertificate: string;
  readonly kubeletClientKey: string;
}

/** Makes the keys that nobody makes for himself; the API server makes the certificate that it serves with. */
export async function makeCertificates(folder: string): Promise<Certificates> {
  await Deno.mkdir(folder, { mode: 0o700 });
  const file = (name: string) => join(folder, name);
  const openssl = (...args: string[]) => hostOutput("openssl", args, { cwd: folder });
  const key = ["-newkey", "rsa:2048", "-nodes", "-days", "2"];
  const authority = ["-subj", "/CN=kubelet-clients", "-keyout", "authority.key", "-out", "authority.crt"];
  const client = ["-subj", "/O=system:masters/CN=api-server", "-keyout", "client.key", "-out", "client.csr"];
  await openssl("genrsa", "-out", "accounts.key", "2048");
  await openssl("req", "-x509", ...key, ...authority);
  await openssl("req", ...key.slice(0, 3), ...client);
  const signer = ["-CA", "authority.crt", "-CAkey", "authority.key", "-CAcreateserial", "-days", "2"];
  await openssl("x509", "-req", "-in", "client.csr", ...signer, "-out", "client.crt");
  return {
    folder,
    serviceAccountKey: file("accounts.key"),
    kubeletClientAuthority: file("authority.crt"),
    kubeletClientCertificate: file("client.crt"),
    kubeletClientKey: file("client.key"),
  };
}
