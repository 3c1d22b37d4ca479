import assert from "node:assert/strict";
import type { Bench, Suite } from "../kit/suite.ts";

/** What every other suite relies on. */
export const suite: Suite = {
  what: "the kit itself: commands, disks, power, networks, tests in the guest",
  limitMinutes: 5,
  alone: true,
  run: async (bench) => {
    await oneGuest(bench);
    await twoGuests(bench);
  },
};

async function oneGuest(bench: Bench): Promise<void> {
  const guest = await bench.guest({ disks: [{ name: "data", sizeBytes: 256 << 20 }] });
  await bench.test("a command answers its status, both outputs apart, and reads its input", async () => {
    const { status, stdout, stderr } = await guest.run("cat; echo err >&2; exit 42", { input: "in\n\tput" });
    assert.deepEqual([status, stdout, stderr], [42, "in\n\tput", "err"]);
    return "status 42";
  });
  await bench.test("a command finds its variables, its folder, and every character of its script", async () => {
    const printed = await guest.sh("printf '%s' \"$a|$PWD|\\\\\\0101|\t%b|ä\"", {
      env: { a: 'it\'s "a" $b\n' },
      cwd: "/usr",
    });
    assert.equal(printed, 'it\'s "a" $b\n|/usr|\\\\0101|\t%b|ä');
    return printed.replaceAll("\n", "↵");
  });
  await bench.test("a command is killed with its children, and what it printed is answered", async () => {
    let started = () => {};
    const line = new Promise<void>((resolve) => started = resolve);
    const command = await guest.start("sleep 1000 & echo on; wait", { onLine: () => started() });
    await line;
    await guest.sh(`kill -KILL -${await command.pid}`);
    const { status, stdout } = await command.end;
    assert.deepEqual([status, stdout], [137, "on"]);
    assert.equal((await guest.run("pgrep -x sleep")).status, 1);
    return "status 137, no child left";
  });
  await bench.test("a guest that loses its power comes back with its disks and without its memory", async () => {
    await guest.sh("echo kept | dd of=$disk conv=sync,fsync status=none; touch /lost", {
      env: { disk: guest.disk("data") },
    });
    const interrupted = await guest.start("sleep 1000");
    await guest.cutPower();
    await assert.rejects(interrupted.end, /The guest ended/);
    await guest.boot();
    const found = await guest.sh("head -c 4 $disk; ls /lost || :", { env: { disk: guest.disk("data") } });
    assert.equal(found, "kept");
    return `back after ${guest.bootSeconds.toFixed(1)} s`;
  });
  await bench.test("a frozen guest stands still and goes on", async () => {
    const uptime = async () => Number((await guest.sh("cat /proc/uptime")).split(" ")[0]);
    const before = await uptime();
    await guest.freeze();
    const late = uptime();
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    await guest.thaw();
    const passed = await late - before;
    assert.ok(passed < 2, `its clock went on by ${passed} s`);
    return `3 s outside were ${passed.toFixed(1)} s inside`;
  });
  await bench.inside(guest, new URL("kit_inside.ts", import.meta.url), ["an argument"]);
}

async function twoGuests(bench: Bench): Promise<void> {
  const { one, two } = await bench.guests(["one", "two"], { memoryMiB: 512, modules: [] });
  const reaches = async () => (await one.run("ping -c 1 -W 2 two")).status === 0;
  await bench.test("guests reach each other by name; a cable that is unplugged parts them until it is plugged in", async () => {
    const seen = [await reaches()];
    await two.setLink(false);
    seen.push(await reaches());
    await two.setLink(true);
    await one.until("ping -c 1 -W 2 two", { limitSeconds: 20 });
    assert.deepEqual(seen, [true, false]);
    return "reached, not reached, reached";
  });
  await bench.test("the network comes back after the power of the guest that carries it", async () => {
    await one.cutPower();
    assert.notEqual((await two.run("ping -c 1 -W 2 one")).status, 0);
    await one.boot();
    await two.until("ping -c 1 -W 2 one", { limitSeconds: 20 });
    return "not reached, reached";
  });
}
