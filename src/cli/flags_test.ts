import assert from "node:assert/strict";
import {
  describeFlags,
  didYouMean,
  FlagError,
  type FlagTable,
  type FlagValues,
  readFlags,
  subjectFirst,
} from "./flags.ts";

const table: FlagTable = {
  name: { form: "text", fallback: "anon", env: ["NAME", "OTHER_NAME"], help: "A name." },
  color: { form: "text", choices: ["red", "blue"], help: "A color." },
  port: { form: "integer", least: 1, most: 10, fallback: "5", help: "A port." },
  factor: { form: "number", least: 0.5, most: 2, fallback: "1", help: "A factor." },
  wait: { form: "duration", most: 60_000, fallback: "10s", help: "A wait." },
  loud: { form: "switch", help: "Loud." },
  path: { form: "list", fallback: "/a", env: ["PATHS"], help: "Paths." },
  line: { form: "list", env: ["LINE"], hasCommas: true, help: "A line." },
  key: { form: "text", aliases: ["key-file"], help: "A key." },
  old: { form: "switch", ignored: "nobody needs it", help: "Old." },
};

function read(args: readonly string[], env: Readonly<Record<string, string>> = {}): FlagValues {
  return readFlags(table, args, (name) => env[name]);
}

/** Reads every flag, and returns the problems. */
function problemsOf(args: readonly string[], env: Readonly<Record<string, string>> = {}): readonly string[] {
  const flags = read(args, env);
  for (const name of ["name", "color"]) flags.text(name);
  for (const name of ["port", "factor"]) flags.number(name);
  for (const name of ["path", "line"]) flags.list(name);
  flags.durationMs("wait");
  flags.switch("loud");
  try {
    flags.assertNoProblems();
  } catch (error) {
    assert.ok(error instanceof FlagError);
    return error.problems;
  }
  return [];
}

Deno.test("flags that are not given have their defaults", () => {
  const flags = read([]);
  assert.equal(flags.text("name"), "anon");
  assert.equal(flags.text("color"), "");
  assert.equal(flags.number("port"), 5);
  assert.equal(flags.durationMs("wait"), 10_000);
  assert.equal(flags.switch("loud"), false);
  assert.deepEqual(flags.list("path"), ["/a"]);
  assert.deepEqual(flags.list("line"), []);
  flags.assertNoProblems();
});

Deno.test("flags are read in both spellings, the last one wins, and lists keep all", () => {
  const flags = read([
    "--name",
    "a",
    "--name=b",
    "--loud",
    "--path",
    "/x",
    "--path=/y,z",
    "--factor",
    "1.25",
  ]);
  assert.equal(flags.text("name"), "b");
  assert.equal(flags.switch("loud"), true);
  assert.deepEqual(flags.list("path"), ["/x", "/y,z"]);
  assert.equal(flags.number("factor"), 1.25);
  flags.assertNoProblems();
});

Deno.test("a switch accepts all words of Go's flags as its value, in the same word only", () => {
  for (const word of ["1", "t", "T", "TRUE", "true", "True"]) {
    assert.equal(read([`--loud=${word}`]).switch("loud"), true, word);
  }
  for (const word of ["0", "f", "F", "FALSE", "false", "False"]) {
    assert.equal(read([`-loud=${word}`]).switch("loud"), false, word);
  }
  const problems = problemsOf(["--loud", "false"]);
  assert.deepEqual(problems, ['"false" is not a flag']);
});

Deno.test("flags are read with one dash as with two", () => {
  const flags = read(["-name", "a", "-loud", "-port=7", "-path", "/x", "--path=/y", "-line", "k=v, w"]);
  assert.deepEqual([flags.text("name"), flags.switch("loud"), flags.number("port")], ["a", true, 7]);
  assert.deepEqual([flags.list("path"), flags.text("line")], [["/x", "/y"], "k=v, w"]);
  flags.assertNoProblems();
});

Deno.test("a value may be empty, contain an equals sign, and begin with a dash", () => {
  assert.equal(read(["--name="]).text("name"), "");
  assert.equal(read(["--name", ""]).text("name"), "");
  assert.equal(read(["--name=a=b"]).text("name"), "a=b");
  assert.equal(read(["-name", "--loud"]).text("name"), "--loud");
});

Deno.test("a flag can be given by another name, and the last of both wins", () => {
  assert.equal(read(["--key-file", "/a"]).text("key"), "/a");
  assert.equal(read(["-key-file=/a", "--key=/b"]).text("key"), "/b");
  assert.equal(read(["--key=/b", "-key-file=/a"]).text("key"), "/a");
  assert.match(describeFlags(table), /also --key-file/);
});

Deno.test("a flag without effect is accepted, warned about, and left out of the help", () => {
  const flags = read(["-old=false"]);
  assert.deepEqual(flags.warnings(), ["--old has no effect: nobody needs it"]);
  flags.assertNoProblems();
  assert.deepEqual(read([]).warnings(), []);
  assert.doesNotMatch(describeFlags(table), /--old/);
});

for (
  const [text, ms] of [["0s", 0], ["250ms", 250], ["10s", 10_000], ["1m", 60_000], ["0m10s", 10_000], [
    "10s250ms",
    10_250,
  ]] as const
) {
  Deno.test(`durationMs() reads ${text}`, () => assert.equal(read(["--wait", text]).durationMs("wait"), ms));
}

