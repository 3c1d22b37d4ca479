import type { Reach } from "../../host/network.ts";
import type { StoredVolume } from "../../volume/ports/ports.ts";
import { type Finding, fine, problem, warning } from "../../volume/model/finding.ts";

const check = "nvme-port";

/** What there is to say about the port that volumes are exported on, as this machine sees it. */
export interface PortFacts {
  readonly address: string;
  readonly port: number;
  readonly reach: Reach;
  /** The router's file-backed disks; undefined when it was not asked. */
  readonly volumes: readonly StoredVolume[] | undefined;
}

/** Judges whether volumes can be reached from here. A router listens only while it exports something. */
export function judgeNvmePort({ address, port, reach, volumes }: PortFacts): Finding {
  const place = `${address}:${port}`;
  const exported = volumes?.filter((volume) => volume.exported && volume.exportPort === port).length;
  const exports = exported === undefined ? "what is exported is not known" : `exported there: ${exported}`;
  switch (reach.state) {
    case "open":
      return fine(check, `${place} answers; ${exports}`);
    case "refused":
      if (exported === 0) return fine(check, `${place} refuses, as nothing is exported there`);
      return exported === undefined
        ? warning(check, `${place} refuses: nothing is exported there, or it is the wrong place (${exports})`)
        : problem(
          check,
          `${place} refuses, though it should not; ${exports}`,
          "/disk/print where nvme-tcp-export",
        );
    case "silent":
    case "failed": {
      const found = `${place} cannot be reached from here (${reach.reason}); ${exports}`;
      const fix = `/ip/firewall/filter/add chain=input protocol=tcp dst-port=${port} src-address=NODES ` +
        "action=accept place-before=0, or --nvme-address ADDRESS";
      return exported === undefined || exported === 0
        ? warning(check, found, fix)
        : problem(check, found, fix);
    }
  }
}
