import assert from "node:assert/strict";
import { addCommand, typing } from "../simulator_test_support.ts";

const exported = 'nvme-tcp-export="yes" nvme-tcp-server-port="4420" ' +
  'nvme-tcp-server-nqn="nqn.2000-02.com.mikrotik:pvc-1:3-1a2b3c4d" comment="{rds1 x}"';

function lines(...expected: readonly string[]): string {
  return expected.map((line) => `${line}\r\n`).join("");
}

Deno.test("print detail wraps inside values, groups digits and rounds sizes", async () => {
  const type = await typing();
  await type(addCommand("pvc-1", exported));
  assert.equal(
    await type('/disk print detail where slot="pvc-1"'),
    lines(
      "Flags: B - BLOCK-DEVICE; t - NVME-TCP-EXPORT",
      " 3 Bt ;;; {rds1 x}",
      '      type=file slot="pvc-1" slot-default="" parent="" fs=-',
      '      model="/storage-pool/metal-csi/pvc-1.img" size=1 073 741 824',
      "      mount-filesystem=no mount-read-only=no compress=no sector-size=512",
      "      raid-master=none nvme-tcp-export=yes nvme-tcp-server-port=4420",
      '      nvme-tcp-server-nqn="nqn.2000-02.com.mikrotik:pvc-1:3-1a2b3c4d"',
      '      nvme-tcp-server-allow-host-name="" iscsi-export=no nfs-sharing=no',
      "      smb-sharing=no media-sharing=no media-interface=none swap=no",
      "      file-path=/storage-pool/metal-csi/pvc-1.img file-size=1024.0MiB",
      "      file-offset=0",
    ),
  );
});

Deno.test("print detail breaks a grouped number and a long name in the middle", async () => {
  const type = await typing();
  const path = `/storage-pool/metal-csi/${"x".repeat(70)}.img`;
  await type(
    `/disk add type="file" slot="p" file-path="${path}" file-size="53687091200" mount-filesystem="no"`,
  );
  assert.equal(
    await type('/disk print detail proplist=slot,model,size,file-path where slot="p"'),
    lines(
      "Flags: B - BLOCK-DEVICE",
      ' 3 B slot="p"',
      `     model="/storage-pool/metal-csi/${"x".repeat(44)}`,
      `     ${"x".repeat(26)}.img" size=53 687 091 200`,
      `     file-path=/storage-pool/metal-csi/${"x".repeat(41)}`,
      `     ${"x".repeat(29)}.img`,
    ),
  );
});

Deno.test("on older routers the legend names every flag and the letters take eleven places", async () => {
  const type = await typing({}, "ros-7.21");
  await type(addCommand("p"));
  assert.equal(
    await type('/disk print detail proplist=type,slot where slot="p"'),
    lines(
      "Flags: X - DISABLED; A - ACQUIRED, E - EMPTY, B - BLOCK-DEVICE;",
      "M - MOUNTED, F - FORMATTING, S - SWAP-ENABLED; p - PARTITION;",
      "f - RAID-MEMBER-FAILED, r - RAID-MEMBER; c - ENCRYPTED;",
      "g - GUID-PARTITION-TABLE; t - NVME-TCP-EXPORT; i - ISCSI-EXPORT;",
      "s - SMB-SHARING; n - NFS-SHARING",
      ' 3  B          type=file slot="p"',
    ),
  );
});

Deno.test("plain print is a table of the columns that hold anything", async () => {
  const type = await typing();
  await type(addCommand("p", 'comment="mine"'));
  assert.equal(
    await type('/disk print where slot="p" or mounted'),
    lines(
      "Flags: B - BLOCK-DEVICE; M - MOUNTED",
      "Columns: SLOT, MODEL, SIZE, FREE, FS",
      "#    SLOT          MODEL                                       SIZE               FREE  FS",
      "2 BM storage-pool  RAID1 mirrored                 7 681 574 174 720  7 301 927 047 168  btrfs",
      ";;; mine",
      "3 B  p             /storage-pool/metal-csi/p.img      1 073 741 824                     -",
    ),
  );
});

Deno.test("terse is one line an item, values bare, the comment first", async () => {
  const type = await typing();
  await type(addCommand("p", 'comment="it is mine"'));
  assert.equal(
    await type('/disk print terse proplist=slot,comment,size,file-size where slot="p"'),
    lines(" 3 B comment=it is mine slot=p size=1 073 741 824 file-size=1024.0MiB"),
  );
});

Deno.test("a print of nothing prints nothing", async () => {
  const type = await typing();
  assert.equal(await type('/disk print detail where slot="x"'), "");
  assert.equal(await type('/disk print where slot="x"'), "");
});

