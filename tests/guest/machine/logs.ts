import { hostOutput } from "../../../tools/host_command.ts";
import type { Bench } from "../kit/suite.ts";
import type { MachineCluster } from "./cluster.ts";

/** The end of each file is kept: of a suite of an hour all of them would be too much. */
const script = `cd /var/log
  for file in kubelet.log containerd.log pods/*/*/*.log; do
    [ -f "$file" ] && printf '\\n== %s\\n' "$file" && tail -c 4000000 "$file"
  done
  true`;

/** Keeps the logs of all containers that nodes still have, of their kubelets and runtimes, and the events of the cluster. */
export async function keepLogs(bench: Bench, cluster: MachineCluster): Promise<void> {
  for (const { guest } of cluster.nodes) {
    await keep(
      bench,
      `the log of ${guest.name}`,
      `logs-${guest.name}`,
      () => guest.sh(script, { limitSeconds: 120 }),
    );
  }
  const kubeconfig = await cluster.plane.kubeconfig("admin");
  const args = [`--kubeconfig=${kubeconfig}`, "get", "events", "--all-namespaces", "--output=wide"];
  const listed = () => hostOutput(cluster.tools.program("kubectl"), [...args, "--sort-by=.lastTimestamp"]);
  await keep(bench, "the list of events", "events", listed);
}

/** A frozen guest, or an API server that has ended, is no reason to end badly. */
async function keep(bench: Bench, what: string, name: string, read: () => Promise<string>): Promise<void> {
  try {
    await bench.keep(what, name, await read());
  } catch (error) {
    bench.report.say(`${what} cannot be had: ${error}`);
  }
}
