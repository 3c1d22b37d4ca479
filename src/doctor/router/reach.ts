import type { Reach } from "../../host/network.ts";
import { type Finding, fine, problem } from "../../volume/model/finding.ts";

const check = "reach";

/** What is known about the way to the router's SSH service. */
export interface ReachFacts {
  readonly address: string;
  readonly port: number;
  /** The addresses of its name; in words, why there are none. */
  readonly addresses: readonly string[] | string;
  /** Undefined when there was no address to try. */
  readonly reach: Reach | undefined;
}

/** Judges whether the router's name resolves and something answers there. */
export function judgeReach({ address, port, addresses, reach }: ReachFacts): Finding {
  if (typeof addresses === "string") {
    return problem(check, `the name ${address} cannot be resolved: ${addresses}`, "--rds-address ADDRESS");
  }
  const named = addresses.includes(address) ? address : `${address} (${addresses.join(", ")})`;
  const place = `${named} port ${port}`;
  switch (reach?.state) {
    case "open":
      return fine(check, `${place} answers in ${Math.ceil(reach.ms)} ms`);
    case "refused":
      return problem(
        check,
        `${place} refuses the connection`,
        `/ip/service/set [find where name="ssh"] disabled=no port=${port} address=""`,
      );
    case "silent":
      return problem(
        check,
        `${place} does not answer (${reach.reason})`,
        `/ip/firewall/filter/add chain=input protocol=tcp dst-port=${port} src-address=NODES action=accept place-before=0`,
      );
    default:
      return problem(
        check,
        `${place} cannot be reached (${reach?.reason ?? "not tried"})`,
        "--rds-address ADDRESS",
      );
  }
}