Deno.test("the environment sets a flag that is not given, and an empty variable counts as not set", () => {
  assert.equal(read([], { NAME: "e" }).text("name"), "e");
  assert.equal(read([], { NAME: "", OTHER_NAME: "o" }).text("name"), "o");
  assert.equal(read([], { NAME: "" }).text("name"), "anon");
  assert.equal(read(["--name", "f"], { NAME: "e" }).text("name"), "f");
});

Deno.test("a variable gives a list its values between commas, and a single one where a comma is part of it", () => {
  assert.deepEqual(read([], { PATHS: "/b,/c" }).list("path"), ["/b", "/c"]);
  assert.deepEqual(read([], { LINE: "host,10.0.0.1 key\n" }).list("line"), ["host,10.0.0.1 key\n"]);
});

const wrong: readonly (readonly [args: readonly string[], names: RegExp])[] = [
  [["--color", "green"], /--color .*"green".*red, blue/],
  [["--port", "0"], /--port .*from 1 to 10/],
  [["--port", "11"], /--port/],
  [["--port", "abc"], /--port .*"abc"/],
  [["--port", "1.5"], /--port/],
  [["--port="], /--port/],
  [["--port", "9999999999999999999"], /--port/],
  [["--factor", "0.4"], /--factor .*from 0\.5 to 2/],
  [["--factor", "1e0"], /--factor/],
  [["--factor", "-1"], /--factor/],
  [["--factor", "NaN"], /--factor/],
  [["--wait", "10"], /--wait .*10s, 5m/],
  [["--wait", "-1s"], /--wait/],
  [["--wait", "61s"], /--wait .*at most 1m/],
  [["--wait", "999999999h"], /--wait/],
  [["--loud=maybe"], /--loud .*true or false/],
  [["--name"], /--name needs a value/],
  [["--nmae", "x"], /--nmae is not a flag/],
  [["-x"], /-x is not a flag/],
  [["--constructor", "x"], /--constructor is not a flag/],
  [["stray"], /"stray" is not a flag/],
  [["-name"], /^-name needs a value/],
  [["--"], /"--" is not a flag/],
  [["-"], /"-" is not a flag/],
  [["---name=x"], /"---name=x" is not a flag/],
  [["--=x"], /"--=x" is not a flag/],
];

for (const [args, named] of wrong) {
  Deno.test(`${args.join(" ")} is one problem that names the flag`, () => {
    const problems = problemsOf(args);
    assert.equal(problems.length, 1, problems.join("\n"));
    assert.match(problems[0]!, named);
  });
}

Deno.test("all problems are reported at once", () => {
  const problems = problemsOf(["--port", "0", "--wait", "soon", "--nmae=x", "stray", "--color", "green"], {
    PATHS: "/b",
  });
  for (const name of ["--port", "--wait", "--nmae", "stray", "--color"]) {
    assert.equal(problems.filter((problem) => problem.includes(name)).length, 1, name);
  }
  assert.equal(problems.length, 5);
});

Deno.test("the word after an unknown flag is not shown, because it may be a password", () => {
  for (const args of [["--password", "hunter2"], ["--password=hunter2"], ["-p", "hunter2"]]) {
    const text = problemsOf(args).join("\n");
    assert.match(text, /^-.* is not a flag/);
    assert.doesNotMatch(text, /hunter2/);
  }
});

Deno.test("an undeclared flag cannot be read", () => {
  assert.throws(() => read([]).text("absent"), TypeError);
});

Deno.test("required() reports when a flag is needed, for an empty value as for none", () => {
  for (const args of [[], ["--color="]]) {
    const flags = read(args);
    flags.required("color", "for the test");
    assert.throws(() => flags.assertNoProblems(), /--color is required for the test/);
  }
});

Deno.test("the help names every flag with its form, default and variables", () => {
  const help = describeFlags(table);
  const used = Object.keys(table).filter((name) => table[name]!.ignored === undefined);
  for (const name of used) assert.match(help, new RegExp(`^  --${name}\\b`, "m"));
  assert.match(help, /--color red\|blue/);
  assert.match(help, /default anon; env NAME, OTHER_NAME/);
});

Deno.test("subjectFirst() moves a command's subject to the front, wherever it is, and mistakes no value for it", () => {
  const table: FlagTable = {
    json: { form: "switch", help: "" },
    address: { form: "text", help: "" },
  };
  const first = (text: string) => subjectFirst(table, text.split(" ")).join(" ");
  assert.equal(first("pvc-1 --json"), "pvc-1 --json");
  assert.equal(first("--json pvc-1"), "pvc-1 --json");
  assert.equal(first("--address 10.0.0.1 --json pvc-1 --json"), "pvc-1 --address 10.0.0.1 --json --json");
  assert.equal(first("--address=10.0.0.1 pvc-1"), "pvc-1 --address=10.0.0.1");
  assert.equal(first("--pasword secret --json"), "--pasword secret --json");
  assert.equal(first("--json"), "--json");
});

Deno.test("a word that nearly is a flag or a command gets a suggestion", () => {
  assert.equal(didYouMean("Descrbe", ["describe", "detach"]), "; did you mean describe?");
  assert.equal(didYouMean("rds-adress", ["rds-address", "rds-user"], "--"), "; did you mean --rds-address?");
  assert.equal(didYouMean("frobnicate", ["describe", "detach"]), "");
  assert.equal(didYouMean("", ["describe"]), "");
  assert.deepEqual(problemsOf(["--wiat", "1s"]), [
    "--wiat is not a flag of this command; did you mean --wait?",
  ]);
});
