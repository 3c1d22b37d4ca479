// The project's own lint rules as a plugin of `deno lint`; verify.json names the rules that run.

import { importDirection, passedIn } from "./verify_imports.ts";
import { oneSender } from "./verify_sender.ts";
import { fileLength, functionLength } from "./verify_sizes.ts";

const plugin: Deno.lint.Plugin = {
  name: "rds-csi",
  rules: {
    "import-direction": importDirection,
    "passed-in": passedIn,
    "one-sender": oneSender,
    "file-length": fileLength,
    "function-length": functionLength,
  },
};

export default plugin;
