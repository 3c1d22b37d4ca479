// Runs tools that end without reading their input, or are killed meanwhile. It ends with another code than 0 where that ends the
// whole process, as anything does that nobody waits for.
import { spawnProcess } from "../../src/host/spawn.ts";

const longerThanAPipe = "x".repeat(200_000);
for (const input of ["x", longerThanAPipe]) {
  for (let count = 0; count < 50; count++) await spawnProcess("/bin/true", [], input).result;
}
for (let count = 0; count < 50; count++) {
  const { result, kill } = spawnProcess("/bin/sleep", ["10"], longerThanAPipe);
  kill();
  await result;
}
