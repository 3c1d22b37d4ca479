import { join } from "node:path";
import { parseJunit } from "../../tools/junit.ts";
import { hostOutput, isThere } from "../../tools/host_command.ts";

/** The only version that knows the capabilities of CSI 1.13. */
const MODULE = "github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity";
const VERSION = "v5.6.0";

/** The first build downloads a hundred modules. */
const BUILD_LIMIT_MS = 10 * 60_000;

/** The longest time for one run of the suite. */
const RUN_LIMIT_MS = 10 * 60_000;

/** Volumes are sparse, so their size costs nothing; xfs needs 300 MiB. */
const VOLUME_BYTES = 1 << 30;

/**
 * The accepted reasons of csi-sanity to skip a test: capabilities that this driver does not advertise. Any other reason
 * is a failure, so that a lost capability is noticed.
 */
export const NOT_ADVERTISED: readonly string[] = [
  "SNAPSHOT_ACCESSIBILITY_CONSTRAINTS not supported",
  "Modify volume not supported",
  "Modify Volume not supported",
  "ControllerModifyVolume not supported",
  "GroupControllerService not supported",
  "VolumeGroupSnapshots not supported",
  // NodeGetInfo gives no max_volumes_per_node, so there is no limit to test.
  "testnodevolumeattachlimit not enabled",
  // csi-sanity's own reason for tests that it runs against no driver yet.
  "pending",
];

/** How the suite's volumes are used. */
export type AccessType = "mount" | "block";

/** One test of the suite. */
export interface SuiteTest {
  readonly name: string;
  readonly outcome: "passed" | "failed" | "skipped";
  /** Why it was skipped. */
  readonly reason: string;
}

/** The result of one run of the suite. */
export interface SuiteResult {
  readonly ok: boolean;
  readonly tests: readonly SuiteTest[];
  /** Its output, which is long. */
  readonly output: string;
}

/** Builds csi-sanity into `folder` if it is missing. Returns its path. */
export async function buildSuite(folder: string): Promise<string> {
  const target = join(folder, `csi-sanity-${VERSION}`);
  const program = join(target, "csi-sanity");
  if (isThere(program)) return program;
  await Deno.mkdir(target, { recursive: true });
  // Static, so that it also runs in a guest.
  const env = { GOBIN: target, GOFLAGS: "-mod=mod", CGO_ENABLED: "0" };
  await hostOutput("go", ["install", `${MODULE}@${VERSION}`], { env, limitMs: BUILD_LIMIT_MS });
  return program;
}

/** What csi-sanity passes on, as paths of YAML files. */
export interface SuiteFiles {
  /** Secrets by the call that they are for. */
  readonly secrets: string;
  /** Parameters of the StorageClass. */
  readonly parameters: string;
}

/** Returns the arguments of csi-sanity; all its files are in `folder`. */
export function suiteArguments(
  options: { endpoint: string; folder: string; report: string; access: AccessType; files?: SuiteFiles },
): string[] {
  const { files } = options;
  const given = files === undefined
    ? []
    : [`-csi.secrets=${files.secrets}`, `-csi.testvolumeparameters=${files.parameters}`];
  return [
    ...given,
    `-csi.endpoint=${options.endpoint}`,
    `-csi.mountdir=${join(options.folder, "target")}`,
    `-csi.stagingdir=${join(options.folder, "staging")}`,
    `-csi.testvolumesize=${VOLUME_BYTES}`,
    `-csi.testvolumeexpandsize=${2 * VOLUME_BYTES}`,
    `-csi.testvolumeaccesstype=${options.access}`,
    ...["-ginkgo.no-color", "-ginkgo.silence-skips", `-ginkgo.junit-report=${options.report}`],
  ];
}

/** Runs csi-sanity against `endpoint`; all its files are in `folder`. */
export async function runSuite(
  program: string,
  options: { endpoint: string; folder: string; access: AccessType; signal: AbortSignal },
): Promise<SuiteResult> {
  const report = join(options.folder, `report-${options.access}.xml`);
  const { success, stdout, stderr } = await new Deno.Command(program, {
    args: suiteArguments({ ...options, report }),
    stdin: "null",
    signal: AbortSignal.any([options.signal, AbortSignal.timeout(RUN_LIMIT_MS)]),
  }).output();
  const decoder = new TextDecoder();
  const output = decoder.decode(stdout) + decoder.decode(stderr);
  return {
    ok: success,
    tests: isThere(report) ? readReport(await Deno.readTextFile(report)) : [],
    output,
  };
}

/** Returns the tests of a report, without the suite's own set-up. */
export function readReport(xml: string): SuiteTest[] {
  return parseJunit(xml).filter(({ name, outcome }) => name.startsWith("[It]") || outcome === "failed").map((
    one,
  ) => ({
    name: one.name.replace(/^\[It\] /, ""),
    outcome: one.outcome,
    reason: one.message.replace(/^skipped - /, ""),
  }));
}
