import { fileURLToPath } from "node:url";
import { hostOutput } from "../host_command.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/**
 * Packs the chart as `helm package` does, but with the same bytes each time: Helm records the time.
 *
 * @param url the project's URL, as the chart's home and source
 * @throws {TypeError} when that is no URL
 */
export async function packChart(file: string, seconds: number, url = ""): Promise<void> {
  const home = url && new URL(url).href;
  const about = home && `home: ${home}\nsources: [${home}]\n`;
  const script =
    'folder=$(mktemp -d); trap \'rm -r "$folder"\' EXIT; cp -r deploy/chart "$folder/rds-csi"; ' +
    'printf %s "$3" >>"$folder/rds-csi/Chart.yaml"; ' +
    'tar --create --sort=name --mtime="@$2" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX ' +
    '--directory="$folder" rds-csi | gzip --no-name --best >"$1"';
  const words = ["-eo", "pipefail", "-c", script, "bash", file, String(seconds), about];
  await hostOutput("/bin/bash", words, { cwd: ROOT });
}
