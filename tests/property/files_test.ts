// Files that are cut or changed at any byte: each is refused with an error of its own, or read. A state file that is cut is
// never read.
import assert from "node:assert/strict";
import { readServeConfig } from "../../src/cli/config/config.ts";
import { parseRoutersFile } from "../../src/cli/config/routers_file.ts";
import { getProfile } from "../../src/simulator/profile.ts";
import { formatProfile, parseProfile } from "../../src/router_profile/profile.ts";
import { FlagError } from "../../src/cli/flags.ts";
import { aStagingState, type FlatState } from "../fakes/staging_state.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import { formatStagingState, parseStagingState } from "../../src/volume/model/staging/state_file.ts";

const staged: FlatState = {
  volumeId: "pvc-1",
  nqn: "nqn.2000-02.com.mikrotik:pvc-1:1-0a0b0c0d",
  epoch: "1-0a0b0c0d",
  addresses: ["10.0.0.1", "10.0.0.2"],
  port: 4420,
  mayFormat: true,
  connection: { ctrlLossTmo: 600, digests: ["header"] },
  map: "multipath",
  kind: "ext4",
  readOnly: false,
  mountFlags: ["noatime"],
  stagingPath: "/var/lib/kubelet/staging",
  namespaceBytes: 1073741824n,
  device: { deviceNumber: "259:3", uniqueId: "uuid.0", sizeBytes: 1073741824n },
  header: "none",
  filesystem: "started",
  used: false,
  mountedAs: "259:3",
  filesystemUuid: "0a0b0c0d",
  rootOpened: true,
  staged: true,
  published: [{ targetPath: "/var/lib/kubelet/pods/1/mount", readOnly: false }],
};

const routers = `routers:
  - name: east
    default: true
    address: 10.0.0.1
    user: csi
    hostKeys: [ssh-ed25519 AAAA]
    keyFile: /etc/rds-csi/key
    basePaths: [/pool/csi]
  - name: west
    address: 10.0.0.2
    hostKeys: [ssh-ed25519 AAAA]
    keyFile: /etc/rds-csi/key
`;

/** Reads a state as a restarted node does. */
function readState(text: string): unknown {
  try {
    return parseStagingState(text, "pvc-1", "/state/pvc-1.json");
  } catch (error) {
    assert.ok(VolumeError.is(error, "precondition"), String(error));
    return undefined;
  }
}

/** Each file, with a reader that returns its content or its problem; any other error is thrown. */
const files: Readonly<Record<string, { readonly text: string; readonly read: (text: string) => unknown }>> = {
  "a volume's state": { text: formatStagingState(aStagingState(staged)), read: readState },
  "an encrypted volume's state": {
    text: formatStagingState(aStagingState({ ...staged, map: "crypt", header: "started" })),
    read: readState,
  },
  "a router's profile": {
    text: formatProfile({ ...getProfile("ros-7.24"), answers: { grow: "live" } }),
    read: (text) => {
      try {
        return parseProfile(text);
      } catch (error) {
        assert.ok(error instanceof RangeError, String(error));
        return undefined;
      }
    },
  },
  "the file of several routers": {
    text: routers,
    read: (text) => {
      const args = ["--mode", "controller", "--cluster-id", "c", "--config", "routers.yaml"];
      try {
        return readServeConfig(args, () => undefined, () => text, parseRoutersFile);
      } catch (error) {
        assert.ok(error instanceof FlagError, String(error));
        return undefined;
      }
    },
  },
};

for (const [name, { text, read }] of Object.entries(files)) {
  const bytes = new TextEncoder().encode(text);
  const decode = (part: Uint8Array) => new TextDecoder().decode(part);

  Deno.test(`${name} that is cut at any byte is read, or refused with an error of its own`, () => {
    assert.notEqual(read(text), undefined);
    for (let at = 0; at < bytes.length; at++) read(decode(bytes.subarray(0, at)));
  });

  Deno.test(`${name} of which any byte is changed is read, or refused with an error of its own`, () => {
    let refused = 0;
    for (let at = 0; at < bytes.length; at++) {
      for (const byte of [0, 0x22, 0x7d, 0xff, bytes[at]! ^ 1]) {
        const changed = bytes.slice();
        changed[at] = byte;
        if (read(decode(changed)) === undefined) refused++;
      }
    }
    assert.ok(refused > bytes.length, `${refused} were refused`);
  });
}

Deno.test("a volume's state that is cut is never read", () => {
  const { text } = files["an encrypted volume's state"]!;
  const whole = text.trimEnd().length;
  for (let at = 0; at < whole; at++) {
    assert.throws(
      () => parseStagingState(text.slice(0, at), "pvc-1", ""),
      (error) => VolumeError.is(error),
      text,
    );
  }
});
