import assert from "node:assert/strict";
import { jsonCommand, typing } from "../../../tests/support/simulated_router.ts";

Deno.test("/system clock print reports date, time and offset", async () => {
  const type = await typing();
  assert.equal(
    await type(jsonCommand("/system clock print as-value")),
    '{"date":"2026-01-01","dst-active":false,"gmt-offset":"+00:00","time":"00:00:00",' +
      '"time-zone-autodetect":true,"time-zone-name":"UTC"}\r\n',
  );
});

Deno.test("/ip service print reports the limit of SSH sessions, if there is one", async () => {
  const ask = jsonCommand('/ip service print detail as-value where name="ssh"');
  assert.equal(
    await (await typing())(ask),
    '[{".id":"*1","available-from":"","max-sessions":20,"name":"ssh","port":22}]\r\n',
  );
  assert.equal(
    await (await typing({ maxSessions: Infinity }))(ask),
    '[{".id":"*1","available-from":"","name":"ssh","port":22}]\r\n',
  );
});

Deno.test("/ip service names the allowed addresses available-from since 7.24, and address before", async () => {
  for (const [profile, word] of [["ros-7.24", "available-from"], ["ros-7.21", "address"]] as const) {
    const type = await typing({}, profile);
    const [ssh] = JSON.parse(await type(jsonCommand('/ip service print detail as-value where name="ssh"')));
    assert.deepEqual(Object.keys(ssh), [".id", word, "max-sessions", "name", "port"]);
  }
});
