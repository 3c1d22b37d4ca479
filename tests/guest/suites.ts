import { isLong } from "../support/long.ts";
import type { Suite } from "./kit/suite.ts";
import { suite as acceptance } from "./suites/acceptance.ts";
import { suite as demo } from "./suites/demo.ts";
import {
  newerSinglePathSuite,
  singlePathSuite,
  stableSuite,
  suite as deviceLayer,
} from "./suites/device_layer.ts";
import { suite as directory } from "./suites/directory.ts";
import { suite as directoryKill } from "./suites/directory_kill.ts";
import { suite as directorySanity } from "./suites/directory_sanity.ts";
import { suite as identity } from "./suites/identity.ts";
import { longSuite as kernelLong, suite as kernel } from "./suites/kernel.ts";
import { encryption } from "./suites/encryption.ts";
import { encryptionDamage } from "./suites/encryption_damage.ts";
import { encryptedSuite as killEncrypted, layerSuite as killLayer, suite as kill } from "./suites/kill.ts";
import { suite as lostTarget } from "./suites/lost_target.ts";
import {
  e2eDirectorySuite,
  failoverSuite,
  immutableSuite,
  kernelTargetSuite,
  killsSuite,
  kindsSuite,
  quickStartSuite,
  suite as nodeMachine,
} from "./suites/node_machine.ts";
import { suite as rescue } from "./suites/rescue.ts";
import { encryptedSuite as sanityEncrypted, suite as sanity } from "./suites/sanity.ts";
import { layerSuite as twoNodesLayer, suite as twoNodes } from "./suites/two_nodes.ts";
import { suite as upgrade } from "./suites/upgrade.ts";
import { suite as upgradeLayer } from "./suites/upgrade_layer.ts";

/** All suites, in the order in which they run. */
export const suites: Readonly<Record<string, Suite>> = {
  demo,
  acceptance,
  rescue,
  sanity,
  sanity_encrypted: sanityEncrypted,
  kernel,
  kernel_long: kernelLong,
  identity,
  directory,
  directory_sanity: directorySanity,
  device_layer: deviceLayer,
  device_layer_stable: stableSuite,
  device_layer_single_path: singlePathSuite,
  device_layer_single_path_newer: newerSinglePathSuite,
  kill,
  kill_layer: killLayer,
  encryption,
  encryption_damage: encryptionDamage,
  kill_encrypted: killEncrypted,
  kill_directory: directoryKill,
  upgrade,
  upgrade_layer: upgradeLayer,
  two_nodes: twoNodes,
  two_nodes_layer: twoNodesLayer,
  lost_target: lostTarget,
  node_machine: nodeMachine,
  node_machine_kills: killsSuite,
  node_machine_quick_start: quickStartSuite,
  node_machine_failover: failoverSuite,
  node_machine_immutable: immutableSuite,
  node_machine_kernel_target: kernelTargetSuite,
  node_machine_kinds: kindsSuite,
  node_machine_e2e_directory: e2eDirectorySuite,
};

/** Those that run where nobody names any: upstream's tests take too long for every change. */
export const defaultSuites: readonly string[] = Object.keys(suites).filter((name) =>
  name !== "node_machine_e2e_directory" || isLong
);