Deno.test("menus without items print a property a line", async () => {
  const type = await typing();
  assert.equal(await type("/system identity print"), lines("  name: MikroTik"));
  assert.equal(
    await type("/system resource print"),
    lines(
      "             uptime: 2w1d3h4m5s",
      "            version: 7.24 (stable)",
      "        free-memory: 30.0GiB",
      "       total-memory: 32.0GiB",
      "                cpu: ARM64",
      "          cpu-count: 16",
      "           cpu-load: 1%",
      "  architecture-name: arm64",
      "         board-name: RDS2216",
      "           platform: MikroTik",
    ),
  );
});

Deno.test("health, packages, files and subvolumes print as tables", async () => {
  const type = await typing();
  await type('/disk/btrfs/subvolume/add fs="storage-pool-fs" name="vol"');
  await type('/disk/btrfs/subvolume/add read-only="yes" parent="vol" fs="storage-pool-fs" name="snap"');
  assert.equal(
    await type("/system health print"),
    lines(
      "Columns: NAME, VALUE, TYPE",
      "# NAME             VALUE  TYPE",
      "0 cpu-temperature  47     C",
      "1 fan1-speed       5400   RPM",
      "2 psu1-state       ok",
    ),
  );
  assert.equal(
    await type("/system package print"),
    lines(
      "Columns: NAME, VERSION",
      "# NAME          VERSION",
      "0 rose-storage  7.24",
      "1 routeros      7.24",
    ),
  );
  assert.equal(
    await type("/file print proplist=name,type,size"),
    lines(
      "Columns: NAME, TYPE",
      "# NAME                    TYPE",
      "0 storage-pool            disk",
      "1 storage-pool/metal-csi  directory",
      "2 storage-pool/snap       directory",
      "3 storage-pool/vol        directory",
    ),
  );
  assert.equal(
    await type("/disk/btrfs/subvolume/print"),
    lines(
      "Flags: * - DEFAULT; S - SNAPSHOT; r - READ-ONLY",
      "Columns: FS, NAME, PARENT",
      "#     FS               NAME       PARENT",
      "0 *   storage-pool-fs  <FS_ROOT>",
      "1     storage-pool-fs  vol",
      "2  Sr storage-pool-fs  snap       vol",
    ),
  );
});

Deno.test("print detail of a subvolume tells all there is to it", async () => {
  const type = await typing();
  await type('/disk/btrfs/subvolume/add fs="storage-pool-fs" name="metal-csi/vol"');
  await type('/disk/btrfs/subvolume/add read-only="yes" parent="vol" fs="storage-pool-fs" name="snap"');
  assert.equal(
    await type("/disk/btrfs/subvolume/print detail where !default"),
    lines(
      "Flags: S - SNAPSHOT; r - READ-ONLY",
      ' 1    fs=storage-pool-fs name="vol" fullname="metal-csi/vol"',
      '      top-level="<FS_ROOT>" mount=no uuid="7d1165c4-4930-0a6d-97cc-4b34a88bc231"',
      "      subvolume-id=256 generation=12 creation-time=2026-01-01 00:00:00",
      '      snapshots="snap"',
      "",
      ' 2 Sr fs=storage-pool-fs name="snap" fullname="snap" top-level="<FS_ROOT>"',
      '      parent="metal-csi/vol" mount=no',
      '      uuid="b874c5fe-3dc1-2752-693f-26b99320430c" subvolume-id=257 generation=13',
      "      creation-time=2026-01-01 00:00:00",
    ),
  );
});

Deno.test("print detail of a pool and terse files", async () => {
  const type = await typing();
  assert.equal(
    await type("/disk print detail where mounted"),
    lines(
      "Flags: B - BLOCK-DEVICE; M - MOUNTED",
      ' 2 BM type=raid slot="storage-pool" slot-default="" parent=""',
      '      fs-label="storage-pool-fs" fs=btrfs model="RAID1 mirrored" size=7 681 574',
      '      174 720 free=7 301 927 047 168 use=5% mount-point="storage-pool"',
      "      mount-filesystem=yes mount-read-only=no compress=no sector-size=512",
      '      raid-master=none state="clean" nvme-tcp-export=no iscsi-export=no',
      "      nfs-sharing=no smb-sharing=no media-sharing=no media-interface=none",
      "      swap=no",
    ),
  );
  assert.equal(
    await type("/file print terse proplist=name,type,last-modified"),
    lines(
      " 0  name=storage-pool type=disk last-modified=2026-01-01 00:00:00",
      " 1  name=storage-pool/metal-csi type=directory last-modified=2026-01-01 00:00:00",
    ),
  );
});

Deno.test("the knob lineEnd takes the carriage returns away", async () => {
  const type = await typing({ lineEnd: "lf" });
  assert.equal(await type(':put "a"; :put "b"'), "a\nb\n");
});
