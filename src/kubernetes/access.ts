import type { RequestOptions } from "node:https";

/** Where the API server is, and what a request to it needs. */
export interface ClusterAccess {
  readonly server: URL;
  /** The namespace of this process; "" when it is unknown. */
  readonly namespace: string;
  /** Whether the options' agent leads through a proxy, and has to be used unchanged. */
  readonly hasProxy: boolean;
  /** Adds the credentials to the options of a request. They are read again, so that a renewed token is used. */
  apply(options: RequestOptions): Promise<void>;
}
